"""The report as one HTML page that opens offline and needs no script, and everything in it as JSON."""

from __future__ import annotations

import json
import os
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from fpgaprune.files import write_bytes
from fpgaprune.measure import Estimate, Figure, Stage, capacity_of
from fpgaprune.report.advice import changes_tables, shortage_lines, suggested_changes
from fpgaprune.report.answers import give_answers, left_out
from fpgaprune.report.contents import RunReport
from fpgaprune.report.estimate_tables import (
    MULTIPLICATIONS,
    RESOURCES,
    estimate_notes,
    estimate_stages,
    figure_of,
    layer_resources_table,
    layer_speed_table,
    multiplications_table,
    pair_layers,
    share,
    speed_table,
    totals_table,
)
from fpgaprune.report.figures import (
    Bar,
    axis_end,
    bars_figure,
    curve_figure,
    kernel_states,
    kernels_text,
    mask_figure,
    shares_figure,
)
from fpgaprune.report.measured import counts_tables, kernel_plots, measured_tables
from fpgaprune.report.numbers import DASH, count_text, percent_text
from fpgaprune.report.run_tables import (
    certificate_table,
    checks_tables,
    facts,
    kernels_table,
    provenance,
    stages_table,
)
from fpgaprune.report.table import LABELS, Table
from fpgaprune.report.verdict import measured_verdict, verdicts

if TYPE_CHECKING:
    from jinja2 import Environment


def render_page(report: RunReport) -> str:
    """Return the page of `report`; equal reports give equal pages.

    Raises:
        ReportError: the report contradicts itself.
    """
    return (
        environment()
        .get_template("report.html")
        .render(
            report=report,
            facts=facts(report),
            verdicts=verdicts(report),
            answers=give_answers(report),
            advice=_advice(report),
            stages=_stages(report),
            layer_bars=_layer_bars(report),
            speed=speed_table(report),
            notes=estimate_notes(report),
            measured=[*counts_tables(report.counts), *measured_tables(report.measured)],
            kernel_plots=kernel_plots(report),
            kernels=kernels_table(report),
            masks=_masks(report),
            curve=curve_figure(report.losses),
            multiplications=multiplications_table(report),
            multiplication_bars=_multiplication_bars(report),
            certificate=certificate_table(report),
            checks=checks_tables(report),
            left_out=left_out(report),
            layer_speed=layer_speed_table(report),
            flow_stages=stages_table(report),
            provenance=provenance(report),
        )
    )


@cache
def environment() -> Environment:
    """Return the templates of this package, with what their tables need."""
    # Commands that write no page start faster without it.
    from jinja2 import Environment, PackageLoader, StrictUndefined

    found = Environment(
        loader=PackageLoader("fpgaprune.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: DASH if value is None else value,
    )
    found.globals.update(column_class=_column_class, cell_class=_cell_class)
    return found


def _column_class(table: Table, index: int) -> str:
    column = table.columns[index]
    starts = index > 0 and column.group != table.columns[index - 1].group
    names = [*([] if column.numeric else ["text"]), *(["starts"] if starts else [])]
    return " ".join(names)


def _cell_class(cell: str) -> str:
    names = {"VIOLATED": " violated", "holds": " holds", "left out": " faint", "gone": " faint", "new": " faint"}
    return names.get(cell, " faint" if cell == DASH else "")


def _advice(report: RunReport) -> dict[str, Any] | None:
    """Return the texts on what would make the network fit; None if nothing is short."""
    if report.advice is None or not report.advice.needed:
        return None
    return {
        "shortages": shortage_lines(report.advice),
        "changes": suggested_changes(report.advice),
        "tables": changes_tables(report.advice),
        "notes": report.advice.notes,
    }


def _stages(report: RunReport) -> list[dict[str, Any]]:
    """Return the bars and tables of each stage; all bars have the same axis, so that they can be compared."""
    capacity = capacity_of(report.target.part)
    stages = estimate_stages(report)
    sides = (report.before, report.after)

    def bar(side: Estimate | None, stage: Stage, key: str) -> Bar:
        figure = None if side is None else figure_of(side.at(stage), key)
        return Bar(*(share(end, capacity[key]) for end in _ends(figure)))

    before, after = ({(s, key): bar(side, s, key) for s in stages for key, _ in RESOURCES} for side in sides)
    end = axis_end([*before.values(), *after.values()])
    return [
        {
            "title": f"Estimate for {stage.words} ({stage.step})",
            "capacity_at": f"{100 / end:.4g}%",
            "bars": [_capacity_row(label, before[stage, key], after[stage, key], end) for key, label in RESOURCES],
            "totals": totals_table(report, stage),
            "layers": layer_resources_table(report, stage),
        }
        for stage in stages
    ]


def _ends(figure: Figure | None) -> tuple[int | None, ...]:
    """Return middle, lower and upper end."""
    return (None, None, None) if figure is None else (figure.value, figure.low, figure.high)


def _capacity_row(label: str, before: Bar, after: Bar, end: float) -> dict[str, Any]:
    shares = [percent_text(before.value), percent_text(after.value)]
    text = f"{label}: {shares[0]} of the capacity before, {shares[1]} after"
    figure = bars_figure(before, after, end, text, capacity=1.0)
    return {"label": label, "figure": figure, "before": shares[0], "after": shares[1]}


def _layer_bars(report: RunReport) -> dict[str, Any] | None:
    """Return the bars of the resource that runs out first, for each layer; None without estimates."""
    stages = estimate_stages(report)
    if not stages:
        return None
    binding = getattr(report.after or report.before, "binding", None)
    stage = stages[-1]
    label = LABELS[key := RESOURCES[0][0] if binding is None else binding.resource]
    pairs = [
        (pair, [None if layer is None else figure_of(layer.at(stage), key) for layer in (pair.before, pair.after)])
        for pair in pair_layers(report.before, report.after)
    ]
    shown = [(pair, figures) for pair, figures in pairs if any(figure and figure.value for figure in figures)]
    bars = [[Bar(*_ends(figure)) for figure in figures] for _, figures in shown]
    end = axis_end([bar for two in bars for bar in two], least=1.0)
    rows = []
    for (pair, _), (before, after) in zip(shown, bars, strict=True):
        counts = [count_text(before.value), count_text(after.value)]
        text = f"{pair.name}: {counts[0]} {label} before, {counts[1]} after"
        figure = bars_figure(before, after, end, text)
        rows.append({"label": pair.name, "figure": figure, "before": counts[0], "after": counts[1]})
    return {"title": f"{label} of each layer ({stage.step} estimate)", "bars": rows} if rows else None


def _masks(report: RunReport) -> list[dict[str, Any]]:
    masks = []
    for layer in report.layers:
        states = kernel_states(layer)
        if states is None:
            continue
        rows, columns = states.shape
        masks.append(
            {
                "name": layer.name,
                "figure": mask_figure(states, f"{layer.name}: {kernels_text(layer)}"),
                "down": f"{rows} in",
                "across": f"{columns} output channel{'s' * (columns != 1)}",
                "caption": kernels_text(layer),
            }
        )
    return masks


def _multiplication_bars(report: RunReport) -> list[dict[str, Any]]:
    rows = []
    for pair in pair_layers(report.before, report.after):
        counted = [None if layer is None else layer.multiplications for layer in (pair.before, pair.after)]
        whole = max([counts.total for counts in counted if counts], default=0)
        if not whole:
            continue
        sides = []
        for when, counts in zip(("before", "after"), counted, strict=True):
            parts = [(key, getattr(counts, key)) for key, _ in reversed(MULTIPLICATIONS[1:])] if counts else []
            left = counts.nonzero if counts else None
            figure = shares_figure(parts, whole, f"{pair.name}, {when}: {count_text(left)} multiplications left")
            sides.append({"when": when, "figure": figure, "left": count_text(left)})
        rows.append({"name": pair.name, "sides": sides})
    return rows


class ReportPaths(NamedTuple):
    """The files of a report."""

    html: Path
    json: Path


def write_report(out_dir: str | os.PathLike[str], report: RunReport) -> ReportPaths:
    """Write report.html and report.json to `out_dir`; equal reports give equal bytes.

    Raises:
        ReportError: the report contradicts itself; nothing is written.
    """
    # Both are made before the first is written, so that bad input leaves the folder as it was.
    page = render_page(report).encode()
    said = [one for one in (*verdicts(report), measured_verdict(report)) if one is not None]
    answers = {one.about: {"reply": one.reply, "text": one.text, "tone": one.tone} for one in said}
    content = {**report.to_json(), "verdicts": answers}
    document = (json.dumps(content, indent=1, sort_keys=True, allow_nan=False, ensure_ascii=False) + "\n").encode()
    folder = Path(out_dir)
    return ReportPaths(write_bytes(folder / "report.html", page), write_bytes(folder / "report.json", document))
