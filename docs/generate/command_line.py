"""The page reference/command_line.md: every command and option, from the commands themselves."""

from __future__ import annotations

import textwrap
from typing import Any

import typer

from fpgaprune.cli import app
from fpgaprune.fabric import list_serial_boards

PLACE = "reference/command_line.md"
_HEAD = """# Command line

`fpgaprune COMMAND --help` prints the same. The exit status is 0 if all went well, 1 if a check, a conversion or a
tool failed, and 2 if something in your input is wrong. Then one line says what. A network that does
not fit its part is no failed check: then `run` and `measure` end with status 3, or with 4 if a check fails too.

`fpgaprune --install-completion` teaches your shell to complete commands and options with the Tab key. Each command ends
with a line that begins with `next`: what to type next.

A usage line names `--json` and `--quiet` where the command has them: `--json` prints JSON, and `--quiet` (`-q`) prints
nothing but errors.
"""
# Named in the usage line, explained once above.
_EVERYWHERE = ("--quiet", "--json")


def page() -> str:
    """The page as Markdown."""
    commands = typer.main.get_command(app).commands
    overview = " · ".join(f"[`{name}`](#{name})" for name in commands)
    seen: dict[tuple[str, ...], str] = {}
    sections = [_section(name, command, seen) for name, command in commands.items()]
    return "\n".join([_HEAD, overview, "", *sections])


def _section(name: str, command: Any, seen: dict[tuple[str, ...], str]) -> str:
    """A command; an option that an earlier command has, with the same help and default, is a link to that command."""
    arguments = [part for part in command.params if part.param_type_name == "argument"]
    options = [part for part in command.params if part.param_type_name == "option" and part.name != "help"]
    everywhere = [f"[{part.opts[0]}]" for part in options if part.opts[0] in _EVERYWHERE]
    own = [part for part in options if part.opts[0] not in _EVERYWHERE]
    names = (_place(part) for part in arguments)
    usage = " ".join(["fpgaprune", name, *names, *(["[OPTIONS]"] if own else []), *everywhere])
    rows = [f"| `{_place(part).strip('[]')}` | {_cell(part.help)} |" for part in arguments]
    as_in: dict[str, list[str]] = {}
    for part in own:
        flags = f"`{'`, `'.join(part.opts)}`"
        meaning = f"{_cell(part.help)}{_default(part)}"
        first = seen.setdefault((flags, meaning), name)
        if first == name:
            rows.append(f"| {flags} | {meaning} |")
        else:
            as_in.setdefault(first, []).append(flags)
    rows += [f"| {', '.join(flags)} | As in [`{first}`](#{first}). |" for first, flags in as_in.items()]
    table = ["| option | meaning |", "|---|---|", *rows, ""] if rows else []
    return "\n".join([f"## {name}", "", "```text", usage, "```", "", *_paragraphs(command.help), "", *table])


def _paragraphs(text: str) -> list[str]:
    return [line for block in text.split("\n\n") for line in (*textwrap.wrap(block, 118), "")][:-1]


def _place(part: Any) -> str:
    name = (part.metavar or part.name.upper()).strip("[].").replace("]", "").replace("|", " or ")
    name = f"{name}..." if part.nargs == -1 else name
    return name if part.required else f"[{name}]"


def _default(part: Any) -> str:
    if part.is_flag or part.default in (None, (), []):
        return ""
    return f" Default: `{part.default}`."


def _cell(text: str | None) -> str:
    *others, last = list_serial_boards()
    said = (text or "").replace("|", r"\|").replace("\n", " ")
    for names in (f"{', '.join(others)} or {last}", ", ".join([*others, last])):
        said = said.replace(names, "a [board with a serial line](boards.md)")
    return said
