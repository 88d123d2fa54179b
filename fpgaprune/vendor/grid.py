"""Reads tables drawn with `+---+` and `|`; names the columns of AMD's HLS tools, from 2018 to today."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from fpgaprune.errors import ReportError
from fpgaprune.measure import Cycles, Resources
from fpgaprune.vendor.cells import NOTHING, parse_count, shorten

_BORDER = frozenset("+-=")
_MOST_COLUMNS = 200


@dataclass(frozen=True, slots=True)
class PrintedTable:
    """A table of a report.

    Attributes:
        where: file and line of its first border, for messages.
        columns: header texts; the text of a merged header comes first, as in `Latency (cycles) min`.
        rows: cells as printed, with their indentation.
    """

    where: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def index(self, *names: str) -> int | None:
        """Return the index of the column with the first of `names` that the table has; None if it has none."""
        known = [_plain(column) for column in self.columns]
        return next((known.index(_plain(name)) for name in names if _plain(name) in known), None)

    def require(self, *names: str) -> int:
        """Return the `index` of a column that must be there.

        Raises:
            ReportError: the table has no such column.
        """
        at = self.index(*names)
        if at is None:
            raise ReportError(
                f"{self.where}: no column {' or '.join(map(repr, names))}; the table has "
                f"{', '.join(shorten(column) for column in self.columns[:20] if column)}"
            )
        return at

    def count(self, row: Sequence[str], *names: str) -> int | None:
        """Return the whole number of `row` in that column; None if there is no such column or no figure in it."""
        at = self.index(*names)
        return None if at is None else parse_count(row[at], f"{self.where}: {shorten(row[0])}, {names[0]!r}")

    def text(self, row: Sequence[str], *names: str) -> str | None:
        """Return the text of `row` in that column; None if there is no such column or no text in it."""
        at = self.index(*names)
        return None if at is None else row[at].strip() or None


def read_table(lines: Sequence[str], start: int, source: str, *, wraps: bool = False) -> tuple[PrintedTable, int]:
    """Return the table whose first border is `lines[start]`, and the number of the line after it.

    Args:
        lines: lines of the whole report.
        start: number of the table's first line.
        source: the file, for messages.
        wraps: whether a row without any figure continues the cells of the row above it.

    Raises:
        ReportError: the table has no closing border, or a row has not as many cells as the header.
    """
    where = f"{source}, line {start + 1}"
    end = skip_table(lines, start, source)
    borders = [at for at in range(start, end) if is_border(lines[at])]
    # The border with the most parts counts: some tools do not divide the border above a merged header.
    edges = max((_cuts(lines[at]) for at in (borders[1], *range(borders[0], borders[1]))), key=len)
    if len(edges) > _MOST_COLUMNS:
        raise ReportError(f"{where}: the table has {len(edges) - 1} columns; wanted the table of a vendor tool")
    columns = _columns(lines[borders[0] + 1 : borders[1]], edges)
    rows: list[tuple[str, ...]] = []
    for at in range(borders[1] + 1, end):
        if is_border(lines[at]):
            continue
        cells = _cells(lines[at], edges, f"{source}, line {at + 1}")
        if wraps and rows and _continues(cells, rows[-1]):
            rows[-1] = tuple(a.rstrip() + b.strip() for a, b in zip(rows[-1], cells, strict=True))
        else:
            rows.append(cells)
    return PrintedTable(where, columns, tuple(rows)), end


def skip_table(lines: Sequence[str], start: int, source: str) -> int:
    """Return the number of the line after the table that begins at `lines[start]`; its cells are not read.

    Raises:
        ReportError: the table has no closing border.
    """
    end = start
    while end < len(lines) and _belongs(lines[end]):
        end += 1
    if not is_border(lines[end - 1]) or sum(is_border(lines[at]) for at in range(start, min(start + 6, end))) < 2:
        raise ReportError(
            f"{source}, line {start + 1}: the table has no closing line; the report is cut off; wanted the whole file"
        )
    return end


def iterate_tables(lines: Sequence[str], source: str, *, wraps: bool = False) -> Iterator[tuple[int, PrintedTable]]:
    """Yield the number of the first line of every table of a report, and the table."""
    at = 0
    while at < len(lines):
        if is_border(lines[at]):
            table, after = read_table(lines, at, source, wraps=wraps)
            yield at, table
            at = after
        else:
            at += 1


def is_border(line: str) -> bool:
    """Return whether a line is a horizontal line of a table."""
    bare = line.strip()
    return len(bare) > 2 and bare[0] == bare[-1] == "+" and "-" in bare and _BORDER.issuperset(bare)


def _belongs(line: str) -> bool:
    bare = line.strip()
    return bare.startswith("|") or is_border(line) or (bare.startswith("+") and bare.endswith("+") and len(bare) > 2)


def _cuts(line: str) -> list[int]:
    signs = "|" if line.strip().startswith("|") else "|+"
    return [at for at, sign in enumerate(line) if sign in signs]


def _columns(header: Sequence[str], edges: Sequence[int]) -> tuple[str, ...]:
    spans = list(itertools.pairwise(edges))
    names = [""] * len(spans)
    for line in header:
        cuts = _cuts(line)
        for left, right in itertools.pairwise(cuts):
            text = " ".join(line[left + 1 : right].split())
            if not text.strip("-"):
                continue
            for number, (a, b) in enumerate(spans):
                if left <= (a + b) / 2 <= right:
                    names[number] = f"{names[number]} {text}".strip()
    return tuple(names)


def _cells(line: str, edges: Sequence[int], where: str) -> tuple[str, ...]:
    if len(line) > edges[-1] and all(line[at] == "|" for at in edges):
        return tuple(line[a + 1 : b].rstrip() for a, b in itertools.pairwise(edges))
    # A wide cell shifts the cells behind it; the separators still count them.
    bare = line.strip()
    cells = tuple(cell.rstrip() for cell in bare[1:-1].split("|"))
    if not bare.endswith("|") or len(cells) != len(edges) - 1:
        raise ReportError(f"{where} has {len(cells)} cells; wanted {len(edges) - 1}, as the header has")
    return cells


def _continues(cells: Sequence[str], above: Sequence[str]) -> bool:
    figures = [number for number, cell in enumerate(above) if _is_figure(cell)]
    return bool(figures) and any(cells) and not any(cells[number] for number in figures)


def _is_figure(cell: str) -> bool:
    bare = cell.strip()
    return bare[:1].isdigit() or bare.startswith("~") or (bool(bare) and bare.casefold() in NOTHING)


def _plain(name: str) -> str:
    return " ".join(name.replace("*", " ").split()).casefold()


# Resource -> the names of its column.
COLUMNS = {
    "lut": ("LUT", "LUTs"),
    "ff": ("FF", "FFs"),
    "dsp": ("DSP", "DSP48E", "DSP48", "DSP58", "DSPs"),
    "bram18": ("BRAM_18K", "BRAM"),
    "uram": ("URAM",),
}


def usage_of(
    table: PrintedTable, row: Sequence[str], columns: Mapping[str, tuple[str, ...]] = MappingProxyType(COLUMNS)
) -> Resources[int]:
    """Return the resources of one row; `columns` names the columns of each resource."""
    return Resources(**{name: table.count(row, *names) for name, names in columns.items()})


def cycles_of(table: PrintedTable, row: Sequence[str]) -> Cycles:
    """Return the latency and interval of one row of a csynth or co-simulation table."""
    latency = ("Latency (cycles)", "Latency", "Latency(Clock Cycles)", "Latency (Clock Cycles)")
    interval = ("Interval", "Interval(Clock Cycles)", "Interval (Clock Cycles)", "Interval (cycles)")
    return Cycles(
        latency_min=table.count(row, *(f"{name} min" for name in latency)),
        latency_max=table.count(row, *(f"{name} max" for name in latency)),
        interval_min=table.count(row, *(f"{name} min" for name in interval)),
        interval_max=table.count(row, *(f"{name} max" for name in interval)),
    )
