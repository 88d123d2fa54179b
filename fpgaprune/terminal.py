"""What the terminal shows: tables whose figures are never cut, and a line and a bar for each stage."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

Cell = str | int | float | None


def show_table(headers: Sequence[str], rows: Iterable[Sequence[Cell]], title: str | None = None) -> None:
    """The rows stand under `headers`; figures to the right and whole, text wrapped where the window is narrow.

    Args:
        headers: one for each column.
        rows: text, or figures; None is a dash. Where the first cell of the last row is `total`, it stands out.
        title: above the table.
    """
    cells = list(rows)
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for index, header in enumerate(headers):
        column = [row[index] for row in cells]
        is_figure = any(isinstance(cell, int | float) for cell in column)
        widest = max([len(header), *(len(_text(cell)) for cell in column)], default=0)
        longest_word = max((len(word) for cell in column for word in _text(cell).split()), default=0)
        table.add_column(
            header,
            justify="right" if is_figure else "left",
            no_wrap=is_figure,
            overflow="fold",
            min_width=widest if is_figure else min(longest_word, 14),
        )
    for row in cells:
        # Text, not markup: names may hold square brackets.
        table.add_row(*(Text(_text(cell)) for cell in row), style="bold" if row[0] == "total" else None)
    Console().print(table)


def _text(cell: Cell) -> str:
    if cell is None:
        return "-"
    return cell if isinstance(cell, str) else f"{round(cell):,}"


class Watcher:
    """Shows each stage on a line of its own, and a bar while it runs."""

    def __init__(self, quiet: bool) -> None:
        """Shows nothing where `quiet`, and no bars where standard error is no terminal."""
        self._console = Console(stderr=True, quiet=quiet)
        self._bars = Progress(
            SpinnerColumn(),
            TextColumn("{task.description:<10}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[note]}"),
            console=self._console,
            transient=True,
            disable=quiet or not self._console.is_terminal,
        )
        self._task: Any = None

    def __enter__(self) -> Watcher:
        self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bars.stop()

    def stage(self, name: str, state: str) -> None:
        """Stage `name` is now `running`, `done` or `unchanged`."""
        if self._task is not None:
            self._bars.remove_task(self._task)
            self._task = None
        if state == "running":
            self._task = self._bars.add_task(name, total=None, note="")
            if not self._console.is_terminal:
                self._console.print(f"{name} ...")
            return
        mark = "[green]done[/]" if state == "done" else "[dim]unchanged[/]"
        self._console.print(f"{name:<10} {mark}", highlight=False)

    def step(self, done: int, total: int, note: str = "") -> None:
        """The running stage has finished `done` of `total` steps."""
        if self._task is not None:
            self._bars.update(self._task, completed=done, total=total, note=note)
