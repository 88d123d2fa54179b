"""`Column` and `Table`: figures of different stages never share a column."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from fpgaprune import measure
from fpgaprune.errors import ReportError
from fpgaprune.measure import Figure, Measurement, Stage
from fpgaprune.report.numbers import DASH, count_text

# How a page writes a resource.
LABELS = {**measure.LABELS, "bram18": "BRAM 18 Kb"}


@dataclass(frozen=True)
class Column:
    """One column of a table as text.

    Attributes:
        heading: heading of this column.
        cells: one text for each row.
        group: heading over several columns, or "".
        numeric: whether the cells are right-aligned.
        stage: the stage of all its figures; None if it holds no measured or estimated figures.
    """

    heading: str
    cells: tuple[str, ...]
    group: str = ""
    numeric: bool = True
    stage: Stage | None = None

    @classmethod
    def of(
        cls,
        heading: str,
        names: str | Sequence[str],
        measured: Sequence[Measurement[Any] | str | None],
        *,
        group: str = "",
        show: Callable[[Figure], str] = lambda figure: count_text(figure.value),
    ) -> Column:
        """Return the column of one resource of each measurement; a text stays as it is, an unknown count is a dash.

        `names` is one resource for all rows, or one for each row.

        Raises:
            ReportError: the measurements are of several stages.
        """
        stages = list(dict.fromkeys(each.stage for each in measured if isinstance(each, Measurement)))
        if len(stages) > 1:
            raise ReportError(
                f"column {heading!r} of stage {stages[0]} was given a figure of stage {stages[1]}; "
                "figures of different stages never share a column"
            )

        def cell(each: Measurement[Any] | str | None, name: str) -> str:
            if isinstance(each, str):
                return each
            figure = None if each is None else each.figure(name)
            return DASH if figure is None else show(figure)

        rows = [names] * len(measured) if isinstance(names, str) else names
        return cls(heading, tuple(map(cell, measured, rows)), group=group, stage=stages[0] if stages else None)


@dataclass(frozen=True)
class Table:
    """Columns of equal length under a caption.

    Attributes:
        caption: what the figures are.
        columns: the first one names the rows.
        note: sentences below the table, or "".
        totals: whether the last row is the sum of the others.
    """

    caption: str
    columns: tuple[Column, ...]
    note: str = ""
    totals: bool = False

    def __post_init__(self) -> None:
        lengths = {len(column.cells) for column in self.columns}
        if len(lengths) != 1:
            raise ReportError(f"table {self.caption!r} has columns of {sorted(lengths)} rows; wanted equal lengths")
        stages = {column.stage for column in self.columns} - {None}
        if len(stages) > 1:
            raise ReportError(
                f"table {self.caption!r} compares stages {', '.join(sorted(map(str, stages)))}; wanted one"
            )

    @property
    def rows(self) -> list[tuple[str, ...]]:
        """The cells row by row."""
        return list(zip(*(column.cells for column in self.columns), strict=True))

    @property
    def groups(self) -> list[tuple[str, int]]:
        """Each heading over neighbouring columns with the number of columns; empty if there are none."""
        spans: list[tuple[str, int]] = []
        for column in self.columns:
            if spans and column.group and spans[-1][0] == column.group:
                spans[-1] = (column.group, spans[-1][1] + 1)
            else:
                spans.append((column.group, 1))
        return spans if any(name for name, _ in spans) else []

    def shown_columns(self) -> Table:
        """Leave out the columns that hold only dashes."""
        kept = [c for i, c in enumerate(self.columns) if i == 0 or any(cell != DASH for cell in c.cells)]
        return replace(self, columns=tuple(kept))
