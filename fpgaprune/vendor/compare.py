"""Estimates beside vendor reports: one column for each stage, and what was predicted over what came."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from fpgaprune.errors import ReportError
from fpgaprune.vendor.layer_rows import match_layers
from fpgaprune.vendor.report import PLATFORM, RESOURCES, STAGES, SUMMARY, Cycles, ModuleRow, Usage, VendorReport

COLUMNS = ("analytic_csynth", "csynth", "analytic_synth", "synth", "route", "cosim", "synth(open)", "route(ecp5)")
RATIOS = {"csynth": ("analytic_csynth", "csynth"), "synth": ("analytic_synth", "synth")}
# The project in which i++ fits components, with registers of its own at their ports.
_HARNESS = "quartus_compile"
_CYCLES = {
    "latency_min_cycles": "latency_min",
    "latency_max_cycles": "latency_max",
    "interval_min_cycles": "interval_min",
    "interval_max_cycles": "interval_max",
}
FIGURES = (*RESOURCES, *_CYCLES, "est_clock_ns")

Number = int | float | None


@dataclass(frozen=True, slots=True)
class CompareRow:
    """One figure of one design, or of one of its layers, at every stage that is known.

    Attributes:
        design: its label. layer: None for the whole design. kind: class of the layer.
        module: that the reports call the layer, None where none was found with certainty.
        figure: one of `FIGURES`. values: by column; None is unknown, never 0.
        ratios: predicted / actual by stage; None where either is unknown or the actual figure is 0.
    """

    design: str
    layer: str | None
    kind: str | None
    module: str | None
    figure: str
    values: Mapping[str, Number]
    ratios: Mapping[str, float | None]

    def to_json(self) -> dict[str, Any]:
        """The row as flat JSON data: `ratio_csynth` is the ratio at stage `csynth`."""
        return {
            "design": self.design,
            "layer": self.layer,
            "kind": self.kind,
            "module": self.module,
            "figure": self.figure,
            **self.values,
            **{f"ratio_{stage}": ratio for stage, ratio in self.ratios.items()},
        }


@dataclass(frozen=True, slots=True)
class Comparison:
    """Designs side by side.

    Attributes:
        columns: of figures; each holds one stage only. rows: by design, first its totals, then its layers.
        notes: sentences on what could not be compared and why.
    """

    columns: tuple[str, ...]
    rows: tuple[CompareRow, ...]
    notes: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """The whole table as JSON data."""
        return {"columns": list(self.columns), "rows": [r.to_json() for r in self.rows], "notes": list(self.notes)}


def compare(
    reports: Mapping[str, Iterable[VendorReport]],
    estimates: Mapping[str, Mapping[str, Any]],
    modules: Mapping[str, Mapping[str, str]] | None = None,
) -> Comparison:
    """Estimates and reports of the same designs, figure by figure.

    Rows without any known figure are left out. Reports of modules inside a design take no part in its totals. An
    estimate's latency and interval are compared with the longest ones of csynth.

    Args:
        reports: design's label -> its reports, as `read_reports` gives them.
        estimates: design's label -> its estimate as JSON data.
        modules: design's label -> layer name -> module name, for layers whose module cannot be told by itself.

    Raises:
        ReportError: two reports state different figures for the same design and stage, or an estimate has another
            form.
    """
    rows: list[CompareRow] = []
    notes: list[str] = []
    for design in dict.fromkeys([*reports, *estimates]):
        own = tuple(reports.get(design, ()))
        estimate = estimates.get(design)
        tops = {stage: _tops([report for report in own if report.stage == stage], design) for stage in STAGES}
        rows += _totals(design, tops, estimate, notes)
        if estimate is not None:
            rows += _layers(design, tops, estimate, (modules or {}).get(design), notes)
    return Comparison(COLUMNS, tuple(rows), tuple(notes))


def _tops(reports: Sequence[VendorReport], design: str) -> list[VendorReport]:
    """The reports on the whole design: those whose module no other report of the stage lists inside itself."""
    # What a tool builds around the design for its fit is no part of the design.
    reports = [report for report in reports if report.design != _HARNESS] or reports
    inside = {row.module for report in reports for row in report.rows if row.module != report.design}
    tops = [report for report in reports if report.design is None or report.design not in inside]
    # A summary states less than the report beside it, and rounds what it prints.
    tops = [report for report in tops if report.state != SUMMARY] or tops
    names = sorted({report.design for report in tops if report.design})
    if len(names) > 1:
        raise ReportError(
            f"design {design!r} has {reports[0].stage} reports on {', '.join(names)}, none inside another; "
            f"pass the reports of one design, or give each its own label"
        )
    if any(PLATFORM in report.breakdown for report in tops):
        # Others count the board's platform with the kernels; their timing still holds.
        tops = [r if PLATFORM in r.breakdown else replace(r, total=Usage(), rows=()) for r in tops]
    return tops


def _totals(
    design: str,
    tops: Mapping[str, Sequence[VendorReport]],
    estimate: Mapping[str, Any] | None,
    notes: list[str],
) -> list[CompareRow]:
    columns: dict[str, Mapping[str, Number]] = {}
    for stage, reports in tops.items():
        failed = [report for report in reports if report.passed is False]
        notes += [f"{design}: {report.source}: the simulation failed; its cycles are left out" for report in failed]
        columns[stage] = _merged(design, stage, [report for report in reports if report.passed is not False])
    if estimate is not None:
        columns |= _predicted(estimate.get("total"), estimate, f"the estimate of {design!r}")
    return _rows(design, None, None, None, columns)


def _layers(
    design: str,
    tops: Mapping[str, Sequence[VendorReport]],
    estimate: Mapping[str, Any],
    given: Mapping[str, str] | None,
    notes: list[str],
) -> list[CompareRow]:
    layers = estimate.get("layers")
    if not isinstance(layers, list) or not all(isinstance(layer, Mapping) and "name" in layer for layer in layers):
        raise ReportError(f"the estimate of {design!r} has no list 'layers' of named layers; wanted Estimate.to_json()")
    names = [(str(layer["name"]), str(layer.get("kind"))) for layer in layers]
    found = {
        stage: max((match_layers(names, report.rows, given) for report in reports), key=len, default={})
        for stage, reports in tops.items()
    }
    rows: list[CompareRow] = []
    for layer, (name, kind) in zip(layers, names, strict=True):
        matched = {stage: of_layer[name] for stage, of_layer in found.items() if name in of_layer}
        columns = {stage: _stated(row.usage, row.cycles) for stage, row in matched.items()}
        columns |= _predicted(layer, layer, f"layer {name!r} of the estimate of {design!r}")
        module = next((_module(row) for row in matched.values()), None)
        rows += _rows(design, name, kind, module, columns)
    unknown = [name for name, kind in names if kind != "Input" and not any(name in at for at in found.values())]
    if unknown and any(any(report.rows for report in at) for at in tops.values()):
        notes.append(f"{design}: no row of a report is certainly that of {', '.join(unknown)}")
    return rows


def _rows(
    design: str,
    layer: str | None,
    kind: str | None,
    module: str | None,
    columns: Mapping[str, Mapping[str, Number]],
) -> list[CompareRow]:
    rows = []
    for figure in FIGURES:
        values = {column: columns.get(column, {}).get(figure) for column in COLUMNS}
        if any(value is not None for value in values.values()):
            ratios = {stage: _ratio(values[a], values[b]) for stage, (a, b) in RATIOS.items()}
            rows.append(CompareRow(design, layer, kind, module, figure, values, ratios))
    return rows


def _merged(design: str, stage: str, reports: Sequence[VendorReport]) -> dict[str, Number]:
    """Each figure from the report that states it: utilisation and timing come in files of their own."""
    figures: dict[str, Number] = {}
    origin: dict[str, VendorReport] = {}
    for report in reports:
        for name, value in {**_stated(report.total, report.cycles), "est_clock_ns": report.est_clock_ns}.items():
            if value is None:
                continue
            if name in origin and figures[name] != value:
                raise ReportError(
                    f"design {design!r}, stage {stage}: {name} is {figures[name]} in {origin[name].source} and "
                    f"{value} in {report.source}; pass the reports of one run only"
                )
            figures[name], origin[name] = value, report
    return figures


def _stated(usage: Usage, cycles: Cycles) -> dict[str, Number]:
    return {
        **{name: getattr(usage, name) for name in RESOURCES},
        **{name: getattr(cycles, field) for name, field in _CYCLES.items()},
    }


def _predicted(stages: Any, timing: Mapping[str, Any], where: str) -> dict[str, dict[str, Number]]:
    if not isinstance(stages, Mapping):
        raise ReportError(f"{where} has no figures by stage; wanted Estimate.to_json()")
    columns: dict[str, dict[str, Number]] = {}
    for stage in RATIOS:
        usage = stages.get(stage)
        if usage is not None and not isinstance(usage, Mapping):
            raise ReportError(f"{where} has {usage!r} at stage {stage!r}; wanted figures by resource")
        columns[f"analytic_{stage}"] = {name: _figure(usage, name, where) for name in RESOURCES}
    columns["analytic_csynth"] |= {
        "latency_max_cycles": _number(timing.get("latency_cycles"), where),
        "interval_max_cycles": _number(timing.get("interval_cycles"), where),
    }
    return columns


def _figure(usage: Mapping[str, Any] | None, name: str, where: str) -> Number:
    figure = None if usage is None else usage.get(name)
    return _number(figure.get("value") if isinstance(figure, Mapping) else figure, f"{where}, {name}")


def _number(value: Any, where: str) -> Number:
    if value is None or (isinstance(value, int | float) and not isinstance(value, bool)):
        return value
    raise ReportError(f"{where}: {value!r} is no number")


def _ratio(predicted: Number, actual: Number) -> float | None:
    return None if predicted is None or not actual else predicted / actual


def _module(row: ModuleRow) -> str:
    return row.module or row.name
