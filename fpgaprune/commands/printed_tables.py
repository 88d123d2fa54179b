"""Prints tables: what a design takes at each stage, those of the report, and what would make a design fit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console

from fpgaprune.commands.terminal import Cell, folded, print_line, show_table

if TYPE_CHECKING:
    from fpgaprune.layout import Advice
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


# Suggestions that the terminal shows.
SHOWN = 3


def print_advice(advice: Advice, shown: int = SHOWN) -> None:
    """Print what is short and the changes that help most; nothing if nothing is short."""
    from fpgaprune.report import shortage_lines, suggested_changes

    if not advice.needed:
        return
    suggested = suggested_changes(advice)
    lines = [f"\nwhat would make {advice.design} fit", *shortage_lines(advice)]
    for change in suggested[:shown]:
        lines += [f"\n{change.number}. {change.knob}: {change.verdict}", *filter(None, (change.cost, change.figures))]
        lines += [change.place, *(f"    {line}" for line in change.change.splitlines())]
    if len(suggested) > shown:
        lines.append(f"\n{len(suggested) - shown} more changes; --json and the report of a run show them")
    width = Console().width
    for line in (*lines, *advice.notes):
        # Text to copy is not folded.
        print_line(line if line.startswith("    ") else folded(line, width), whole=True)
