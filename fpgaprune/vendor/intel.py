"""Reads the reports of Intel's HLS compilers (i++, OpenCL, oneAPI): the compiler's estimate, and Quartus's fit."""

from __future__ import annotations

from pathlib import Path

from fpgaprune.errors import ReportError
from fpgaprune.vendor.intel_estimate import estimate_of_area, estimate_of_summary
from fpgaprune.vendor.intel_fit import fit_of, is_fitted
from fpgaprune.vendor.intel_values import AREA, FIT, INFO, SUMMARY_TABLE, intel_values, recognises_intel
from fpgaprune.vendor.report import VendorReport

__all__ = ["parse_intel", "recognises_intel"]


def parse_intel(text: str, source: Path) -> tuple[VendorReport, ...]:
    """The reports in `text`: `csynth` from the compiler's estimate, `route` from the fit.

    Intel's memory blocks do not hold 18 Kb, so `other` counts them, and `bram18` is None.

    Raises:
        ReportError: the file is cut off or names no columns, or its fit was not run.
    """
    values = intel_values(text, source)
    reports: list[VendorReport] = []
    if AREA in values:
        reports.append(estimate_of_area(values[AREA], values.get(INFO), source))
    elif SUMMARY_TABLE in values:
        reports.append(estimate_of_summary(values[SUMMARY_TABLE], source))
    # Without a fit, `report_data.js` states the estimate, and a file on the fit alone states nothing.
    if FIT in values and (is_fitted(values[FIT]) or not reports):
        reports.append(fit_of(values[FIT], source))
    if not reports:
        raise ReportError(f"{source} gives no value to {AREA} or {FIT}; the report is cut off; wanted the whole file")
    return tuple(reports)
