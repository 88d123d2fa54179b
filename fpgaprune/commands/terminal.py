"""What the terminal shows: lines, tables whose figures are never cut, JSON, and problems."""

from __future__ import annotations

import json
import re
import sys
import textwrap
from collections.abc import Sequence
from itertools import zip_longest

from rich.console import Console
from rich.table import Table
from rich.text import Text

Cell = str | int | float | None
_TOGETHER = "\N{NO-BREAK SPACE}"
# `report      runs/digits/report.html`: a word or two in a column of their own.
_LABEL = re.compile(r"[a-z][a-z ]{0,13}(?<=  )")


def show_table(headers: Sequence[str], rows: Sequence[Sequence[Cell]], title: str | None = None) -> None:
    """Print a table. Figures are right-aligned, as 1,303,680; in a narrow window as 1.30M.

    Args:
        headers: one for each column; a line break makes a header of two lines.
        rows: text, or figures; None is a dash. A row whose first cell begins with `total` stands out.
        title: above the table.
    """
    console = Console()
    titles = [max(map(len, header.splitlines())) for header in headers]
    cells = [max((len(_whole(cell)) for cell in column), default=0) for column in zip(*rows, strict=True)]
    natural = sum(max(pair) + 2 for pair in zip_longest(titles, cells, fillvalue=0)) - 2
    # One space between columns, before any cell is folded.
    close = natural > console.width
    text = _short if natural - (len(headers) - 1) * close > console.width else _whole
    table = Table(title=title, title_justify="left", box=None, pad_edge=False, collapse_padding=close)
    for header, title_width, column in zip(headers, titles, zip(*rows, strict=True), strict=False):
        if any(isinstance(cell, int | float) for cell in column):
            widest = max(title_width, *(len(text(cell)) for cell in column))
            table.add_column(header, justify="right", no_wrap=True, min_width=widest)
        else:
            table.add_column(header, overflow="fold")
    for row in rows:
        # Text, not markup: names may hold square brackets.
        table.add_row(*(Text(text(cell)) for cell in row), style="bold" if str(row[0]).startswith("total") else None)
    console.print(table)


def print_line(text: str, style: str = "", *, whole: bool = False) -> None:
    """Print `text`, without reading it as markup: folded at words in a window, else on one line.

    `whole` is for text to copy, which is never folded.
    """
    console = Console()
    shown = text if whole or not sys.stdout.isatty() else folded(text, console.width)
    console.print(Text(shown, style=style), soft_wrap=True)


def folded(text: str, width: int) -> str:
    """`text` in lines of at most `width` characters, as far as its words allow.

    A number and its % stay together. What follows a label stays to the right of it.
    """
    # textwrap breaks lines at ordinary spaces only.
    label = _LABEL.match(text)
    size = label.end() if label else 0
    together = text[:size].replace(" ", _TOGETHER) + text[size:].replace(" %", f"{_TOGETHER}%")
    lines = (
        textwrap.fill(line, width, subsequent_indent=" " * size, break_on_hyphens=False, break_long_words=False)
        for line in together.split("\n")
    )
    return "\n".join(lines).replace(_TOGETHER, " ")


def print_json(content: object) -> None:
    """Print `content` as JSON with sorted keys."""
    sys.stdout.write(json.dumps(content, indent=1, sort_keys=True) + "\n")


def _whole(cell: Cell) -> str:
    if cell is None:
        return "-"
    return cell if isinstance(cell, str) else f"{round(cell):,}"


def _short(cell: Cell) -> str:
    if cell is None or isinstance(cell, str) or abs(cell) < 10_000:
        return _whole(cell)
    scale, unit = (1e6, "M") if abs(cell) >= 999_500 else (1e3, "k")
    return f"{cell / scale:.3g}{unit}"


def print_problem(kind: str, text: str) -> None:
    """Print the kind of a problem and its text on the error output."""
    # Names in files may hold commands for the terminal.
    safe = "".join(sign if sign.isprintable() or sign == "\n" else repr(sign)[1:-1] for sign in text)
    # The square brackets of slice notation are not markup.
    plain = safe.replace("[", r"\[")
    Console(stderr=True).print(f"[bold red]{kind}:[/] {plain}", soft_wrap=True, highlight=False)
