"""Tables of what open tools measured, one stage each, and drawings of LUTs against kept kernels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from markupsafe import Markup

from fpgaprune.measure import (
    HEADERS,
    RESOURCES,
    ChosenLayout,
    Measured,
    PlaceAndRoute,
    Simulated,
    StagedCounts,
    Synthesis,
    interval_words,
)
from fpgaprune.report.contents import RunReport
from fpgaprune.report.estimate_tables import share
from fpgaprune.report.figures import text_at
from fpgaprune.report.numbers import count_text, percent_text
from fpgaprune.report.table import LABELS, Column, Table

# The page does not show UltraRAM.
_COUNTED = [name for name in RESOURCES if name != "uram"]
_WIDTH, _HEIGHT, _LEFT, _BOTTOM, _EDGE = 520.0, 260.0, 62.0, 40.0, 12.0


def measured_tables(found: Measured | None) -> list[Table]:
    """Make the tables of layout, simulation, each synthesised family, and place and route, as far as there are any."""
    if found is None:
        return []
    tables = [] if found.layout is None else [_layout_table(found.layout)]
    tables += [_simulation_table(found.simulation)] if found.simulation.left_out is None else []
    tables += [_synthesis_table(synthesis, found) for synthesis in found.synthesis.values()]
    return tables if found.route is None else [*tables, _route_table(found.route, found.simulation.interval_cycles)]


def counts_tables(counts: Sequence[StagedCounts]) -> list[Table]:
    """Make for each design in one layout a table with a column for each stage: estimated, synthesised, placed."""
    return [
        Table(
            found.title,
            tuple(
                Column(head.replace("\n", " "), tuple(map(_cell, cells)), numeric=index > 0)
                for index, (head, cells) in enumerate(zip(HEADERS, zip(*found.rows(), strict=True), strict=True))
            ),
            f"80 % ranges of the estimate: {found.ranges()}. Placed counts sites of the device.",
        )
        for found in counts
        if found.rows()
    ]


def _cell(value: str | int | None) -> str:
    return value if isinstance(value, str) else count_text(value)


def kernel_plots(report: RunReport) -> list[dict[str, Any]]:
    """Draw LUTs against kept kernels, for each family with at least two known convolutions."""
    found = report.measured
    if found is None:
        return []
    kept = {row.layer: row.kept for row in found.kernels}
    plots = []
    for family, synthesis in found.synthesis.items():
        points = [
            (kept[layer], count, layer)
            for layer, count in ((one.layer, one.resources.lut) for one in synthesis.measurements)
            if layer in kept and count is not None
        ]
        if len(points) > 1:
            label = f"LUT of each convolution against its kernels that are left ({synthesis.stage}, {family})"
            plots.append({"title": label, "figure": points_figure(points, "kernels left", "LUT", label)})
    return plots


def points_figure(points: Sequence[tuple[float, float, str]], across: str, up: str, label: str) -> Markup:
    """Draw named `points` (x, y, name) on axes from 0, with a line from the origin through their centre.

    The layers on the line have LUTs in proportion to their kept kernels.
    """
    xs, ys = [x for x, _, _ in points], [y for _, y, _ in points]
    x_end, y_end = 1.08 * max(1.0, *xs), 1.08 * max(1.0, *ys)
    right, top = _WIDTH - _EDGE, _EDGE
    floor = _HEIGHT - _BOTTOM

    def place(x: float, y: float) -> tuple[float, float]:
        return _LEFT + (right - _LEFT) * x / x_end, floor - (floor - top) * y / y_end

    total_x, total_y = sum(xs), sum(ys)
    parts = [
        Markup('<path class="axis" d="M{0:.5g},{1:.5g}V{2:.5g}H{3:.5g}"/>').format(_LEFT, top, floor, right),
        text_at(right, floor + 32, across, "end"),
        text_at(_LEFT - 6, top + 4, count_text(y_end / 1.08), "end"),
        text_at(_LEFT - 6, floor, "0", "end"),
        text_at(_LEFT - 6, (top + floor) / 2, up, "end"),
        text_at(_LEFT, floor + 16, "0", "middle"),
        text_at(right, floor + 16, count_text(x_end / 1.08), "end"),
    ]
    if total_x > 0:
        # The line ends at the frame.
        reach = min(x_end, y_end * total_x / total_y) if total_y > 0 else x_end
        x, y = place(reach, reach * total_y / total_x)
        parts.append(Markup('<path class="even" d="M{:.5g},{:.5g}L{:.5g},{:.5g}"/>').format(_LEFT, floor, x, y))
    for kept, lut, name in points:
        x, y = place(kept, lut)
        title = f"{name}: {count_text(lut)} {up}, {count_text(kept)} {across}"
        parts.append(
            Markup('<circle class="dot" cx="{:.5g}" cy="{:.5g}" r="4"><title>{}</title></circle>').format(x, y, title)
        )
        parts.append(text_at(x + 8 if x < right - 90 else x - 8, y + 4, name, "start" if x < right - 90 else "end"))
    return Markup(
        '<svg class="points" role="img" aria-label="{0}" viewBox="0 0 {1:g} {2:g}" width="{1:g}" height="{2:g}">'
        "<title>{0}</title>{3}</svg>"
    ).format(label, _WIDTH, _HEIGHT, Markup("").join(parts))


def _layout_table(layout: ChosenLayout) -> Table:
    rows = layout.layers
    first, *others = layout.lines()
    return Table(
        f"Layers laid out for {layout.part}, by the price of open synthesis",
        (
            Column("layer", tuple(row.layer for row in rows), numeric=False),
            Column("computed", tuple(row.way for row in rows), numeric=False),
            Column("multipliers", tuple(row.multipliers_text for row in rows)),
            Column(
                "values for each", tuple("" if not row.multipliers else "two" if row.paired else "one" for row in rows)
            ),
            Column("cycles", tuple(count_text(row.cycles) for row in rows)),
        ),
        " ".join([f"{first}.", *(f"{line[0].upper()}{line[1:]}." for line in others)]),
    )


def _simulation_table(simulation: Simulated) -> Table:
    figures = {
        "samples, without a pause between them": simulation.samples,
        "outputs with other bits than the emulation": simulation.outputs_unlike_emulation,
        "latency in cycles, from the first input value to the last output value": simulation.latency_cycles,
        "interval in cycles, between two samples": simulation.interval_cycles,
    }
    return Table(
        f"Simulated cycle by cycle by {simulation.tool}",
        (Column("figure", tuple(figures), numeric=False), Column("measured", tuple(map(count_text, figures.values())))),
    )


def _synthesis_table(synthesis: Synthesis, found: Measured) -> Table:
    kept = {row.layer: row.kept for row in found.kernels}
    layers = synthesis.layers
    notes = [f"{synthesis.note}.", "Counted by synthesis: not placed, and without the harness of a board."]
    notes.append("Kernels left: kept ones that the bits of the hardware do not round to zero.")
    notes += [f"Each layer is synthesised alone; total: {synthesis.total_of or 'unknown'}."]
    if synthesis.total is not None and synthesis.whole.left_out:
        notes.append(f"Of the whole design, {synthesis.whole.left_out}; logic between the layers is not counted.")
    notes += [f"{layer.layer}: {layer.left_out}." for layer in layers if layer.left_out]
    notes += [f"{name}: {how}." for name, how in found.built.items()]
    columns = [
        Column("layer", (*(str(layer.layer) for layer in layers), "total"), numeric=False),
        Column("kernels left", (*(count_text(kept.get(str(layer.layer))) for layer in layers), "")),
        Column("products", (*(count_text(layer.kept) for layer in layers), "")),
        *(Column.of(LABELS[name], name, synthesis.measurements) for name in _COUNTED),
    ]
    caption = f"Synthesised for {synthesis.family} by {synthesis.tool} ({synthesis.stage})"
    return Table(caption, tuple(columns), " ".join(notes), totals=True).shown_columns()


def _route_table(route: PlaceAndRoute, interval: int | None) -> Table:
    limits = route.fmax_range_mhz
    names = [name for name in RESOURCES if route.capacity[name] is not None]
    used, capacity = ([counts[name] for name in names] for counts in (route.whole.resources, route.capacity))
    speed = "No seed ended in time."
    if limits is not None:
        speed = (
            f"Clock: {route.fmax_mhz:.1f} MHz, median of {len(route.reached_mhz)} seeds ({limits[0]:.1f} to "
            f"{limits[1]:.1f}); speed grade {route.speed}. A device of another family has another clock."
        )
        if interval and route.fmax_mhz:
            rate = count_text(1e6 * route.fmax_mhz / interval)
            speed += f" With a sample {interval_words(interval)}, this gives {rate} a second."
    return Table(
        f"Placed and routed on {route.device} by {route.tool} ({route.stage})",
        (
            Column("resource", tuple(LABELS[name] for name in names), numeric=False),
            Column.of("used", names, [route.whole] * len(names)),
            Column("capacity", tuple(map(count_text, capacity))),
            Column("share", tuple(percent_text(share(u, c)) for u, c in zip(used, capacity, strict=True))),
        ),
        speed,
    )
