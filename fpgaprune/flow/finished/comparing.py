"""`compare_folders`: estimates of the designs in some folders, beside the vendor reports in them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from fpgaprune.design import Design
from fpgaprune.errors import EstimateError, ReportError, RunError
from fpgaprune.estimate import estimate
from fpgaprune.files import read_json
from fpgaprune.flow.file import require_kind
from fpgaprune.flow.run import load_designs, target_of
from fpgaprune.flow.stages import open_reports
from fpgaprune.measure import Measured, Stage
from fpgaprune.vendor import RATIOS, CompareRow, Comparison, VendorReport, compare, find_reports

# Figures by the names that fit a terminal.
_SHORT = {
    "latency_min_cycles": "latency min",
    "latency_max_cycles": "latency",
    "interval_min_cycles": "interval min",
    "interval_max_cycles": "interval",
    "est_clock_ns": "clock ns",
}


def compare_folders(folders: Iterable[Path]) -> Comparison:
    """Compare estimates with vendor reports for every design found.

    Args:
        folders: run folders, whose reports are in `hls/`, or hls4ml projects.

    Returns:
        The table; its notes name the reports that could not be read, and why.

    Raises:
        RunError: a folder is neither, or two have the same name.
        EstimateError: a design cannot be priced and has no report.
        ReportError: a report contradicts another.
    """
    sources = label_designs(folders)
    reports: dict[str, list[VendorReport]] = {}
    unread: list[str] = []
    for label, (folder, _) in sources.items():
        if folder is not None:
            reports[label], reasons = _reports(folder, label)
            unread += [f"{label}: not read: {reason}" for reason in reasons]
    estimates = {}
    for label, (_, design) in sources.items():
        try:
            estimates[label] = estimate(design, target_of(design))
        except EstimateError:
            # The vendor's figures are shown without an estimate.
            if not reports.get(label):
                raise
    table = compare(reports, estimates)
    return replace(table, notes=(*table.notes, *unread))


def has_reports(folder: Path) -> bool:
    """Return whether `folder`, a run or a project, holds a report of a vendor's tool."""
    project = _project_of(folder)
    if not project.is_dir():
        return False
    found = find_reports(project)
    return bool(list(found) or found.unread)


def label_designs(folders: Iterable[Path]) -> dict[str, tuple[Path | None, Design]]:
    """Map label to the design, and to the folder with its reports, if any.

    Raises:
        RunError: a folder holds no design, or two have the same name.
    """
    found: dict[str, tuple[Path | None, Design]] = {}
    for folder in folders:
        require_kind(folder, "design")
        label = folder.resolve().name
        if label in {name.partition("/")[0] for name in found}:
            raise RunError(f"two folders are called {label!r}; rename one, or give them one by one")
        designs = load_designs(folder)
        labels = [label] if len(designs) == 1 else [f"{label}/{side}" for side in designs]
        found |= {name: (None, design) for name, design in zip(labels, designs.values(), strict=True)}
        # The tool synthesised the design after pruning.
        found[labels[-1]] = (folder, found[labels[-1]][1])
    return found


def comparison_tables(found: Comparison) -> list[tuple[str, tuple[str, ...], list[tuple[Any, ...]]]]:
    """Return title, headers and rows for a terminal: the whole designs, then the layers of each.

    Each stage has its own column. A stage or ratio without a figure has no column, and a figure that is 0 in every
    column has no row.
    """
    wholes = [row for row in found.rows if row.layer is None]
    layers = {
        name: [row for row in found.rows if row.layer and row.design == name]
        for name in dict.fromkeys(row.design for row in found.rows)
    }
    tables = [("whole designs", *_table("design", found.columns, [(row.design, row) for row in wholes]))]
    tables += [
        (f"layers of {name}", *_table("layer", found.columns, [(str(row.layer), row) for row in rows]))
        for name, rows in layers.items()
        if rows
    ]
    return tables


def _table(
    what: str, stages: tuple[Stage, ...], rows: list[tuple[str, CompareRow]]
) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
    told = [(name, row) for name, row in rows if any(row.values.values())]
    columns = [stage for stage in stages if any(row.values.get(stage) is not None for _, row in told)]
    ratios = [step for step in RATIOS if any(row.ratios.get(step) is not None for _, row in told)]
    headers = (
        what,
        "figure",
        *(column.replace("_", "\n").replace("(", "\n(") for column in columns),
        *(f"ratio\n{step}" for step in ratios),
    )
    names = [name if i == 0 or told[i - 1][0] != name else "" for i, (name, _) in enumerate(told)]
    return headers, [
        (
            name,
            _SHORT.get(row.figure, row.figure),
            *(row.values.get(column) for column in columns),
            *(None if (ratio := row.ratios.get(step)) is None else f"{ratio:.2f}" for step in ratios),
        )
        for name, (_, row) in zip(names, told, strict=True)
    ]


def _reports(folder: Path, label: str) -> tuple[list[VendorReport], list[str]]:
    """Return the reports of vendor tools in a project or a run, what the run measured with open tools, and reasons.

    A reason says which report could not be read and why.
    """
    found = find_reports(_project_of(folder))
    reports, reasons = list(found), [str(one) for one in found.unread]
    measured = folder / "measure.json"
    if measured.is_file():
        content = read_json(measured, RunError, "what a run measured", "measure the run again")
        try:
            reports += [] if content is None else open_reports(Measured.from_json(content), label)
        except ReportError as error:
            raise RunError(f"{measured}: {error}; measure the run again") from error
    return reports, reasons


def _project_of(folder: Path) -> Path:
    """Return the hls4ml project of a run, or `folder` itself."""
    return folder if (folder / "firmware").is_dir() else folder / "hls"
