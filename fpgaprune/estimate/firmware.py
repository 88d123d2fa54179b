"""Reads the C++ that hls4ml writes: macros, types, configuration structs and layer calls.

It reads only the forms that hls4ml writes, as text.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from fpgaprune.errors import EstimateError
from fpgaprune.files import PARSER_ERRORS, in_a_line, parse_typedefs

_DEFINE = re.compile(r"^[ \t]*#define[ \t]+(\w+)[ \t]+(\S.*?)[ \t]*$", re.MULTILINE)
_STRUCT = re.compile(r"struct\s+(\w+)\s*:\s*(?:public\s+)?nnet::(\w+)\s*\{(.*?)\n\};", re.DOTALL)
_FIELD = re.compile(r"static\s+(?:const|constexpr)\s+[\w:<> *]+?\s+(\w+)\s*=\s*([^;]+);")
_CALL = re.compile(r"nnet::(\w+)\s*<([^;()]*)>\s*\(([^;]*?)\)\s*;(?:[ \t]*//[ \t]*(\S+))?")
_ALIAS = re.compile(r"auto\s*&\s*(\w+)\s*=\s*(\w+)\s*;")
_LEADING_ZEROS = re.compile(r"\b0+(?=\d)")
_OPERATORS: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.floordiv,
}
# Names and brackets within one another; hls4ml writes three or four.
_DEEPEST = 60
_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)


@dataclass(frozen=True, slots=True)
class TemplateCall:
    """The call of one layer: `nnet::function<types>(arguments); // name`."""

    function: str
    types: tuple[str, ...]
    arguments: tuple[str, ...]
    name: str | None


@dataclass(frozen=True, slots=True)
class Struct:
    """The configuration of one layer: its base class, constants and type aliases, as written."""

    name: str
    base: str
    fields: Mapping[str, str]
    types: Mapping[str, str]


def parse_macros(text: str) -> dict[str, str]:
    """Return a dict: name -> value of every `#define NAME VALUE`."""
    return dict(_DEFINE.findall(text))


def parse_structs(text: str) -> dict[str, Struct]:
    """Parse the configuration structs, by name."""
    found = {}
    for name, base, body in _STRUCT.findall(_COMMENT.sub("", text)):
        found[name] = Struct(name, base, dict(_FIELD.findall(body)), parse_typedefs(body))
    return found


def parse_calls(text: str) -> tuple[list[TemplateCall], dict[str, str]]:
    """Return the layer calls in order, and alias -> variable."""
    calls = []
    for function, types, arguments, name in _CALL.findall(text):
        if function.startswith("load_"):
            continue
        calls.append(TemplateCall(function, split_arguments(types), split_arguments(arguments), name or None))
    return calls, dict(_ALIAS.findall(text))


def split_arguments(text: str) -> tuple[str, ...]:
    """Split `text` at the commas outside angle brackets."""
    parts, depth, start = [], 0, 0
    for at, char in enumerate(text):
        depth += (char == "<") - (char == ">")
        if char == "," and depth == 0:
            parts.append(text[start:at].strip())
            start = at + 1
    parts.append(text[start:].strip())
    return tuple(part for part in parts if part)


def split_array(kind: str, macros: Mapping[str, str]) -> tuple[str, int]:
    """Return the element type and the number of elements of `nnet::array<TYPE, N>`; a plain type is one element."""
    text = kind.replace(" ", "")
    if not text.startswith("nnet::array<"):
        return text, 1
    inner = split_arguments(text.removeprefix("nnet::array<").removesuffix(">"))
    return inner[0], evaluate(inner[1], macros)


def evaluate(text: str, names: Mapping[str, str]) -> int:
    """Return the integer that an expression of numbers, names, `+ - * /` and `DIV_ROUNDUP` means; nothing is executed.

    Raises:
        EstimateError: it holds anything else, divides by 0, or uses a name that nothing defines.
    """
    try:
        return _value(_parsed(text), names, text, 0)
    except EstimateError:
        raise
    except PARSER_ERRORS as error:
        said = in_a_line(error)
        raise EstimateError(
            f"expression {text!r} in the project cannot be read ({said}); wanted a whole number"
        ) from error


def _parsed(text: str) -> ast.expr:
    # Leading zeros, which C allows, are no Python.
    return ast.parse(_LEADING_ZEROS.sub("", text.strip()), mode="eval").body


def _value(node: ast.expr, names: Mapping[str, str], text: str, depth: int) -> int:
    if depth > _DEEPEST:
        raise ValueError("nested too deep")

    def of(part: ast.expr) -> int:
        return _value(part, names, text, depth + 1)

    match node:
        case ast.Constant(value=int(number)) if not isinstance(number, bool):
            return number
        case ast.Name(id=name) if name in names:
            return of(_parsed(names[name]))
        case ast.Name(id=name):
            raise EstimateError(f"expression {text!r} in the project uses {name!r}, which nothing defines")
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -of(operand)
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() | ast.Mult() | ast.Div() as sign, right=right):
            return _OPERATORS[type(sign)](of(left), of(right))
        case ast.Call(func=ast.Name(id="DIV_ROUNDUP"), args=[first, second], keywords=[]):
            return -(-of(first) // max(of(second), 1))
    raise ValueError("of another form")
