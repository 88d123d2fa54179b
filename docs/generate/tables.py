"""Reads the tables of a page of docs/."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

DOCS = Path(__file__).parents[1]
Row = dict[str, str]


def rows_of(page: str, *headings: str, number_of_table: int = 0) -> list[Row]:
    """The rows of a table of `page` whose columns include `headings`, as heading to cell; the first such table is 0.

    Raises:
        ValueError: the page has no such table.
    """
    tables = _tables((DOCS / page).read_text(encoding="utf-8"))
    fitting = [table for table in tables if set(headings) <= set(_cells(table[0]))]
    if len(fitting) <= number_of_table:
        raise ValueError(f"{page} has {len(fitting)} tables with the columns {', '.join(headings)}")
    names, _, *lines = map(_cells, fitting[number_of_table])
    return [dict(zip(names, line, strict=True)) for line in lines]


def number(cell: str) -> float | None:
    """The first number in a cell, without its thousands separators; None if it has none."""
    found = re.search(r"-?\d[\d,]*(?:\.\d+)?", cell)
    return float(found[0].replace(",", "")) if found else None


def _tables(text: str) -> Iterator[list[str]]:
    lines: list[str] = []
    for line in [*text.splitlines(), ""]:
        if line.startswith("|"):
            lines.append(line)
        elif lines:
            yield lines
            lines = []


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]
