"""Reads tables whose columns are marked by runs of dashes under the header, without vertical lines."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from fpgaprune.errors import ReportError
from fpgaprune.vendor.cells import shorten

# No report has a table of more than a hundred columns.
_RULE = re.compile(r"\s*-+(\s+-+){1,99}\s*")
_RUN = re.compile(r"-+")
_WORDS = re.compile(r"\S+(?: \S+)*")


@dataclass(frozen=True, slots=True)
class RuledTable:
    """A table of a report.

    Attributes:
        where: file and line of the header, for messages.
        columns: header texts.
        rows: column -> text; empty cells are left out.
    """

    where: str
    columns: tuple[str, ...]
    rows: tuple[dict[str, str], ...]

    def get(self, row: dict[str, str], name: str) -> str | None:
        """The text of `row` in column `name`; None if the cell is empty.

        Raises:
            ReportError: the table has no such column.
        """
        if name not in self.columns:
            raise ReportError(
                f"{self.where}: no column {name!r}; the table has {', '.join(map(shorten, self.columns[:20]))}"
            )
        return row.get(name)


def is_rule(line: str) -> bool:
    """Whether `line` consists of two or more runs of dashes."""
    return _RULE.fullmatch(line) is not None


def read_floating(lines: Sequence[str], rule: int, source: str) -> RuledTable:
    """The table below the rule `lines[rule]`, whose cells may be wider than its dashes (Vivado).

    Two or more spaces separate cells. A cell belongs to the column whose dashes it overlaps most, or is nearest to.
    The table ends at the first empty line.
    """
    spans = [match.span() for match in _RUN.finditer(lines[rule])]
    columns = [""] * len(spans)
    for match in _WORDS.finditer(lines[rule - 1] if rule else ""):
        columns[_nearest(match.span(), spans)] = match[0]
    rows = []
    for line in lines[rule + 1 :]:
        if not line.strip():
            break
        row: dict[str, str] = {}
        for match in _WORDS.finditer(line):
            row.setdefault(columns[_nearest(match.span(), spans)], match[0])
        rows.append(row)
    return RuledTable(f"{source}, line {rule}", tuple(columns), tuple(rows))


def _nearest(cell: tuple[int, int], spans: Sequence[tuple[int, int]]) -> int:
    def gap(number: int) -> int:
        # Negative if they overlap.
        return max(spans[number][0] - cell[1], cell[0] - spans[number][1])

    return min(range(len(spans)), key=gap)
