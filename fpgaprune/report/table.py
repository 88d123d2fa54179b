"""`Figure`, `Column` and `Table`: figures of different stages never share a column."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from fpgaprune.errors import ReportError
from fpgaprune.report.numbers import DASH, count_text

# What each stage of a figure is called in a sentence.
STAGE_NAMES = {"csynth": "C synthesis", "synth": "logic synthesis", "route": "place and route"}


@dataclass(frozen=True)
class Figure:
    """A number of one `stage` with the range it is expected in; None is unknown."""

    stage: str
    value: float | None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Column:
    """One column of a table, as text.

    Attributes:
        heading: short. cells: one per row.
        group: heading over several columns, or "".
        numeric: right-aligned with figures of equal width.
        stage: of every figure in it; None where it holds no estimates.
    """

    heading: str
    cells: tuple[str, ...]
    group: str = ""
    numeric: bool = True
    stage: str | None = None

    @classmethod
    def of(
        cls,
        heading: str,
        stage: str,
        figures: Sequence[Figure | str],
        *,
        group: str = "",
        show: Callable[[Figure], str] = lambda figure: count_text(figure.value),
    ) -> Column:
        """The column of `figures`; a text stands for itself.

        Raises:
            ReportError: a figure is of another stage.
        """
        for figure in figures:
            if isinstance(figure, Figure) and figure.stage != stage:
                raise ReportError(
                    f"column {heading!r} of stage {stage!r} was given a figure of stage {figure.stage!r}; "
                    "figures of different stages never share a column"
                )
        cells = tuple(figure if isinstance(figure, str) else show(figure) for figure in figures)
        return cls(heading, cells, group=group, stage=stage)


@dataclass(frozen=True)
class Table:
    """Columns of equal length under a caption; the first one names the rows.

    Attributes:
        caption: what the figures are. columns: the first one is the key. note: a sentence below, or "".
        totals: the last row sums up the others.
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
        """Headings over neighbouring columns and how many columns each spans; empty where there are none."""
        spans: list[tuple[str, int]] = []
        for column in self.columns:
            if spans and column.group and spans[-1][0] == column.group:
                spans[-1] = (column.group, spans[-1][1] + 1)
            else:
                spans.append((column.group, 1))
        return spans if any(name for name, _ in spans) else []

    def shown_columns(self) -> Table:
        """The same table without the columns that hold nothing but dashes."""
        kept = [c for i, c in enumerate(self.columns) if i == 0 or any(cell != DASH for cell in c.cells)]
        return replace(self, columns=tuple(kept))
