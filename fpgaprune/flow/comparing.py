"""`compare_folders`: the designs in some folders, estimated and, where vendor reports lie there, beside them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from fpgaprune.errors import NoReportError, RunError
from fpgaprune.flow.measuring import open_reports
from fpgaprune.flow.pricing import price
from fpgaprune.vendor import VendorReport, read_reports
from fpgaprune.vendor.compare import Comparison, compare


def compare_folders(folders: Iterable[Path]) -> Comparison:
    """Estimates beside vendor reports for every design found.

    Args:
        folders: run directories (their project in `hls/` is looked through for reports) or hls4ml projects.

    Raises:
        RunError: a folder holds neither, or two share a name.
        ReportError: a report is cut off or contradicts another.
    """
    estimates: dict[str, Any] = {}
    reports: dict[str, list[VendorReport]] = {}
    for folder in folders:
        is_project = (folder / "firmware").is_dir()
        label = folder.resolve().name
        if label in {name.partition("/")[0] for name in estimates}:
            raise RunError(f"two folders are called {label!r}; rename one, or compare them one by one")
        priced = price(folder)
        labels = dict.fromkeys(priced, label) if len(priced) == 1 else {side: f"{label}/{side}" for side in priced}
        estimates.update({labels[side]: figure for side, figure in priced.items()})
        # What was synthesised is the design after pruning.
        last = list(labels.values())[-1]
        reports[last] = _reports(folder if is_project else folder / "hls")
        measured = folder / "measure.json"
        if not is_project and measured.is_file():
            found = json.loads(measured.read_text())
            reports[last] += [] if found is None else open_reports(found, last)
    return compare(reports, estimates)


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


def _reports(folder: Path) -> list[VendorReport]:
    try:
        return list(read_reports(folder))
    except NoReportError:
        return []
