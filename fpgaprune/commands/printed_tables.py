"""Prints tables: what a design takes at each stage, and those of the report."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fpgaprune.commands.terminal import Cell, print_line, show_table

if TYPE_CHECKING:
    from fpgaprune.measure import StagedCounts
    from fpgaprune.report import Table


def print_counts(counts: StagedCounts) -> None:
    """Print the table of one design in one layout: estimated, synthesised, placed, without and with its harness."""
    from fpgaprune.measure import HEADERS

    # A title is folded at the width of its table.
    print_line(counts.title, "italic")
    show_table(HEADERS, counts.rows())
    print_line(f"80 % ranges of the estimate: {counts.ranges()}")


def print_table(table: Table) -> None:
    """Print a table of the report with its caption and its note."""

    def cell(text: str) -> Cell:
        digits = text.replace(",", "")
        return int(digits) if digits.isdecimal() else text

    print_line(table.caption, "italic")
    headers = [column.heading.replace(" ", "\n") if column.numeric else column.heading for column in table.columns]
    show_table(headers, [tuple(map(cell, row)) for row in table.rows])
    if table.note:
        print_line(table.note)
