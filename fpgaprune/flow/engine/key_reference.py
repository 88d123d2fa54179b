"""Every key of a flow file with its default and its meaning, as a flow file and as a page."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic.fields import FieldInfo

from fpgaprune.files import toml_value
from fpgaprune.flow.engine.config import FlowConfig
from fpgaprune.flow.file import Section, sections_in

_WIDTH = 100
# The column at which the allowed values begin, to the right of a key.
_BESIDE = 36
_NAMES: Mapping[Any, str] = {str: "text", int: "whole number", float: "number", bool: "true or false", Path: "path"}
_LIMITS = (("ge", "{} or more"), ("gt", "above {}"), ("le", "{} at most"), ("lt", "below {}"))


@dataclass(frozen=True)
class Key:
    """One key of a flow file.

    Attributes:
        name: name of the key.
        allowed: the allowed values, in words.
        default: its default; None for a key without one.
        meaning: one line.
    """

    name: str
    allowed: str
    default: Any
    meaning: str


@dataclass(frozen=True)
class TomlTable:
    """One table of a flow file.

    Attributes:
        section: its dotted name; "" for the top of the file.
        meaning: the first line of its description.
        keys: its keys in order.
        optional: whether it is absent by default.
    """

    section: str
    meaning: str
    keys: tuple[Key, ...]
    optional: bool = False


def tables() -> list[TomlTable]:
    """Return every table that a flow file may hold, in order."""
    return list(_tables("", FlowConfig))


def to_toml() -> str:
    """Return a flow file with every key and its default; keys without a default and optional tables are comments.

    It means the same as an empty flow file.
    """
    blocks = [
        "# Every key of a flow file with its default, printed by 'fpgaprune config'. You can delete keys that you do\n"
        "# not change. A key after a '#' without a blank has no default, or is in a table that is absent by default;\n"
        "# remove the '#' and give a value. Next: fpgaprune run flow.toml"
    ]
    blocks += [_block(table) for table in tables()]
    return "\n\n".join(blocks) + "\n"


def to_markdown() -> str:
    """Return the page docs/flow_file.md: the same keys as tables."""
    blocks = [
        "# The flow file",
        "Every key that a flow file may hold; a key that is left out has its default. `fpgaprune config > flow.toml`\n"
        "writes the same as a flow file to start from. A run has its own: edit `runs/mine/flow.toml`, then\n"
        "`fpgaprune run runs/mine/flow.toml --out runs/mine` runs the stages that the change concerns.",
    ]
    for table in tables():
        blocks.append(f"## {f'`[{table.section}]`' if table.section else 'At the top'}\n\n{_cell(table.meaning)}")
        rows = [_row(key) for key in table.keys]
        blocks.append("\n".join(("| key | allowed | default | meaning |", "|---|---|---|---|", *rows)))
    return "\n\n".join(blocks) + "\n"


def _row(key: Key) -> str:
    if key.allowed == toml_value(key.default):  # It names the kind of the table, whose meaning stands above.
        return f"| `{key.name}` | {_default(key.default)} | | |"
    return f"| `{key.name}` | {_cell(key.allowed)} | {_default(key.default)} | {_cell(key.meaning)} |"


def _tables(section: str, model: type[Section], optional: bool = False) -> Iterator[TomlTable]:
    """Yield the table of `model`, then those within it."""
    own: list[Key] = []
    inner: list[TomlTable] = []
    for name, field in model.model_fields.items():
        place = f"{section}.{name}" if section else name
        sections, many = sections_in(field.annotation)
        if not sections:
            own.append(
                Key(name, type_words(field.annotation, field.metadata), _value(field), _one_line(field.description))
            )
        there = type(field.get_default(call_default_factory=True))
        for kind in sections:
            inner += _tables(f'{place}."NAME"' if many else place, kind, optional or kind is not there)
    if own:
        meaning = _one_line((model.__doc__ or "").partition("\n\n")[0])
        yield TomlTable(section, meaning, tuple(own), optional)
    yield from inner


def _value(field: FieldInfo) -> Any:
    if field.is_required():
        # A table of several kinds has a key with one value, which names the kind.
        allowed = get_args(field.annotation)
        return allowed[0] if len(allowed) == 1 else None
    return field.get_default(call_default_factory=True)


def type_words(annotation: Any, limits: Sequence[Any] = ()) -> str:
    """Return the values that a type allows, in words: `whole number, 1 or more`."""
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        field = FieldInfo.from_annotation(annotation)
        return type_words(field.annotation, field.metadata)
    if origin is Literal:
        return " or ".join(json.dumps(value) for value in inner)
    if origin in (Union, UnionType):
        return " or ".join(type_words(one, limits) for one in inner if one is not NoneType)
    if origin is tuple:
        return f"[{type_words(inner[0])}, ...]"
    if origin is dict:
        return f"{{name = {type_words(inner[1])}, ...}}"
    found = {name: getattr(limit, name) for name, _ in _LIMITS for limit in limits if hasattr(limit, name)}
    if {"ge", "le"} <= found.keys():
        return f"{_NAMES[annotation]} from {_number(found['ge'])} to {_number(found['le'])}"
    return ", ".join((_NAMES[annotation], *(text.format(_number(found[n])) for n, text in _LIMITS if n in found)))


def _number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:g}"


def _block(table: TomlTable) -> str:
    out = "#" if table.optional else ""
    heading = [*_comment(table.meaning), f"{out}[{table.section}]"] if table.section else []
    return "\n".join((*heading, *(line for key in table.keys for line in _lines(key, out))))


def _lines(key: Key, out: str) -> list[str]:
    """Return the meaning of a key and, below, the key with its default and what is allowed."""
    said = f"#{key.name} =" if key.default is None else f"{out}{key.name} = {toml_value(key.default)}"
    return [*_comment(key.meaning), f"{said:<{_BESIDE}} # {key.allowed}"]


def _comment(text: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH, initial_indent="# ", subsequent_indent="# ", break_on_hyphens=False)


def _default(value: object) -> str:
    return "–" if value is None else f"`{toml_value(value)}`"


def _one_line(text: str | None) -> str:
    return " ".join((text or "").split())


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
