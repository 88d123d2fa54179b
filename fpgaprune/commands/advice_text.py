"""Prints what would make a design fit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console

from fpgaprune.commands.terminal import folded, print_line

if TYPE_CHECKING:
    from fpgaprune.layout import Advice

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
