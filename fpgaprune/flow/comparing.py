"""`compare_folders`: the designs in some folders, estimated and, where vendor reports lie there, beside them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from fpgaprune.design import Design
from fpgaprune.errors import EstimateError, NoReportError, RunError
from fpgaprune.estimate import estimate
from fpgaprune.flow.measuring import open_reports
from fpgaprune.flow.pricing import load_designs, target_of
from fpgaprune.vendor import VendorReport, read_reports
from fpgaprune.vendor.compare import Comparison, compare


def compare_folders(folders: Iterable[Path]) -> Comparison:
    """Estimates beside vendor reports for every design found.

    Args:
        folders: run directories (their project in `hls/` is looked through for reports) or hls4ml projects.

    Raises:
        RunError: a folder holds neither, or two share a name.
        EstimateError: a design cannot be priced, and no report on it lies there.
        ReportError: a report is cut off or contradicts another.
    """
    sources = label_designs(folders)
    reports = {label: _reports(folder, label) for label, (folder, _) in sources.items() if folder is not None}
    estimates = {}
    for label, (_, design) in sources.items():
        try:
            estimates[label] = estimate(design, target_of(design)).to_json()
        except EstimateError:
            # What a vendor reported stands without an estimate beside it.
            if not reports.get(label):
                raise
    return compare(reports, estimates)


def label_designs(folders: Iterable[Path]) -> dict[str, tuple[Path | None, Design]]:
    """Label to the folder that holds reports on a design, if any, and the design.

    Raises:
        RunError: a folder holds no design, or two share a name.
    """
    found: dict[str, tuple[Path | None, Design]] = {}
    for folder in folders:
        label = folder.resolve().name
        if label in {name.partition("/")[0] for name in found}:
            raise RunError(f"two folders are called {label!r}; rename one, or give them one by one")
        designs = load_designs(folder)
        labels = [label] if len(designs) == 1 else [f"{label}/{side}" for side in designs]
        found |= {name: (None, design) for name, design in zip(labels, designs.values(), strict=True)}
        # What was synthesised is the design after pruning.
        found[labels[-1]] = (folder, found[labels[-1]][1])
    return found


def comparison_table(found: Comparison) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
    """Headers and rows for a terminal: figures that an estimate or a report states, stages in columns of their own."""
    columns = [column for column in found.columns if any(row.values.get(column) is not None for row in found.rows)]
    headers = ("design", "layer", "figure", *columns, "ratio csynth", "ratio synth")
    rows = [
        (
            row.design,
            row.layer or "whole",
            row.figure,
            *(row.values.get(column) for column in columns),
            *(_ratio(row.ratios.get(stage)) for stage in ("csynth", "synth")),
        )
        for row in found.rows
    ]
    return headers, rows


def _ratio(value: float | None) -> str | None:
    return None if value is None else f"{value:.2f}"


def _reports(folder: Path, label: str) -> list[VendorReport]:
    """Those of vendor tools in a project, or in the project of a run, and what the run measured with open tools."""
    try:
        found = list(read_reports(folder if (folder / "firmware").is_dir() else folder / "hls"))
    except NoReportError:
        found = []
    measured = folder / "measure.json"
    if measured.is_file():
        content = json.loads(measured.read_text())
        found += [] if content is None else open_reports(content, label)
    return found
