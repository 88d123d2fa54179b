"""The text that a command prints where a design does not fit."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from rich.console import Console

if TYPE_CHECKING:
    from fpgaprune.measure import Advice

# The terminal shows so many suggestions.
SHOWN = 3


def print_advice(advice: Advice, shown: int = SHOWN) -> None:
    """What is short and the changes that help most are printed; nothing, where nothing is short."""
    from fpgaprune.report import shortage_lines, suggested_changes

    if not advice.needed:
        return
    suggested = suggested_changes(advice)
    lines = [f"\nwhat would make {advice.design} fit", *shortage_lines(advice)]
    for change in suggested[:shown]:
        lines += [f"\n{change.number}. {change.knob}: {change.verdict}", *filter(None, (change.cost, change.figures))]
        lines += [change.place, *(f"    {line}" for line in change.change.splitlines())]
    if len(suggested) > shown:
        lines.append(f"\n{len(suggested) - shown} more with --json, and in the report of a run")
    console = Console()
    for line in (*lines, *advice.notes):
        # Text to copy is not folded.
        folded = line if line.startswith("    ") else _folded(line, console.width)
        console.print(folded, highlight=False, markup=False, soft_wrap=True)


def _folded(text: str, width: int) -> str:
    """`text` in lines of `width` characters; a number and its % stay together."""
    # textwrap breaks lines at ordinary spaces only.
    together = text.replace(" %", "\N{NO-BREAK SPACE}%")
    lines = (textwrap.fill(line, width, break_on_hyphens=False) for line in together.split("\n"))
    return "\n".join(lines).replace("\N{NO-BREAK SPACE}", " ")
