"""Tables of what the hardware will take, before and after; HTML and Markdown print the same ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fpgaprune.report.contents import RunReport
from fpgaprune.report.estimates import RESOURCES, LayerPair, figure_of, pair_layers, stages_of, total_of
from fpgaprune.report.numbers import change_text, count_text, percent_text, range_text, rate_text, time_text
from fpgaprune.report.table import STAGE_NAMES, Column, Figure, Table

MULTIPLICATIONS = (
    ("total", "all"),
    ("zero", "zero"),
    ("power_of_two", "power of two"),
    ("few_digits", "few digits"),
    ("many_digits", "many digits"),
)


def totals_table(report: RunReport, stage: str) -> Table:
    """What the whole design takes at `stage`, against the part's capacity."""
    before = [total_of(report.before, stage, key) for key, _ in RESOURCES]
    after = [total_of(report.after, stage, key) for key, _ in RESOURCES]
    capacities = [getattr(report.target.part, key) for key, _ in RESOURCES]

    def ranges(figure: Figure) -> str:
        return range_text(figure.low, figure.high)

    return Table(
        f"Analytic estimate of what {STAGE_NAMES[stage]} ({stage}) will report",
        (
            Column("resource", tuple(label for _, label in RESOURCES), numeric=False),
            Column.of("before", stage, before),
            Column.of("after", stage, after),
            Column("change", tuple(change_text(b.value, a.value) for b, a in zip(before, after, strict=True))),
            Column("capacity", tuple(count_text(capacity) for capacity in capacities)),
            Column(
                "used after",
                tuple(percent_text(share(a.value, c)) for a, c in zip(after, capacities, strict=True)),
            ),
            Column.of("before", stage, before, group="range", show=ranges),
            Column.of("after", stage, after, group="range", show=ranges),
        ),
    ).shown_columns()


def speed_table(report: RunReport) -> Table:
    """Latency, interval and the rate that follows from it."""
    sides = (report.before, report.after)
    latency, time, interval = (
        [_entry(side, key) for side in sides] for key in ("latency_cycles", "latency_us", "interval_cycles")
    )
    rates = [1e9 / (cycles * report.target.clock_ns) if cycles else None for cycles in interval]
    texts: list[tuple[str, list[Any], Callable[[Any], str]]] = [
        ("latency, cycles", latency, count_text),
        ("latency, time", time, time_text),
        ("interval, cycles", interval, count_text),
        ("inferences", rates, rate_text),
    ]
    return Table(
        "Analytic estimate of speed",
        (
            Column("", tuple(label for label, _, _ in texts), numeric=False),
            Column("before", tuple(show(values[0]) for _, values, show in texts)),
            Column("after", tuple(show(values[1]) for _, values, show in texts)),
            Column("change", tuple(change_text(*values) for _, values, _ in texts)),
        ),
        f"Times and rates hold if the clock of {report.target.clock_ns:g} ns is met.",
    )


def layer_resources_table(report: RunReport, stage: str) -> Table:
    """What each layer takes at `stage`, before and after."""
    pairs = pair_layers(report.before, report.after)
    columns = [_names(pairs)]
    for key, label in RESOURCES:
        for side in ("before", "after"):

            def figure(layer: Mapping[str, Any], key: str = key) -> Figure:
                return figure_of(layer, stage, key)

            figures = [_cell(pair, side, figure) for pair in pairs]
            columns.append(Column.of(side, stage, figures, group=label))
    return Table(f"Each layer: analytic estimate of what {STAGE_NAMES[stage]} ({stage}) will report", tuple(columns))


def layer_speed_table(report: RunReport) -> Table:
    """Latency and interval of each layer, before and after."""
    pairs = pair_layers(report.before, report.after)
    columns = [_names(pairs)]
    for key, label in (("latency_cycles", "latency, cycles"), ("interval_cycles", "interval, cycles")):
        for side in ("before", "after"):

            def cycles(layer: Mapping[str, Any], key: str = key) -> str:
                return count_text(layer.get(key))

            columns.append(Column(side, tuple(_cell(pair, side, cycles) for pair in pairs), group=label))
    return Table("Each layer: analytic estimate of speed", tuple(columns))


def multiplications_table(report: RunReport) -> Table | None:
    """How many multiplications quantisation leaves, by how dear they are; None where no layer has any."""
    pairs = [
        pair
        for pair in pair_layers(report.before, report.after)
        if any(layer is not None and layer.get("multiplications") for layer in (pair.before, pair.after))
    ]
    if not pairs:
        return None
    columns = [_names(pairs)]
    for key, label in MULTIPLICATIONS:
        for side in ("before", "after"):

            def shown(layer: Mapping[str, Any], key: str = key) -> str:
                return count_text((layer.get("multiplications") or {}).get(key))

            columns.append(Column(side, tuple(_cell(pair, side, shown) for pair in pairs), group=label))
    return Table(
        "Multiplications by the digits of their quantised weight",
        tuple(columns),
        "A zero weight needs no hardware, a power of two only wires; digits are those of the signed-digit form.",
    )


def estimate_stages(report: RunReport) -> tuple[str, ...]:
    """The stages of the figures in both estimates, earliest first."""
    return stages_of(report.before, report.after)


def estimate_notes(report: RunReport) -> tuple[str, ...]:
    """What the estimates say of themselves; a sentence that only one of them says tells which."""
    after, before = (
        [str(note) for note in (side.get("notes", ()) if side is not None else ())]
        for side in (report.after, report.before)
    )
    if report.after is None or report.before is None:
        return tuple(dict.fromkeys(after + before))
    shared = [note for note in after if note in before]
    return tuple(
        dict.fromkeys(
            [
                *shared,
                *(f"After: {note}" for note in after if note not in shared),
                *(f"Before: {note}" for note in before if note not in shared),
            ]
        )
    )


def share(value: float | None, capacity: float | None) -> float | None:
    """The fraction of `capacity` that `value` is; None where either is unknown or there is no capacity."""
    return None if value is None or not capacity else value / capacity


def _names(pairs: Sequence[LayerPair]) -> Column:
    return Column("layer", tuple(pair.name for pair in pairs), numeric=False)


def _cell(pair: LayerPair, side: str, show: Callable[[Mapping[str, Any]], Any]) -> Any:
    layer = pair.before if side == "before" else pair.after
    if layer is not None:
        return show(layer)
    return "new" if side == "before" else "gone"


def _entry(estimate: Mapping[str, Any] | None, key: str) -> Any:
    return None if estimate is None else estimate.get(key)
