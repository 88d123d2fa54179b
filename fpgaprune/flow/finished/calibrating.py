"""`calibrate_folders` fits the coefficients of the estimator to the vendor reports in a user's projects."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

from fpgaprune.errors import RunError
from fpgaprune.estimate import (
    CALIBRATED,
    UNPRICED,
    ReportedDesign,
    calibration,
    coefficient_changes,
    design_features,
    errors_of_left_out,
    recalibrate,
    recalibration_errors,
    write_calibration,
)
from fpgaprune.flow.finished.comparing import compare_folders, label_designs
from fpgaprune.flow.run import target_of
from fpgaprune.measure import CSYNTH, SYNTH, Stage
from fpgaprune.vendor import CompareRow, Comparison


def calibrate_folders(folders: Iterable[Path], out: Path) -> dict[str, Any]:
    """Fit coefficients to the reports in `folders`, and write them to `out`; the result says what changed.

    Args:
        folders: run folders or hls4ml projects, with the reports of a vendor tool inside.
        out: TOML file to write; `fpgaprune estimate --calibration` reads it. What reports say little of stays as
            shipped.

    Returns:
        The designs; the median error of each figure before, after, and with each design left out in turn; the
        coefficients that moved; and notes on what could not be read or compared.

    Raises:
        RunError: no folder has a report, or two share a name.
        EstimateError: a design has no hardware model.
        ReportError: a report contradicts another.
    """
    paths = list(folders)
    begin = calibration()
    table = compare_folders(paths)
    measured = _measured(paths, table)
    if not measured:
        reasons = f" ({'; '.join(table.notes)})" if table.notes else ""
        raise RunError(
            f"none of {', '.join(map(str, paths))} holds a vendor report beside its design{reasons}; wanted a csynth "
            "report, as fpgaprune compare shows it"
        )
    fitted = recalibrate(measured, begin)
    found = {
        "before": recalibration_errors(measured, begin),
        "after": recalibration_errors(measured, fitted),
        "left_out": errors_of_left_out(measured, begin),
    }
    write_calibration(out, fitted, f"Calibrated with the reports of {', '.join(one.design.name for one in measured)}.")
    return {
        "calibration": str(out),
        "designs": [one.design.name for one in measured],
        "errors": {
            figure: {way: median(by[figure].values()) if figure in by else None for way, by in found.items()}
            for figure in found["before"]
        },
        "moved": {
            c.name: [begin.coefficients[c.name].value, c.value]
            for c in coefficient_changes(begin.coefficients, fitted.coefficients)
        },
        "notes": list(table.notes),
    }


def _measured(paths: list[Path], table: Comparison) -> list[ReportedDesign]:
    found = []
    for label, (_, design) in label_designs(paths).items():
        rows = [row for row in table.rows if row.design == label and row.figure in CALIBRATED]
        layers: dict[str, dict[str, float]] = {}
        for row in rows:
            if row.layer is not None:
                layers.setdefault(row.layer, {}).update(_stated(row, CSYNTH))
        totals = [row for row in rows if row.layer is None]
        csynth, synth = (
            {name: value for row in totals for name, value in _stated(row, stage).items()} for stage in (CSYNTH, SYNTH)
        )
        if csynth or synth:
            features = design_features(design, target_of(design))
            if any(layer.family == UNPRICED for layer in features.layers):
                # The reports count layers of the whole design that the features leave out.
                csynth, synth = {}, {}
            found.append(ReportedDesign(replace(features, name=label), csynth, synth, layers))
    return found


def _stated(row: CompareRow, stage: Stage) -> dict[str, float]:
    value = row.values[stage]
    return {} if value is None else {row.figure: value}
