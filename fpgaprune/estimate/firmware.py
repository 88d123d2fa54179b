"""The C++ that hls4ml writes, read as text: macros, types, configuration structs and layer calls.

Only the forms that hls4ml generates are understood; nothing is executed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from fpgaprune.errors import EstimateError
from fpgaprune.firmware import parse_typedefs

_DEFINE = re.compile(r"^[ \t]*#define[ \t]+(\w+)[ \t]+(\S.*?)[ \t]*$", re.MULTILINE)
_STRUCT = re.compile(r"struct\s+(\w+)\s*:\s*(?:public\s+)?nnet::(\w+)\s*\{(.*?)\n\};", re.DOTALL)
_FIELD = re.compile(r"static\s+(?:const|constexpr)\s+[\w:<> *]+?\s+(\w+)\s*=\s*([^;]+);")
_CALL = re.compile(r"nnet::(\w+)\s*<([^;()]*)>\s*\(([^;]*?)\)\s*;(?:[ \t]*//[ \t]*(\S+))?")
_ALIAS = re.compile(r"auto\s*&\s*(\w+)\s*=\s*(\w+)\s*;")
_TOKEN = re.compile(r"\s*(\d+|[A-Za-z_]\w*|[-+*/(),])")
_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)


@dataclass(frozen=True, slots=True)
class TemplateCall:
    """One layer: `nnet::function<types>(arguments); // name`."""

    function: str
    types: tuple[str, ...]
    arguments: tuple[str, ...]
    name: str | None


@dataclass(frozen=True, slots=True)
class Struct:
    """One configuration: its base class, constants and type aliases as written."""

    name: str
    base: str
    fields: Mapping[str, str]
    types: Mapping[str, str]


def parse_macros(text: str) -> dict[str, str]:
    """`#define NAME VALUE` by name."""
    return dict(_DEFINE.findall(text))


def parse_structs(text: str) -> dict[str, Struct]:
    """Configuration structs by name."""
    found = {}
    for name, base, body in _STRUCT.findall(_COMMENT.sub("", text)):
        found[name] = Struct(name, base, dict(_FIELD.findall(body)), parse_typedefs(body))
    return found


def parse_calls(text: str) -> tuple[list[TemplateCall], dict[str, str]]:
    """Layer calls in order, and alias to variable."""
    calls = []
    for function, types, arguments, name in _CALL.findall(text):
        if function.startswith("load_"):
            continue
        calls.append(TemplateCall(function, split_arguments(types), split_arguments(arguments), name or None))
    return calls, dict(_ALIAS.findall(text))


def split_arguments(text: str) -> tuple[str, ...]:
    """`text` cut at the commas that stand outside angle brackets."""
    parts, depth, start = [], 0, 0
    for at, char in enumerate(text):
        depth += (char == "<") - (char == ">")
        if char == "," and depth == 0:
            parts.append(text[start:at].strip())
            start = at + 1
    parts.append(text[start:].strip())
    return tuple(part for part in parts if part)


def split_array(kind: str, macros: Mapping[str, str]) -> tuple[str, int]:
    """The element type and the number of elements of `nnet::array<TYPE, N>`; a plain type holds one."""
    text = kind.replace(" ", "")
    if not text.startswith("nnet::array<"):
        return text, 1
    inner = split_arguments(text.removeprefix("nnet::array<").removesuffix(">"))
    return inner[0], evaluate(inner[1], macros)


def evaluate(text: str, names: Mapping[str, str]) -> int:
    """The integer that an expression of numbers, names, `+ - * /` and `DIV_ROUNDUP` means.

    Raises:
        EstimateError: it holds anything else, or a name that is not known.
    """
    tokens = []
    rest = text.strip()
    while rest:
        found = _TOKEN.match(rest)
        if not found:
            raise EstimateError(f"expression {text!r} in the project cannot be read; wanted a whole number")
        tokens.append(found[1])
        rest = rest[found.end() :].lstrip()
    value, left = _sum(tokens, names, text, 0)
    if left:
        raise EstimateError(f"expression {text!r} in the project cannot be read; wanted a whole number")
    return value


def _sum(tokens: list[str], names: Mapping[str, str], text: str, depth: int) -> tuple[int, list[str]]:
    value, tokens = _product(tokens, names, text, depth)
    while tokens and tokens[0] in "+-":
        sign = 1 if tokens[0] == "+" else -1
        other, tokens = _product(tokens[1:], names, text, depth)
        value += sign * other
    return value, tokens


def _product(tokens: list[str], names: Mapping[str, str], text: str, depth: int) -> tuple[int, list[str]]:
    value, tokens = _atom(tokens, names, text, depth)
    while tokens and tokens[0] in "*/":
        divide = tokens[0] == "/"
        other, tokens = _atom(tokens[1:], names, text, depth)
        if divide and not other:
            raise EstimateError(f"expression {text!r} in the project divides by 0")
        value = value // other if divide else value * other
    return value, tokens


def _atom(tokens: list[str], names: Mapping[str, str], text: str, depth: int) -> tuple[int, list[str]]:
    if not tokens or depth > 30:
        raise EstimateError(f"expression {text!r} in the project cannot be read; wanted a whole number")
    head, *rest = tokens
    if head.isdigit():
        return int(head), rest
    if head == "-":
        value, rest = _atom(rest, names, text, depth + 1)
        return -value, rest
    if head == "DIV_ROUNDUP" and rest[:1] == ["("]:
        first, rest = _sum(rest[1:], names, text, depth + 1)
        if rest[:1] != [","]:
            raise EstimateError(f"expression {text!r} in the project cannot be read: DIV_ROUNDUP takes two numbers")
        second, rest = _sum(rest[1:], names, text, depth + 1)
        return -(-first // max(second, 1)), rest[1:]
    if head == "(":
        value, rest = _sum(rest, names, text, depth + 1)
        return value, rest[1:]
    if head in names:
        return _evaluate_name(head, names, text, depth), rest
    raise EstimateError(f"expression {text!r} in the project uses {head!r}, which nothing defines")


def _evaluate_name(name: str, names: Mapping[str, str], text: str, depth: int) -> int:
    tokens = _TOKEN.findall(names[name])
    value, left = _sum(tokens, names, text, depth + 1)
    if left:
        raise EstimateError(f"{name} = {names[name]!r} in the project cannot be read; wanted a whole number")
    return value
