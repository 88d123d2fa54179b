"""Tables of what the hardware will take before and after."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from fpgaprune.errors import ReportError
from fpgaprune.measure import ESTIMATED, PRICED, Estimate, Figure, LayerEstimate, Measurement, Stage, capacity_of
from fpgaprune.report.contents import RunReport
from fpgaprune.report.numbers import change_text, count_text, percent_text, range_text, rate_text, time_text
from fpgaprune.report.table import LABELS, Column, Table

# What is estimated, and how a page writes it.
RESOURCES = tuple((name, LABELS[name]) for name in ESTIMATED)


@dataclass(frozen=True)
class LayerPair:
    """One layer `before` and `after`; None on the side where it does not exist."""

    name: str
    before: LayerEstimate | None
    after: LayerEstimate | None


def pair_layers(before: Estimate | None, after: Estimate | None) -> tuple[LayerPair, ...]:
    """Return the layers of both estimates by name, in the order of `before`; a new layer stands behind its predecessor.

    Raises:
        ReportError: two layers of one estimate share a name.
    """
    old, new = (_by_name(estimate) for estimate in (before, after))
    order = list(old)
    position = 0
    for name in new:
        if name in old:
            position = order.index(name) + 1
        else:
            order.insert(position, name)
            position += 1
    return tuple(LayerPair(name, old.get(name), new.get(name)) for name in order)


def _by_name(estimate: Estimate | None) -> dict[str, LayerEstimate]:
    names = [layer.name for layer in estimate.layers] if estimate is not None else []
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ReportError(f"estimate has two layers named {twice!r}; names must be unique")
    return {} if estimate is None else dict(zip(names, estimate.layers, strict=True))


_SIDES = ("before", "after")
MULTIPLICATIONS = (
    ("total", "all"),
    ("zero", "zero"),
    ("power_of_two", "power of two"),
    ("few_digits", "few digits"),
    ("many_digits", "many digits"),
)


def totals_table(report: RunReport, stage: Stage) -> Table:
    """Return what the whole design takes at `stage`, against the part's capacity."""
    names = [key for key, _ in RESOURCES]
    sides = {"before": report.before, "after": report.after}
    whole = {when: None if side is None else side.at(stage) for when, side in sides.items()}
    figures = ([figure_of(side, name) for name in names] for side in whole.values())
    before, after = ([None if figure is None else figure.value for figure in side] for side in figures)
    capacities = [capacity_of(report.target.part)[name] for name in names]

    def spread(figure: Figure) -> str:
        return range_text(figure.low, figure.high)

    return Table(
        _caption(stage),
        (
            Column("resource", tuple(label for _, label in RESOURCES), numeric=False),
            *(Column.of(when, names, [side] * len(names)) for when, side in whole.items()),
            Column("change", tuple(map(change_text, before, after))),
            Column("capacity", tuple(map(count_text, capacities))),
            Column("used after", tuple(percent_text(share(a, c)) for a, c in zip(after, capacities, strict=True))),
            *(Column.of(when, names, [side] * len(names), group="range", show=spread) for when, side in whole.items()),
        ),
    ).shown_columns()


def speed_table(report: RunReport) -> Table:
    """Make a table of latency, interval, and the rate that follows from the interval."""
    sides = (report.before, report.after)
    latency, time, interval = (
        [getattr(side, key, None) for side in sides] for key in ("latency_cycles", "latency_us", "interval_cycles")
    )
    rates = [1e9 / (cycles * report.target.clock_ns) if cycles else None for cycles in interval]
    texts: list[tuple[str, list[Any], Callable[[Any], str]]] = [
        ("latency, cycles", latency, count_text),
        ("latency, time", time, time_text),
        ("interval, cycles", interval, count_text),
        ("inferences", rates, rate_text),
    ]
    return Table(
        "Speed, analytic estimate",
        (
            Column("", tuple(label for label, _, _ in texts), numeric=False),
            Column("before", tuple(show(values[0]) for _, values, show in texts)),
            Column("after", tuple(show(values[1]) for _, values, show in texts)),
            Column("change", tuple(change_text(*values) for _, values, _ in texts)),
        ),
        f"Times and rates are right if the design reaches the clock of {report.target.clock_ns:g} ns.",
    )


def layer_resources_table(report: RunReport, stage: Stage) -> Table:
    """Return what each layer takes at `stage`, before and after."""
    pairs = pair_layers(report.before, report.after)
    columns = [_names(pairs)]
    for key, label in RESOURCES:
        for side in _SIDES:
            measured = [_cell(pair, side, lambda layer: layer.at(stage)) for pair in pairs]
            columns.append(Column.of(side, key, measured, group=label))
    caption = _caption(stage)
    return Table(f"Each layer: {caption[0].lower()}{caption[1:]}", tuple(columns))


def layer_speed_table(report: RunReport) -> Table:
    """Make a table of latency and interval of each layer, before and after."""
    pairs = pair_layers(report.before, report.after)
    columns = [_names(pairs)]
    for key, label in (("latency_cycles", "latency, cycles"), ("interval_cycles", "interval, cycles")):
        columns += _counts(pairs, label, key)
    return Table("Speed of each layer, analytic estimate", tuple(columns))


def multiplications_table(report: RunReport) -> Table | None:
    """Make a table of each layer's multiplications after quantisation, by what they cost; None if there are none."""
    pairs = [
        pair
        for pair in pair_layers(report.before, report.after)
        if any(layer is not None and layer.multiplications for layer in (pair.before, pair.after))
    ]
    if not pairs:
        return None
    columns = [_names(pairs)]
    for key, label in MULTIPLICATIONS:
        columns += _counts(pairs, label, key, of=lambda layer: layer.multiplications)
    return Table(
        "Multiplications, sorted by the digits of the quantised weight",
        tuple(columns),
        "A zero weight needs no hardware, a power of two only wires. Digits are counted with signs: 7 is "
        "8\u00a0\u2212\u00a01 and has two.",
    )


def estimate_stages(report: RunReport) -> tuple[Stage, ...]:
    """Return the stages that are estimated, earliest first; none without an estimate."""
    return () if report.before is None and report.after is None else PRICED


def estimate_notes(report: RunReport) -> tuple[str, ...]:
    """Return the notes of both estimates; a note of one estimate alone begins with `After` or `Before`."""
    after, before = ([] if side is None else list(side.notes) for side in (report.after, report.before))
    if report.after is None or report.before is None:
        return tuple(dict.fromkeys(after + before))
    notes = [note for note in after if note in before]
    notes += [f"After: {note}" for note in after if note not in before]
    notes += [f"Before: {note}" for note in before if note not in after]
    return tuple(dict.fromkeys(notes))


def figure_of(measured: Measurement[Figure] | None, name: str) -> Figure | None:
    """Return the measured figure of the resource `name`; None if it is unknown or nothing is measured."""
    return None if measured is None else measured.figure(name)


def share(value: float | None, capacity: float | None) -> float | None:
    """Return `value` as a fraction of `capacity`; None if either is unknown or there is no capacity."""
    return None if value is None or not capacity else value / capacity


def _names(pairs: Sequence[LayerPair]) -> Column:
    return Column("layer", tuple(pair.name for pair in pairs), numeric=False)


def _counts(
    pairs: Sequence[LayerPair], label: str, key: str, of: Callable[[LayerEstimate], Any] = lambda layer: layer
) -> list[Column]:
    """Return the columns `before` and `after` with the count `key` of what `of` reads from each layer."""

    def shown(layer: LayerEstimate) -> str:
        return count_text(getattr(of(layer), key, None))

    return [Column(side, tuple(_cell(pair, side, shown) for pair in pairs), group=label) for side in _SIDES]


def _caption(stage: Stage) -> str:
    return f"Analytic estimate of what {stage.words} ({stage.step}) will report"


def _cell(pair: LayerPair, side: str, show: Callable[[LayerEstimate], Any]) -> Any:
    layer = pair.before if side == "before" else pair.after
    if layer is not None:
        return show(layer)
    return "new" if side == "before" else "gone"
