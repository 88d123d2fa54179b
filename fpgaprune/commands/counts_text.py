"""Prints what a design takes at each stage."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fpgaprune.terminal import print_line, show_table

if TYPE_CHECKING:
    from fpgaprune.measure import StagedCounts


def print_counts(counts: StagedCounts) -> None:
    """Prints the table of one design in one layout: estimated, synthesised, placed, without and with its harness."""
    from fpgaprune.measure import HEADERS

    # A title is folded at the width of its table.
    print_line(counts.title, "italic")
    show_table(HEADERS, counts.rows())
    print_line(f"80 % ranges of the estimate: {counts.ranges()}")
