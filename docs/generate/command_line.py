"""The page reference/command_line.md: every command and option, from the commands themselves."""

from __future__ import annotations

from typing import Any

import typer

from fpgaprune.cli import app

PLACE = "reference/command_line.md"
_HEAD = """# Command line

`fpgaprune COMMAND --help` prints the same. The exit status is 0 if all went well, 1 if a check, a conversion or a
tool failed, and 2 if something in your input is wrong. Then one line says what.
"""


def page() -> str:
    """The page as Markdown."""
    commands = typer.main.get_command(app).commands
    overview = [f"| [`{name}`](#{name}) | {_first_line(command)} |" for name, command in commands.items()]
    sections = [_section(name, command) for name, command in commands.items()]
    return "\n".join([_HEAD, "| command | what it does |", "|---|---|", *overview, "", *sections])


def _section(name: str, command: Any) -> str:
    arguments = [part for part in command.params if part.param_type_name == "argument"]
    options = [part for part in command.params if part.param_type_name == "option" and part.name != "help"]
    usage = " ".join(["fpgaprune", name, *(_place(part) for part in arguments), *(["[OPTIONS]"] if options else [])])
    rows = [f"| `{_place(part).strip('[]')}` | {_cell(part.help)} | |" for part in arguments]
    rows += [f"| `{'`, `'.join(part.opts)}` | {_cell(part.help)} | {_default(part)} |" for part in options]
    return "\n".join(
        [f"## {name}", "", "```text", usage, "```", "", *_paragraphs(command.help), ""]
        + (["| option | meaning | default |", "|---|---|---|", *rows, ""] if rows else [])
    )


def _paragraphs(text: str) -> list[str]:
    return text.replace("\b", "").strip().splitlines()


def _first_line(command: Any) -> str:
    return _cell(command.help.strip().splitlines()[0])


def _place(part: Any) -> str:
    name = (part.metavar or part.name.upper()).strip("[]").replace("|", " or ")
    name = f"{name}..." if part.nargs == -1 else name
    return name if part.required else f"[{name}]"


def _default(part: Any) -> str:
    if part.is_flag or part.default in (None, (), []):
        return ""
    return f"`{part.default}`"


def _cell(text: str | None) -> str:
    return (text or "").replace("|", r"\|").replace("\n", " ")
