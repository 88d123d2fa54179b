"""The charts of pages of measurements, each from a table of its page."""

from __future__ import annotations

import math
import re

from chart import Axis, Series, draw, draw_pairs, ticks
from tables import Row, number, rows_of

FOLDER = "pictures/charts"


def charts() -> dict[str, str]:
    """Name of the file to its text."""
    return {
        "networks.svg": _networks(),
        "open_tools.svg": _open_tools(),
        "mnist.svg": _mnist(),
        "shifts.svg": _shifts(),
        "fit.svg": _fit(),
        "selection.svg": _selection(),
        "few_bits.svg": _few_bits(),
        **_field(),
        "layouts_demo.svg": _layouts(0, "the demo's CNN, 8 × 8", [2_048 << power for power in range(5)]),
        "layouts_28.svg": _layouts(1, "a CNN for 28 × 28 images", [1_024 << power for power in range(7)]),
    }


def _networks() -> str:
    rows = [
        (f"{row['network']}{' (R²)' if row['metric'] == 'R²' else ''}", *_pair(row, "before", "in hardware"))
        for row in rows_of("measurements/networks.md", "network", "before", "in hardware")
        if number(row["before"]) is not None
    ]
    return draw_pairs(
        "Ten networks with 60 % of their kernels locked",
        Axis("accuracy, %", ticks(70, 100)),
        rows,
        ("trained network", "pruned, in hardware"),
    )


def _open_tools() -> str:
    page, locked = "measurements/open_hardware.md", "kernels locked"
    fast = rows_of(page, locked, "all sums at once", "MHz, median (range)")
    slow = rows_of(page, locked, "MHz (one seed)")
    norm = rows_of(page, locked, "all sums at once", "accuracy, Keras", number_of_table=1)
    start = [_pair(fast[0], locked, "LUT")]
    return draw(
        "LUTs of the built-in CNN, open synthesis",
        Axis("kernels locked, %", [0, 25, 50, 75, 100]),
        Axis("LUT", ticks(0, 110_000)),
        [
            Series("100 cycles an image, chosen by taylor / adders", _points(fast, locked, "LUT"), 0, line=True),
            Series("100 cycles an image, chosen by l1", start + _points(norm, locked, "LUT"), 1, line=True),
            Series("1,400 cycles an image, chosen by taylor / adders", _points(slow, locked, "LUT"), 3, line=True),
        ],
    )


def _mnist() -> str:
    page, accuracy = "measurements/mnist.md", "in hardware"
    ours = rows_of(page, "run", "accuracy in hardware", "LUT")
    narrow = rows_of(page, "price", "accuracy in hardware", "LUT")
    others = rows_of(page, "way", accuracy, "LUT")

    def of(word: str) -> list[tuple[float, float]]:
        return _points([row for row in others if row["way"].startswith(word)], "LUT", accuracy)

    return draw(
        "A CNN for MNIST: LUTs and accuracy in hardware",
        Axis("LUT", ticks(0, 28_000)),
        Axis("accuracy, %", ticks(97.8, 98.8)),
        [
            Series("fpgaprune", _points(ours, "LUT", "accuracy in hardware"), 0),
            Series("fpgaprune, earlier recipes", of("fpgaprune"), 0, hollow=True),
            Series("HGQ2 from the narrow network", _points(narrow, "LUT", "accuracy in hardware"), 3),
            Series("HGQ2, earlier", of("hgq"), 3, hollow=True),
            Series("TF-MOT", of("tfmot"), 1),
            Series("not pruned", of("unpruned"), 2),
        ],
    )


def _shifts() -> str:
    page, accuracy = "measurements/shifts.md", "accuracy in hardware"
    ours = _points(rows_of(page, "seed", "sparsity", accuracy, "LUT"), "LUT", accuracy)
    peer = _points(rows_of(page, "beta of HGQ2", "accuracy", "LUT"), "LUT", "accuracy")
    return draw(
        "A Dense network for MNIST: LUTs and accuracy",
        Axis("LUT", ticks(2_000, 16_000, 7)),
        Axis("accuracy in hardware, %", ticks(92, 97, 5)),
        [
            Series("fpgaprune, weights that are shifts", ours, 0),
            Series("HGQ2, written as Verilog by alkaid", peer, 3),
        ],
    )


def _fit() -> str:
    page, share = "measurements/fit.md", "largest share, upper end"
    loss = "loss on 359 samples held back"
    rows = rows_of(page, "trial", share, "limits")
    # Networks that lose more would press the others together.
    trials = [row for row in rows if row["trial"] != "best" and (number(row[loss]) or 0.0) < 3]

    def of(limits: str) -> list[tuple[float, float]]:
        return _points([row for row in trials if row["limits"] == limits], share, loss)

    return draw(
        "Networks that one search tried",
        Axis("share of the part, upper end of the estimate, %", ticks(40, 100, 6), limit=(80, "limit")),
        Axis("loss, %", ticks(0, 3)),
        [
            Series("keeps every limit", of("yes"), 0),
            Series("breaks a limit", of("no"), 1, hollow=True),
            Series("the answer, judged on held-out samples", _points([rows[-1]], share, loss), 3),
        ],
    )


def _selection() -> str:
    rows = {row["way"]: row for row in rows_of("measurements/selection.md", "way", "50%", "75%", "90%")}
    shown = {
        "kernel, one-shot, l1": (0, "whole kernels by l1, one threshold"),
        "weight, gradual, TF-MOT": (1, "single weights, TF-MOT"),
        "kernel, one-shot, random": (2, "whole kernels at random"),
        "kernel, one-shot, l1, each layer alike": (4, "whole kernels by l1, each layer alike"),
    }

    def points(way: str) -> list[tuple[float, float]]:
        start = number(rows["unpruned, trained on"]["50%"]) or 0.0
        return [(0.0, start), *((float(at), number(rows[way][f"{at}%"]) or 0.0) for at in (50, 75, 90))]

    return draw(
        "MNIST: what a way of choosing costs",
        Axis("locked, %", [0, 25, 50, 75, 100]),
        Axis("accuracy after one epoch of fine-tuning, %", ticks(94, 100)),
        [Series(name, points(way), colour, line=True) for way, (colour, name) in shown.items()],
    )


def _few_bits() -> str:
    page = "measurements/few_bits.md"
    rows = rows_of(page, "network", "bits", "rounded", "trained on rounded")
    series = []
    for name, colour in (("jet tagger (MLP)", 3), ("SVHN CNN", 0)):
        own = [row for row in rows if row["network"] == name]
        series.append(
            Series(f"{name}, trained while it rounds", _points(own, "bits", "trained on rounded"), colour, True)
        )
        series.append(Series(f"{name}, rounded", _points(own, "bits", "rounded"), colour, True, hollow=True))
    return draw("What few bits cost", Axis("bits", [2, 3, 4, 5, 6, 7]), Axis("accuracy, %", ticks(40, 100, 6)), series)


def _field() -> dict[str, str]:
    """For each task of the field its networks that are not far below the best one, a line for each way."""
    ways = {
        "recipe": ("fpgaprune, the recipe", 0, False),
        "fit": ("fpgaprune fit", 0, True),
        "hgq2": ("HGQ2, Verilog by alkaid", 3, False),
        "hgq2-ours": ("HGQ2, our Verilog", 3, True),
        "pquant": ("PQuantML, Verilog by alkaid", 1, False),
        "tfmot": ("TF-MOT, our Verilog", 2, False),
        "untouched": ("not pruned", 4, False),
    }
    tasks: dict[str, list[Row]] = {}
    name = ""
    for row in rows_of("measurements/field.md", "way", "point", "metric", "area × interval"):
        if row["way"].startswith("**"):
            name = row["way"].strip("*")
        else:
            tasks.setdefault(name, []).append(row)
    return {f"field_{_slug(name)}.svg": _task(name, rows, ways) for name, rows in tasks.items()}


def _slug(name: str) -> str:
    return "_".join(re.findall("[a-z0-9]+", name.split(",")[0].lower()))


def _task(name: str, rows: list[Row], ways: dict[str, tuple[str, int, bool]]) -> str:
    size, far = "area × interval", 10
    best = max(number(row["metric"]) or 0.0 for row in rows)
    rows = [row for row in rows if (number(row["metric"]) or 0.0) > best - far]
    sizes, metrics = zip(*_points(rows, size, "metric"), strict=True)
    first = math.floor(math.log2(min(sizes)))
    last = max(math.ceil(math.log2(max(sizes))), first + 1)
    # Labels of more than six powers would touch one another.
    apart = 1 + (last - first) // 6
    powers = range(first, last + apart, apart)
    step = 1 if max(metrics) - min(metrics) > 1 else 10
    lowest, highest = (math.floor(step * min(metrics)) / step, math.ceil(step * max(metrics)) / step)
    shown = {way: sorted(_points([row for row in rows if row["way"] == way], size, "metric")) for way in ways}
    return draw(
        name,
        Axis(
            "LUTs, DSPs and memories as LUTs, × interval",
            [2.0**power for power in powers],
            doubles=True,
        ),
        Axis("accuracy in hardware, %", ticks(lowest, highest)),
        [
            Series(words, shown[way], colour, line=len(shown[way]) > 1, hollow=hollow)
            for way, (words, colour, hollow) in ways.items()
            if shown[way]
        ],
    )


def _layouts(table: int, network: str, luts: list[float]) -> str:
    """LUTs against the cycles of a sample; cells begin with the LUTs."""
    ways = {"parallel": 2, "bit by bit": 1, "scheduled": 0, "paired": 3}
    rows = rows_of("measurements/verilog.md", "cycles", *ways, number_of_table=table)
    cycles = [number(row["cycles"]) or 1.0 for row in rows]
    return draw(
        f"LUTs of {network}, by the price for xc7",
        Axis("cycles a sample", cycles[::2], doubles=True),
        Axis("LUT", luts, doubles=True),
        [Series(way, _points(rows, "cycles", way), colour, line=True) for way, colour in ways.items()],
    )


def _points(rows: list[Row], across: str, up: str) -> list[tuple[float, float]]:
    pairs = [(number(row[across]), number(row[up])) for row in rows]
    return [(x, y) for x, y in pairs if x is not None and y is not None]


def _pair(row: Row, first: str, second: str) -> tuple[float, float]:
    [(x, y)] = _points([row], first, second)
    return x, y
