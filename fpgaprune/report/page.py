"""The report as one HTML page that opens offline and needs no script."""

from __future__ import annotations

from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from fpgaprune.report.answers import give_answers, left_out
from fpgaprune.report.contents import RunReport
from fpgaprune.report.estimate_tables import (
    MULTIPLICATIONS,
    estimate_notes,
    estimate_stages,
    layer_resources_table,
    layer_speed_table,
    multiplications_table,
    share,
    speed_table,
    totals_table,
)
from fpgaprune.report.estimates import RESOURCES, pair_layers, total_of
from fpgaprune.report.figures import (
    KEPT,
    LOCKED,
    REMOVED,
    Bar,
    axis_end,
    capacity_figure,
    kernel_states,
    mask_figure,
    shares_figure,
)
from fpgaprune.report.numbers import DASH, count_text, percent_text
from fpgaprune.report.run_tables import (
    certificate_table,
    checks_table,
    facts,
    kernels_table,
    provenance,
    stages_table,
)
from fpgaprune.report.table import STAGE_NAMES, Figure, Table


def render_page(report: RunReport) -> str:
    """The page of `report`; equal reports give equal pages.

    Raises:
        ReportError: the report contradicts itself.
    """
    return (
        _environment()
        .get_template("report.html")
        .render(
            report=report,
            facts=facts(report),
            answers=give_answers(report),
            stages=[_stage(report, stage) for stage in estimate_stages(report)],
            speed=speed_table(report),
            notes=estimate_notes(report),
            kernels=kernels_table(report),
            masks=_masks(report),
            multiplications=multiplications_table(report),
            multiplication_bars=_multiplication_bars(report),
            certificate=certificate_table(report),
            checks=checks_table(report),
            left_out=left_out(report),
            layer_speed=layer_speed_table(report),
            flow_stages=stages_table(report),
            provenance=provenance(report),
        )
    )


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("fpgaprune.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: DASH if value is None else value,
    )
    environment.globals.update(column_class=_column_class, cell_class=_cell_class)
    return environment


def _column_class(table: Table, index: int) -> str:
    column = table.columns[index]
    starts = index > 0 and column.group != table.columns[index - 1].group
    names = [*([] if column.numeric else ["text"]), *(["starts"] if starts else [])]
    return " ".join(names)


def _cell_class(cell: str) -> str:
    names = {"VIOLATED": " violated", "holds": " holds", "left out": " faint", "gone": " faint", "new": " faint"}
    return names.get(cell, " faint" if cell == DASH else "")


def _stage(report: RunReport, stage: str) -> dict[str, Any]:
    def bar(figure: Figure, key: str) -> Bar:
        capacity = getattr(report.target.part, key)
        return Bar(*(share(value, capacity) for value in (figure.value, figure.low, figure.high)))

    bars = [
        (label, bar(total_of(report.before, stage, key), key), bar(total_of(report.after, stage, key), key))
        for key, label in RESOURCES
    ]
    end = axis_end([each for _, before, after in bars for each in (before, after)])
    return {
        "title": f"After {STAGE_NAMES[stage]} ({stage})",
        "capacity_at": f"{100 / end:.4g}%",
        "bars": [
            {
                "label": label,
                "figure": capacity_figure(before, after, end, label),
                "before": percent_text(before.value),
                "after": percent_text(after.value),
            }
            for label, before, after in bars
        ],
        "totals": totals_table(report, stage),
        "layers": layer_resources_table(report, stage),
    }


def _masks(report: RunReport) -> list[dict[str, Any]]:
    masks = []
    for layer in report.layers:
        states = kernel_states(layer)
        if states is None:
            continue
        kept, locked, removed = (count_text(int((states == state).sum())) for state in (KEPT, LOCKED, REMOVED))
        rows, columns = states.shape
        masks.append(
            {
                "name": layer.name,
                "figure": mask_figure(states, layer.name),
                "down": f"{rows} in",
                "across": f"{columns} output channel{'s' * (columns != 1)}",
                "caption": f"{rows} × {columns} kernels: {kept} kept, {locked} locked, {removed} removed",
            }
        )
    return masks


def _multiplication_bars(report: RunReport) -> list[dict[str, Any]]:
    rows = []
    for pair in pair_layers(report.before, report.after):
        counted = [(layer or {}).get("multiplications") for layer in (pair.before, pair.after)]
        whole = max([counts["total"] for counts in counted if counts], default=0)
        if not whole:
            continue
        sides = []
        for when, counts in zip(("before", "after"), counted, strict=True):
            parts = [(key, counts[key] or 0) for key, _ in reversed(MULTIPLICATIONS[1:])] if counts else []
            left = None if not counts else counts["total"] - counts["zero"]
            figure = shares_figure(parts, whole, f"{pair.name}, {when}: {count_text(left)} multiplications left")
            sides.append({"when": when, "figure": figure, "left": count_text(left)})
        rows.append({"name": pair.name, "sides": sides})
    return rows
