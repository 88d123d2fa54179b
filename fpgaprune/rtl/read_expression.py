"""`parse_expression`: an expression of our Verilog as a tree, and `value_of`: what it is for many numbers at once."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpgaprune.errors import CertificateError
from fpgaprune.rtl.table_index import index_of

# ("value", n) · ("name", text) · ("bits", name, high, low, signed) · (operator, left, right) · ("if", test, then, else)
# · ("rom", module, address) · ("table", list of entries, parts of the index, lowest first). A name is a value of the
# datapath, or `in_data`.
Tree = tuple[Any, ...]

_TOKEN = re.compile(
    r"\s*(?:(?P<literal>\d+'(?:sd?\d+|s?h[0-9a-f]+|b[01]|d\d+))|(?P<call>\$signed)|(?P<name>[a-z]\w*)|(?P<number>\d+)|"
    r"(?P<mark><<<|\|\||[-+*<>?:(){}\[\],]))"
)
_LITERAL = re.compile(r"(\d+)'(s?)([bdh]?)([0-9a-f]+)")
_BASES = {"b": 2, "d": 10, "h": 16, "": 10}


class UndecidedError(CertificateError):
    """The text may be right, but this proof does not reach it."""


def parse_expression(text: str) -> Tree:
    """Return the tree of an expression.

    Raises:
        UndecidedError: the text is in no form that `to_verilog` writes.
    """
    return _Parser(text).whole()


class _Parser:
    def __init__(self, text: str) -> None:
        self._text, self._at = text, 0
        self._tokens: list[str] = []
        place = 0
        while place < len(text.rstrip()):
            mark = _TOKEN.match(text, place)
            if mark is None:
                raise self._problem()
            self._tokens.append(mark[0].strip())
            place = mark.end()

    def whole(self) -> Tree:
        tree = self._choice()
        if self._at < len(self._tokens):
            raise self._problem()
        return tree

    def _problem(self) -> UndecidedError:
        return UndecidedError(f"{self._text!r} is in no form that to_verilog writes")

    def _is(self, *marks: str) -> str | None:
        if self._at < len(self._tokens) and self._tokens[self._at] in marks:
            self._at += 1
            return self._tokens[self._at - 1]
        return None

    def _next(self) -> str:
        if self._at == len(self._tokens):
            raise self._problem()
        self._at += 1
        return self._tokens[self._at - 1]

    def _want(self, mark: str) -> None:
        if self._is(mark) is None:
            raise self._problem()

    def _number(self) -> int:
        mark = self._next()
        if not mark.isdigit():
            raise self._problem()
        return int(mark)

    def _choice(self) -> Tree:
        test = self._row(self._compared, "||")
        if self._is("?") is None:
            return test
        then = self._choice()
        self._want(":")
        return ("if", test, then, self._choice())

    def _compared(self) -> Tree:
        left = self._added()
        mark = self._is("<", ">")
        return left if mark is None else (mark, left, self._added())

    def _added(self) -> Tree:
        return self._row(self._times, "+", "-")

    def _times(self) -> Tree:
        return self._row(self._shifted, "*")

    def _shifted(self) -> Tree:
        left = self._negated()
        return left if self._is("<<<") is None else ("<<<", left, self._number())

    def _negated(self) -> Tree:
        return ("-", ("value", 0), self._single()) if self._is("-") else self._single()

    def _row(self, part: Callable[[], Tree], *marks: str) -> Tree:
        tree = part()
        while mark := self._is(*marks):
            tree = (mark, tree, part())
        return tree

    def _single(self) -> Tree:
        mark = self._next()
        if mark == "(":
            inner = self._choice()
            self._want(")")
            return inner
        if mark == "$signed":
            self._want("(")
            inner = self._choice()
            self._want(")")
            return self._signed(inner)
        if mark == "{":
            if self._next() != "1'b0":
                raise self._problem()
            self._want(",")
            inner = self._choice()
            self._want("}")
            # A sign bit of 0 before bits, or before a comparison.
            if inner[0] not in ("bits", "<", ">"):
                raise self._problem()
            return inner
        if _LITERAL.fullmatch(mark):
            return _literal(mark)
        if not mark[0].isalpha():
            raise self._problem()
        if self._is("[") is None:
            return ("name", mark)
        high = self._number()
        low = high if self._is(":") is None else self._number()
        self._want("]")
        return ("bits", mark, high, low, False)

    def _signed(self, inner: Tree) -> Tree:
        if inner[0] == "bits":
            return ("bits", *inner[1:4], True)
        if inner[0] == "value":
            return ("value", to_signed(inner[1], inner[2]), inner[2]) if len(inner) == 3 else inner
        raise self._problem()


def _literal(mark: str) -> Tree:
    found = _LITERAL.fullmatch(mark)
    width, signed, base, digits = found.groups() if found else ("0", "", "", "0")
    value = int(digits, _BASES[base])
    return ("value", to_signed(value, int(width)) if signed else value, int(width))


def to_signed(value: int, width: int) -> int:
    """Return the lowest `width` bits of `value` in two's complement."""
    value &= (1 << width) - 1
    return value - (1 << width) if value >> (width - 1) else value


def names_of(tree: Tree) -> Iterator[str]:
    """Yield every name that an expression reads."""
    if tree[0] in ("name", "bits"):
        yield tree[1]
    for part in tree[1:]:
        if isinstance(part, tuple):
            yield from names_of(part)


def value_of(
    tree: Tree, read: Callable[[str], NDArray[np.int64]], tables: Mapping[str, Sequence[int]]
) -> NDArray[np.int64]:
    """Return what an expression is, without the width of what it is assigned to.

    Args:
        tree: as `parse_expression` gives it.
        read: returns the numbers that a name has.
        tables: the entries of each memory.
    """
    kind = tree[0]
    if kind == "value":
        return np.asarray(tree[1], np.int64)
    if kind == "name":
        return read(tree[1])
    if kind == "bits":
        _, name, high, low, signed = tree
        return sliced(read(name), high, low, signed)
    parts = [value_of(part, read, tables) for part in tree[1:] if isinstance(part, tuple)]
    if kind == "if":
        return np.where(parts[0] != 0, parts[1], parts[2])
    if kind == "rom":
        return np.asarray(tables[tree[1]], np.int64)[parts[0]]
    if kind == "table":
        entries: NDArray[np.int64] = np.asarray(tree[1], np.int64)[index_of(parts, [part[2] + 1 for part in tree[2:]])]
        return entries
    left, right = parts[0], parts[1] if len(parts) > 1 else np.asarray(tree[2], np.int64)
    operations: Mapping[str, Callable[[Any, Any], Any]] = {
        "+": np.add,
        "-": np.subtract,
        "*": np.multiply,
        "<<<": np.left_shift,
        "<": np.less,
        ">": np.greater,
        "||": np.logical_or,
    }
    return np.asarray(operations[kind](left, right)).astype(np.int64)


def sliced(values: NDArray[np.int64], high: int, low: int, signed: bool) -> NDArray[np.int64]:
    """Return bits `high` to `low` of numbers in two's complement."""
    found = values >> low & ((1 << (high - low + 1)) - 1)
    return np.where(found >> (high - low), found - (1 << (high - low + 1)), found) if signed else found
