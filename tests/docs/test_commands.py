"""What README and site show as commands exists: options, targets, scripts, extras; flow files are read."""

from __future__ import annotations

import re
import shlex
import tomllib

import pytest
import typer
from typer.testing import CliRunner

from fpgaprune.cli import app
from fpgaprune.flow.engine import parse_config

from . import snippets

_COMMANDS = typer.main.get_command(app).commands
# Commands of a shell that are no business of ours.
_OTHERS = {"sha256sum", "cd", "git", "yosys", "dask", "export", "sudo"}
_BOUNDARY = re.compile(r"\s(?:#|\||>|&&|<<).*$")


def _commands():
    for page in snippets.pages():
        for block in snippets.blocks(page):
            if block.kind in ("console", "sh"):
                for number, line in enumerate(block.text.splitlines(), block.line + 1):
                    if line.startswith("$ "):
                        yield pytest.param(line[2:], id=f"{snippets.name_of(page)}:{number}")


@pytest.mark.parametrize("line", list(_commands()))
def test_a_command_is_understood(line):
    words = shlex.split(_BOUNDARY.sub("", f" {line}"))
    program = words[0].rsplit("/", 1)[-1]
    if program == "fpgaprune":
        _understands(words[1:])
    elif program == "make":
        targets = (snippets.CHECKOUT / "Makefile").read_text()
        assert all(re.search(rf"^{word}:", targets, re.M) for word in words[1:] if "=" not in word)
    elif program == "python" and words[1] != "-":
        _has_script(words[1:])
    elif program == "pip":
        _has_extras(words)
    else:
        assert program in _OTHERS | {"python"}, f"nobody knows what {program!r} is"


def _understands(words):
    if words == ["--version"]:
        return
    command = _COMMANDS[words[0]]
    # The real parser: an unknown option, a missing argument and a wrong type are errors.
    command.make_context(words[0], words[1:], resilient_parsing=False).close()


def _has_script(words):
    if words[0] == "-m":
        return
    source = (snippets.CHECKOUT / words[0]).read_text()
    for option in (word.partition("=")[0] for word in words[1:] if word.startswith("--")):
        assert option in source, f"{words[0]} has no option {option}"


def _has_extras(words):
    extras = tomllib.loads((snippets.CHECKOUT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    for asked in re.findall(r"\[([a-z0-9-]+)\]", " ".join(words)):
        assert asked in extras


def test_an_unknown_option_is_found():
    with pytest.raises(Exception, match="No such option: --no-such-option"):
        _understands(["run", "--no-such-option"])


def _flow_files():
    for page in snippets.pages():
        for block in snippets.blocks(page):
            if block.kind == "toml":
                yield pytest.param(block.text, id=f"{snippets.name_of(page)}:{block.line}")


@pytest.mark.parametrize("text", list(_flow_files()))
def test_a_flow_file_is_read(text):
    document = tomllib.loads(text)
    parse_config(document, "page")


@pytest.mark.parametrize("line", ["parts", "parts pynq-z2 xc7a100tcsg324-1", "config", "config --markdown"])
def test_cheap_commands_run(line):
    done = CliRunner().invoke(app, shlex.split(line))
    assert done.exit_code == 0
    assert done.output


def test_every_command_has_its_place_on_a_page():
    shown = {param.values[0].split()[1] for param in _commands() if param.values[0].split()[0].endswith("fpgaprune")}
    assert set(_COMMANDS) <= shown
