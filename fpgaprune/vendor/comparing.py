"""`compare`: estimates beside vendor reports, with one column for each stage, and the ratio predicted / actual."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from fpgaprune.errors import ReportError
from fpgaprune.measure import PRICED, STAGES, Estimate, Measurement, Resources, Stage
from fpgaprune.target import CAPACITIES
from fpgaprune.vendor.layer_rows import match_layers
from fpgaprune.vendor.report import PLATFORM, SUMMARY, VendorReport

# Step -> the stage of the estimate, and the stage of the report that it predicts.
RATIOS = {stage.step: (stage, Stage(stage.step)) for stage in PRICED}
_CYCLES = {
    "latency_min_cycles": "latency_min",
    "latency_max_cycles": "latency_max",
    "interval_min_cycles": "interval_min",
    "interval_max_cycles": "interval_max",
}
FIGURES = (*CAPACITIES, *_CYCLES, "est_clock_ns")

Number = int | float | None


@dataclass(frozen=True, slots=True)
class CompareRow:
    """One figure of a design, or of one of its layers, at every stage.

    Attributes:
        design: label of the design.
        layer: name of the layer; None for the whole design.
        kind: class of the layer.
        module: name of the layer in the reports; None if it is not certain.
        figure: one of `FIGURES`.
        values: stage -> value; None if it is unknown.
        ratios: stage -> predicted / actual; None if either is unknown or the actual figure is 0.
    """

    design: str
    layer: str | None
    kind: str | None
    module: str | None
    figure: str
    values: Mapping[Stage, Number]
    ratios: Mapping[str, float | None]

    def to_json(self) -> dict[str, Any]:
        """Return the row as flat JSON data: `ratio_csynth` is the ratio at stage `csynth`."""
        return {
            "design": self.design,
            "layer": self.layer,
            "kind": self.kind,
            "module": self.module,
            "figure": self.figure,
            **{str(stage): value for stage, value in self.values.items()},
            **{f"ratio_{stage}": ratio for stage, ratio in self.ratios.items()},
        }


@dataclass(frozen=True, slots=True)
class Comparison:
    """Designs side by side.

    Attributes:
        columns: the stages, one column for each.
        rows: for each design, first its totals, then its layers.
        notes: sentences on what could not be compared, and why.
    """

    columns: tuple[Stage, ...]
    rows: tuple[CompareRow, ...]
    notes: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the whole table as JSON data."""
        return {"columns": list(self.columns), "rows": [r.to_json() for r in self.rows], "notes": list(self.notes)}


def compare(
    reports: Mapping[str, Iterable[VendorReport]],
    estimates: Mapping[str, Estimate],
    modules: Mapping[str, Mapping[str, str]] | None = None,
) -> Comparison:
    """Compare estimates and reports of the same designs, figure by figure.

    Rows without any known figure are left out. Reports on modules inside a design are no part of its totals. The
    latency and interval of an estimate are compared with the longest ones of csynth.

    Args:
        reports: design's label -> its reports, as `read_reports` gives them.
        estimates: design's label -> its estimate.
        modules: design's label -> layer name -> module name, for layers whose module the rules cannot tell.

    Raises:
        ReportError: two reports state different figures for the same design and stage.
    """
    rows: list[CompareRow] = []
    notes: list[str] = []
    stated = (report.stage for own in reports.values() for report in own)
    columns = tuple(sorted({*STAGES, *stated}, key=lambda stage: stage.order))
    for design in dict.fromkeys([*reports, *estimates]):
        own = tuple(reports.get(design, ()))
        estimate = estimates.get(design)
        tops = {stage: _tops([report for report in own if report.stage == stage], design) for stage in columns}
        rows += _totals(design, tops, estimate, notes)
        if estimate is not None:
            rows += _layers(design, tops, estimate, (modules or {}).get(design), notes)
    return Comparison(columns, tuple(rows), tuple(notes))


def _tops(reports: Sequence[VendorReport], design: str) -> list[VendorReport]:
    """Return the reports on the whole design: no other report of the stage lists their module inside itself."""
    inside = {row.module for report in reports for row in report.rows if row.module != report.design}
    tops = [report for report in reports if report.design is None or report.design not in inside]
    # A summary states less than a report of the same stage, and rounds its figures.
    tops = [report for report in tops if report.state != SUMMARY] or tops
    names = sorted({report.design for report in tops if report.design})
    if len(names) > 1:
        raise ReportError(
            f"design {design!r} has {reports[0].stage} reports on {', '.join(names)}, none of which is inside another; "
            f"pass the reports of one design, or give each its own label"
        )
    if any(PLATFORM in report.breakdown for report in tops):
        # The other reports count the board's platform too, so only their timing is used.
        tops = [r if PLATFORM in r.breakdown else replace(r, total=Resources(), rows=()) for r in tops]
    return tops


def _totals(
    design: str, tops: Mapping[Stage, Sequence[VendorReport]], estimate: Estimate | None, notes: list[str]
) -> list[CompareRow]:
    columns: dict[Stage, Mapping[str, Number]] = {}
    for stage, reports in tops.items():
        failed = [report for report in reports if report.passed is False]
        notes += [f"{design}: {report.source}: the simulation failed; its cycles are left out" for report in failed]
        columns[stage] = _merged(design, stage, [report for report in reports if report.passed is not False])
    if estimate is not None:
        columns |= {stage: _stated(estimate.at(stage)) for stage in PRICED}
    return _rows(design, None, None, None, columns)


def _layers(
    design: str,
    tops: Mapping[Stage, Sequence[VendorReport]],
    estimate: Estimate,
    given: Mapping[str, str] | None,
    notes: list[str],
) -> list[CompareRow]:
    names = [(layer.name, layer.kind) for layer in estimate.layers]
    found = {
        stage: max((match_layers(names, report.rows, given) for report in reports), key=len, default={})
        for stage, reports in tops.items()
    }
    rows: list[CompareRow] = []
    for layer in estimate.layers:
        matched = {stage: of_layer[layer.name] for stage, of_layer in found.items() if layer.name in of_layer}
        columns: dict[Stage, Mapping[str, Number]] = {stage: {} for stage in tops}
        columns |= {stage: _stated(row.at(stage, layer.name)) for stage, row in matched.items()}
        columns |= {stage: _stated(layer.at(stage)) for stage in PRICED}
        module = next((row.module or row.name for row in matched.values()), None)
        rows += _rows(design, layer.name, layer.kind, module, columns)
    unknown = [name for name, kind in names if kind != "Input" and not any(name in at for at in found.values())]
    if unknown and any(any(report.rows for report in at) for at in tops.values()):
        notes.append(f"{design}: no row of a report is certainly that of {', '.join(unknown)}")
    return rows


def _rows(
    design: str, layer: str | None, kind: str | None, module: str | None, columns: Mapping[Stage, Mapping[str, Number]]
) -> list[CompareRow]:
    rows = []
    for figure in FIGURES:
        values = {column: stated.get(figure) for column, stated in columns.items()}
        if any(value is not None for value in values.values()):
            ratios = {stage: _ratio(values[a], values[b]) for stage, (a, b) in RATIOS.items()}
            rows.append(CompareRow(design, layer, kind, module, figure, values, ratios))
    return rows


def _merged(design: str, stage: Stage, reports: Sequence[VendorReport]) -> dict[str, Number]:
    """Return each figure, from the report that states it; utilisation and timing are in different files."""
    figures: dict[str, Number] = {}
    origin: dict[str, VendorReport] = {}
    for report in reports:
        for name, value in _stated(report.whole).items():
            if value is None:
                continue
            if name in origin and figures[name] != value:
                raise ReportError(
                    f"design {design!r}, stage {stage}: {name} is {figures[name]} in {origin[name].source} and "
                    f"{value} in {report.source}; pass the reports of one run only"
                )
            figures[name], origin[name] = value, report
    return figures


def _stated(measured: Measurement[Any]) -> dict[str, Number]:
    """Return the measured values by their names in `FIGURES`."""
    counts = {name: measured.figure(name) for name in CAPACITIES}
    return {
        **{name: None if count is None else count.value for name, count in counts.items()},
        **{name: getattr(measured.cycles, field) for name, field in _CYCLES.items()},
        "est_clock_ns": measured.clock_ns,
    }


def _ratio(predicted: Number, actual: Number) -> float | None:
    return None if predicted is None or not actual else predicted / actual
