"""Every key of a flow file is explained, and what is printed is a flow file."""

import tomllib
from pathlib import Path
from typing import Annotated, Literal

import pytest
from pydantic import Field
from typer.testing import CliRunner

from fpgaprune.cli import app
from fpgaprune.flow.engine import FlowConfig, parse_config, tables, to_markdown, to_toml, type_words

PAGE = Path(__file__).parents[3] / "docs" / "flow_file.md"


def test_what_is_printed_reads_back_as_the_defaults():
    printed = CliRunner().invoke(app, ["config"]).output
    assert printed == to_toml()
    assert parse_config(tomllib.loads(printed), "printed") == FlowConfig()
    # Not because it says nothing.
    assert {"epochs", "batch_size"} <= tomllib.loads(printed)["train"].keys()


@pytest.mark.parametrize("table", tables(), ids=lambda table: f"{table.section}.{table.keys[0].default}")
def test_every_key_of_every_section_is_explained(table):
    assert table.meaning
    for key in table.keys:
        assert len(key.meaning) > 5, f"[{table.section}] {key.name} has no text below it that says what it means"
        assert key.meaning.endswith(".")
        assert key.allowed


def test_every_section_of_a_flow_is_there():
    written = {table.section.partition(".")[0] for table in tables()}
    plain = {"name", "seed"}
    assert written == set(FlowConfig.model_fields) - plain | {""}
    assert {key.name for key in tables()[0].keys} == plain


@pytest.mark.parametrize(
    "table",
    [table for table in tables() if table.optional],
    ids=lambda table: f"{table.section}.{table.keys[0].default}",
)
def test_a_table_in_comments_can_be_taken_into_use(table):
    block = next(
        block
        for block in to_toml().split("\n\n")
        if f"#[{table.section}]" in block
        and f"#{table.keys[0].name} =" in block
        and block.count("=") >= len(table.keys)
        and (table.keys[0].default is None or f'"{table.keys[0].default}"' in block)
    )
    used = [line for line in block.splitlines() if line.startswith("#") and not line.startswith("# ")]
    lines = [line[1:] for line in used if line.partition("=")[2].partition("#")[0].strip() or line.startswith("#[")]
    parse_config(tomllib.loads("\n".join(lines)), "block")


def test_keys_without_a_default_are_comments():
    lines = to_toml().splitlines()
    assert any(line.startswith("#model =") and line.endswith("# path") for line in lines)
    assert not any(line.startswith("model") for line in lines)


@pytest.mark.parametrize(
    ("annotation", "words"),
    [
        (int, "whole number"),
        (Annotated[int, Field(ge=1)], "whole number, 1 or more"),
        (Annotated[int, Field(ge=0, lt=2**31)], "whole number, 0 or more, below 2,147,483,648"),
        (Annotated[float, Field(ge=0, le=1)] | None, "number from 0 to 1"),
        (tuple[str, ...], "[text, ...]"),
        (dict[str, Annotated[float, Field(gt=0)]], "{name = number, above 0, ...}"),
        (bool | tuple[Literal["bias", "x"], ...], 'true or false or ["bias" or "x", ...]'),
        (Path | None, "path"),
    ],
)
def test_what_is_allowed_is_said_in_words(annotation, words):
    assert type_words(annotation) == words


@pytest.mark.skipif(not PAGE.parent.is_dir(), reason="the page is in the checkout only")
def test_the_page_is_up_to_date():
    assert PAGE.read_text(encoding="utf-8") == to_markdown(), (
        "run 'fpgaprune config --markdown > docs/flow_file.md' after a change of a section"
    )


def test_the_page_has_a_row_for_each_key():
    text = to_markdown()
    for table in tables():
        for key in table.keys:
            assert f"| `{key.name}` | " in text
    assert not any(line.startswith("SavedModel") for line in text.splitlines())
