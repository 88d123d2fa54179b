"""Rows of `bench_field.py`, and the tables that they make: every network, and each rival at the metric of ours."""

from __future__ import annotations

import csv
import json
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import numpy as np

# What stands beside a DSP and a block memory of 18 Kb on the xc7z020: 53,200 LUTs, 220 DSPs, 280 memories.
DSP_LUTS, BRAM_LUTS = 242, 190
OURS = ("fit", "recipe")
RIVALS = ("hgq2", "pquant", "tfmot", "untouched", "hgq2-ours")
# The rows of the page, from which its tables are made again and the benchmark goes on: figures of ours, no data.
STORED = Path(__file__).with_name("field_rows.csv")
PAGE = Path(__file__).parents[2] / "docs" / "measurements" / "field.md"


@dataclass(frozen=True)
class Row:
    """One network of one way.

    Attributes:
        point: what the way varies: a sparsity, a price, a largest loss.
        metric: accuracy in hardware on the test samples, 0..1.
        samples: how many test samples there are.
        seconds: processor time of the training.
    """

    task: str
    way: str
    seed: int
    point: str
    metric: float
    samples: int
    lut: int
    ff: int
    dsp: int
    bram18: int
    interval_cycles: int
    latency_cycles: int
    seconds: float

    @property
    def area(self) -> float:
        """LUTs, with DSPs and block memories as the LUTs that stand beside them on the part."""
        return self.lut + DSP_LUTS * self.dsp + BRAM_LUTS * self.bram18

    @property
    def price(self) -> float:
        """Area times interval: what one sample a cycle would take."""
        return self.area * self.interval_cycles

    @property
    def error(self) -> float:
        """Standard error of the metric."""
        return (self.metric * (1 - self.metric) / self.samples) ** 0.5


def write_row(path: Path, row: Row) -> None:
    """`row` is in the file `path`, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    part.write_text(json.dumps(asdict(row)) + "\n")
    part.replace(path)


def read_rows(folder: Path | None, stored: Path | None = STORED) -> list[Row]:
    """The rows of the file `stored`, and those of `folder`, which replace rows of the same way, seed and point."""
    found = []
    if stored is not None:
        with stored.open(newline="") as file:
            found += [_row(cells) for cells in csv.DictReader(file)]
    paths = [] if folder is None else sorted(folder.rglob("row.json"))
    found += [Row(**json.loads(path.read_text())) for path in paths]
    rows = {(row.task, row.way, row.seed, row.point): row for row in found}
    return sorted(rows.values(), key=lambda row: (row.task, row.way, row.seed, row.metric))


def store_rows(rows: Sequence[Row], stored: Path = STORED) -> None:
    """`rows` are in the file `stored`, and nothing else."""
    with stored.open("w", newline="") as file:
        table = csv.DictWriter(file, [field.name for field in fields(Row)], lineterminator="\n")
        table.writeheader()
        table.writerows(asdict(row) | {"metric": f"{row.metric:.6f}", "seconds": f"{row.seconds:.0f}"} for row in rows)


def _row(cells: dict[str, str]) -> Row:
    """A line of the file; a column has the type that the row has."""
    words = {"task", "way", "point"}
    real = {"metric", "seconds"}
    return Row(
        **{name: text if name in words else float(text) if name in real else int(text) for name, text in cells.items()}
    )


def front(rows: Iterable[Row]) -> list[tuple[float, float]]:
    """Metric and area × interval of the rows that no other row beats in both, the least accurate first."""
    best: list[tuple[float, float]] = []
    for point in sorted(((row.metric, row.price) for row in rows), key=lambda point: (-point[0], point[1])):
        if not best or point[1] < best[-1][1]:
            best.append(point)
    return best[::-1]


def price_at(metric: float, rows: Sequence[Row]) -> float:
    """Area × interval at `metric`: the median of the seeds, each on the lines between the points of its front.

    Below the points of a seed it is that of its smallest network, so an upper end; a seed that does not come so far
    takes more than any.
    """
    found = []
    for seed in sorted({row.seed for row in rows}):
        points = front(row for row in rows if row.seed == seed)
        found.append(np.interp(metric, *zip(*points, strict=True), right=np.inf))
    return float(statistics.median(found)) if found else float("nan")


def is_upper_end(metric: float, rows: Sequence[Row]) -> bool:
    """Whether the front of a seed begins above `metric`, so that it may take less there than `price_at` says."""
    return any(front(row for row in rows if row.seed == seed)[0][0] > metric for seed in {row.seed for row in rows})


def what_is_compared(rows: Sequence[Row], data: dict[str, str], words: dict[str, str]) -> str:
    """Each task that has a row: its data, its network, and how many test samples there are."""
    samples = {row.task: row.samples for row in rows}
    lines = ["| task | data | network | test samples |", "|---|---|---|---:|"]
    for task, count in samples.items():
        network = words.get(task, task).rpartition(", ")[2]
        lines.append(f"| `{task}` | {data.get(task, '')} | {network} | {count:,} |")
    return "\n".join(lines)


def with_tables(page: str, tables: Iterable[str]) -> str:
    """`page` with each of `tables` in the place of the table that has the same first line.

    Raises:
        ValueError: no table of the page, or more than one, has that line.
    """
    for table in tables:
        head = table.partition("\n")[0]
        parts = page.split(f"\n\n{head}\n")
        if len(parts) != 2:
            raise ValueError(f"{len(parts) - 1} tables of the page begin with {head!r}; wanted one")
        rest = parts[1].partition("\n\n")[2]
        page = f"{parts[0]}\n\n{table}\n\n{rest}"
    return page


def every_network(rows: Sequence[Row], words: dict[str, str]) -> str:
    """Each row, under the line of its task."""
    lines = [
        "| way | seed | point | metric | LUT | FF | DSP | BRAM18 | interval | latency | area × interval "
        "| training, processor s |",
        f"|---|---:|---|{'---:|' * 9}",
    ]
    for task in dict.fromkeys(row.task for row in rows):
        lines.append(f"| **{words.get(task, task)}** |{' |' * 11}")
        for row in (row for row in rows if row.task == task):
            cells = [row.way, f"{row.seed}", row.point, f"{100 * row.metric:.2f} ± {100 * row.error:.2f} %"]
            figures = (row.lut, row.ff, row.dsp, row.bram18, row.interval_cycles, row.latency_cycles)
            cells += [f"{figure:,}" for figure in figures] + [f"{row.price:,.0f}", f"{row.seconds:.0f}"]
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def beside_rivals(rows: Sequence[Row], words: dict[str, str]) -> str:
    """For each of our networks (medians of the seeds of a point) area × interval over that of each rival there.

    A rival whose networks all have a lower metric has no figure, "not reached". Where they all have a higher one, it
    may take less, so the ratio is a lower end, "≥". A ratio above 1 is in bold. The last column is for
    the rival that takes least.
    """
    there = {row.way for row in rows}
    rivals = [way for way in RIVALS if way in there]
    columns = [f"/ {way}" for way in (*rivals, "best")]
    lines = [
        f"| task | way, point | seeds | metric | area × interval | {' | '.join(columns)} |",
        f"|---|---|---:|---:|---:|{'---:|' * len(columns)}",
    ]
    for task in dict.fromkeys(row.task for row in rows):
        here = [row for row in rows if row.task == task]
        for way, point in dict.fromkeys((row.way, row.point) for row in here if row.way in OURS):
            own = [row for row in here if (row.way, row.point) == (way, point)]
            metric = statistics.median(row.metric for row in own)
            price = statistics.median(row.price for row in own)
            cells = [words.get(task, task), f"{way}, {point}", f"{len(own)}", f"{100 * metric:.2f} %", f"{price:,.0f}"]
            found = []
            for rival in rivals:
                theirs = [row for row in here if row.way == rival]
                least = "≥ " if is_upper_end(metric, theirs) else ""
                found.append((price_at(metric, theirs), least))
            known = [(other, least) for other, least in found if not np.isnan(other)]
            found.append(min(known, default=(float("nan"), "")))
            cells += [_ratio(price, other, least) for other, least in found]
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _ratio(price: float, other: float, least: str) -> str:
    if np.isnan(other):
        return "–"
    if np.isinf(other):
        return "not reached"
    ratio = price / other
    return f"**{least}{ratio:.2f}**" if ratio > 1 else f"{least}{ratio:.2f}"
