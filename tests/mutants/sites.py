"""Mutants of a package: one operator, number or condition of its sources is another one, as cosmic-ray makes them."""

from __future__ import annotations

import ast
import hashlib
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from cosmic_ray.ast import Visitor, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names

# Removed decorators and exchanged names break nearly every test, and so tell little of the tests.
_LEFT_OUT = ("RemoveDecorator", "VariableReplacer", "VariableInserter")
# An addition becomes no shift, which floats refuse; `==` becomes no `is`, which is the same for small numbers.
_KINDS = [{"Add", "Sub", "Mul", "Div", "FloorDiv", "Mod", "Pow"}, {"RShift", "LShift", "BitOr", "BitAnd", "BitXor"}]


def _is_likely(name: str) -> bool:
    words = name.split("_")
    if words[0] == "ReplaceBinaryOperator":
        return any({words[1], words[2]} <= kind for kind in _KINDS)
    if words[0] == "ReplaceComparisonOperator":
        return words[1].startswith("Is") == words[2].startswith("Is")
    return not name.endswith(_LEFT_OUT)


OPERATORS = {
    name.partition("/")[2]: get_operator(name)() for name in operator_names() if _is_likely(name.partition("/")[2])
}


@dataclass(frozen=True)
class Mutant:
    """One change of one file.

    Attributes:
        path: below the root of the checkout. line: where, from 1.
        old, new: the changed lines, before and after, without their indentation.
        operator: cosmic-ray's name of the change. occurrence: which of its places in the file.
    """

    path: str
    line: int
    old: str
    new: str
    operator: str
    occurrence: int

    def source(self, root: Path) -> str:
        """The whole changed file."""
        changed = mutate_code((root / self.path).read_text(), OPERATORS[self.operator], self.occurrence)
        if changed is None:
            raise LookupError(f"{self.path} has no occurrence {self.occurrence} of {self.operator}")
        return str(changed)


class _Places(Visitor):  # type: ignore[misc]
    """Every place that an operator changes: its start, the operator, and how many it changed before."""

    def __init__(self) -> None:
        self.found: list[tuple[tuple[int, int], str, int]] = []
        self._before: dict[str, int] = defaultdict(int)

    def visit(self, node):
        for name, operator in OPERATORS.items():
            for start, _ in operator.mutation_positions(node):
                self.found.append((start, name, self._before[name]))
                self._before[name] += 1
        return node


def _annotations(text: str) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Start and end of each annotation and decorator: `int | None` and `dataclass(frozen=True)` compute nothing."""
    notes = []
    for node in ast.walk(ast.parse(text)):
        notes += [getattr(node, name, None) for name in ("annotation", "returns")]
        notes += getattr(node, "decorator_list", [])
    return [
        ((note.lineno, note.col_offset), (note.end_lineno or 0, note.end_col_offset or 0))
        for note in notes
        if isinstance(note, ast.expr)
    ]


def _mutants(root: Path, path: Path) -> Iterator[list[Mutant]]:
    """The mutants of each place of a file."""
    text = path.read_text()
    places, notes = _Places(), _annotations(text)
    places.walk(get_ast(text))
    at: dict[tuple[int, int], list[tuple[str, int]]] = defaultdict(list)
    for start, name, before in places.found:
        if not any(first <= start < last for first, last in notes):
            at[start].append((name, before))
    name = path.relative_to(root).as_posix()
    for start, changes in at.items():
        yield [Mutant(name, start[0], "", "", operator, before) for operator, before in changes]


def _rank(*words: object) -> str:
    return hashlib.sha256("\0".join(map(str, words)).encode()).hexdigest()


def _with_lines(root: Path, mutant: Mutant) -> Mutant:
    before, after = (root / mutant.path).read_text().splitlines(), mutant.source(root).splitlines()
    first = next(i for i, (old, new) in enumerate(zip(before, after, strict=False)) if old != new)
    last = next(i for i, (old, new) in enumerate(zip(before[::-1], after[::-1], strict=False)) if old != new)
    old, new = (lines[first : max(first + 1, len(lines) - last)] for lines in (before, after))
    return Mutant(mutant.path, mutant.line, _plain(old), _plain(new), mutant.operator, mutant.occurrence)


def _plain(lines: list[str]) -> str:
    return " ".join(" ".join(line.split()) for line in lines)


def _is_python(root: Path, mutant: Mutant) -> bool:
    """Whether Python reads the changed file: `{**a, %b}`, where `**` was no power, is none, and tells nothing."""
    try:
        ast.parse(mutant.source(root))
    except SyntaxError:
        return False
    return True


def sample(root: Path, files: list[Path], number: int, seed: int) -> list[Mutant]:
    """`number` random places of `files`, each with one of its mutants; the same for the same seed.

    Places are drawn alike: an addition, which eleven operators may replace, is drawn as often as a number. A place is
    drawn by the text of its line, so that a change elsewhere leaves the sample as it is.
    """
    drawn = []
    for path in files:
        lines = path.read_text().splitlines()
        for place, mutants in enumerate(_mutants(root, path)):
            line = lines[mutants[0].line - 1].strip()
            same = sum(1 for earlier in lines[: mutants[0].line - 1] if earlier.strip() == line)
            on_line = _rank(seed, mutants[0].path, line, same)
            drawn.append((on_line, place, mutants))
    ranked, number_on_line = [], defaultdict(int)
    for on_line, _, mutants in sorted(drawn, key=lambda entry: entry[:2]):
        number_on_line[on_line] += 1
        rank = _rank(on_line, number_on_line[on_line])
        ranked.append((rank, mutants[int(rank[:8], 16) % len(mutants)]))
    ranked.sort(key=lambda entry: entry[0])
    mutants = (mutant for _, mutant in ranked if _is_python(root, mutant))
    return [_with_lines(root, mutant) for mutant in islice(mutants, number)]
