"""What open tools measured: tables of one stage each, and each layer's LUTs against the kernels it kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from fpgaprune.measure import OPEN_SYNTH, ROUTE_ECP5, Measurement, Resources, from_plain
from fpgaprune.report.contents import RunReport
from fpgaprune.report.numbers import DASH, count_text, percent_text
from fpgaprune.report.table import Column, Table

_RESOURCES = (("lut", "LUT"), ("ff", "FF"), ("carry", "carry"), ("dsp", "DSP"), ("bram18", "BRAM 18 Kb"))
_SITES = _RESOURCES[:2] + _RESOURCES[3:]
_WIDTH, _HEIGHT, _LEFT, _BOTTOM, _EDGE = 520.0, 260.0, 62.0, 40.0, 12.0


def measured_tables(report: RunReport) -> list[Table]:
    """Of the simulation, of each family that was synthesised, of place and route; none where nothing was measured."""
    found = report.measured or {}
    # Runs that were measured before the Verilog was simulated have none.
    simulation = found.get("simulation", {"left_out": ""})
    tables = [] if "left_out" in simulation else [_simulation_table(simulation)]
    tables += [_synthesis_table(synthesis, found) for synthesis in found.get(OPEN_SYNTH, {}).values()]
    route = found.get(ROUTE_ECP5)
    return [*tables, _route_table(route, simulation.get("interval_cycles"))] if route else tables


def kernel_plots(report: RunReport) -> list[dict[str, Any]]:
    """For each family, the figure of LUTs against kernels kept; none where fewer than two convolutions are known."""
    found = report.measured or {}
    kernels = {row["layer"]: row for row in found.get("kernels", ())}
    plots = []
    for family, synthesis in found.get(OPEN_SYNTH, {}).items():
        points = [
            (kernels[layer["layer"]]["kept"], layer["cells"]["lut"], layer["layer"])
            for layer in synthesis["layers"]
            if layer["layer"] in kernels and layer["cells"] is not None
        ]
        if len(points) > 1:
            label = f"LUT of each convolution against its kernels that are not zero ({OPEN_SYNTH}, {family})"
            plots.append({"title": label, "figure": points_figure(points, "kernels kept", "LUT", label)})
    return plots


def points_figure(points: Sequence[tuple[float, float, str]], across: str, up: str, label: str) -> Markup:
    """Named `points` (x, y, name) on axes from 0, with a line from the origin through their centre.

    Layers on the line pay in proportion to what they kept.
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
        _text(right, floor + 32, across, "end"),
        _text(_LEFT - 6, top + 4, count_text(y_end / 1.08), "end"),
        _text(_LEFT - 6, floor, "0", "end"),
        _text(_LEFT - 6, (top + floor) / 2, up, "end"),
        _text(_LEFT, floor + 16, "0", "middle"),
        _text(right, floor + 16, count_text(x_end / 1.08), "end"),
    ]
    if total_x > 0:
        # To where the line leaves the frame, on whichever side.
        reach = min(x_end, y_end * total_x / total_y) if total_y > 0 else x_end
        x, y = place(reach, reach * total_y / total_x)
        parts.append(Markup('<path class="even" d="M{:.5g},{:.5g}L{:.5g},{:.5g}"/>').format(_LEFT, floor, x, y))
    for kept, lut, name in points:
        x, y = place(kept, lut)
        title = f"{name}: {count_text(lut)} {up}, {count_text(kept)} {across}"
        parts.append(
            Markup('<circle class="dot" cx="{:.5g}" cy="{:.5g}" r="4"><title>{}</title></circle>').format(x, y, title)
        )
        parts.append(_text(x + 8 if x < right - 90 else x - 8, y + 4, name, "start" if x < right - 90 else "end"))
    return Markup(
        '<svg class="points" role="img" aria-label="{0}" viewBox="0 0 {1:g} {2:g}" width="{1:g}" height="{2:g}">'
        "<title>{0}</title>{3}</svg>"
    ).format(label, _WIDTH, _HEIGHT, Markup("").join(parts))


def _simulation_table(simulation: Mapping[str, Any]) -> Table:
    figures = {
        "samples, one right after another": simulation["samples"],
        "outputs with other bits than the emulation": simulation["outputs_unlike_emulation"],
        "latency in clocks, first value in to last value out": simulation["latency_cycles"],
        "interval in clocks, between two samples": simulation["interval_cycles"],
    }
    return Table(
        f"Simulated clock by clock by {simulation['tool']}",
        (Column("figure", tuple(figures), numeric=False), Column("measured", tuple(map(count_text, figures.values())))),
    )


def _synthesis_table(synthesis: Mapping[str, Any], found: Mapping[str, Any]) -> Table:
    kernels = {row["layer"]: row for row in found.get("kernels", ())}
    layers, total = synthesis["layers"], synthesis["total"]
    names = [layer["layer"] for layer in layers]
    kept = [kernels.get(name, {}).get("kept") for name in names]
    notes = [f"{synthesis['note']}.", f"Each layer by itself; total: {synthesis['total_of'] or 'unknown'}."]
    if total is not None and synthesis["whole"]["left_out"]:
        notes.append(f"Of the whole design, {synthesis['whole']['left_out']}; what joins the layers is not counted.")
    notes += [f"{layer['layer']}: {layer['left_out']}." for layer in layers if layer["left_out"]]
    # Runs that were measured before layers said so have none.
    notes += [f"{name}: {how}." for name, how in found.get("built", {}).items()]
    columns = [
        Column("layer", (*names, "total"), numeric=False),
        Column("kernels kept", (*map(count_text, kept), "")),
        Column("products", (*(count_text(layer["kept"]) for layer in layers), "")),
    ]
    for key, label in _RESOURCES:
        columns.append(Column.of(label, key, [_measured(cells) for cells in (*_cells(layers), total)]))
    caption = f"Synthesised for {synthesis['family']} by {synthesis['tool']} ({OPEN_SYNTH})"
    return Table(caption, tuple(columns), " ".join(notes), totals=True).shown_columns()


def _route_table(route: Mapping[str, Any], interval: int | None) -> Table:
    used, capacity = route["used"] or {}, route["capacity"]
    limits = route["fmax_range_mhz"]
    ended = [run for run in route["runs"] if run["fmax_mhz"] is not None]
    names = [label for _, label in _SITES]
    shares = [
        percent_text(used[key] / capacity[key]) if used.get(key) is not None and capacity.get(key) else DASH
        for key, _ in _SITES
    ]
    speed = "No seed ended in time."
    if limits is not None:
        speed = (
            f"Clock: {route['fmax_mhz']:.1f} MHz, median of {len(ended)} seeds ({limits[0]:.1f} to {limits[1]:.1f}); "
            f"speed grade {route['speed']}. It says nothing about another family."
        )
        if interval:
            rate = count_text(1e6 * route["fmax_mhz"] / interval)
            speed += f" With a sample every {count_text(interval)} clocks that is {rate} a second."
    return Table(
        f"Placed and routed on {route['device']} by {route['tool']} ({ROUTE_ECP5})",
        (
            Column("resource", tuple(names), numeric=False),
            Column("used", tuple(count_text(used.get(key)) for key, _ in _SITES), stage=ROUTE_ECP5),
            Column("capacity", tuple(count_text(capacity.get(key)) for key, _ in _SITES)),
            Column("share", tuple(shares)),
        ),
        speed,
    )


def _measured(cells: Mapping[str, Any] | None) -> Measurement[int]:
    return Measurement(OPEN_SYNTH, None, from_plain(cells or {}, Resources[int], "what open tools counted"))


def _cells(layers: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any] | None]:
    return [layer["cells"] for layer in layers]


def _text(x: float, y: float, text: str, anchor: str) -> Markup:
    return Markup('<text x="{:.5g}" y="{:.5g}" text-anchor="{}">{}</text>').format(x, y, anchor, text)
