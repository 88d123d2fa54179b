"""Reports of a run: one HTML page, Markdown, JSON; and heat maps of kernels."""

from __future__ import annotations

from fpgaprune.report.contents import Check, LayerReport, LinkSummary, Metric, RunReport, StageTime
from fpgaprune.report.layers import layer_reports
from fpgaprune.report.norms import kernel_norm_png
from fpgaprune.report.timing import stage_times
from fpgaprune.report.write import ReportPaths, write_report

__all__ = [
    "Check",
    "LayerReport",
    "LinkSummary",
    "Metric",
    "ReportPaths",
    "RunReport",
    "StageTime",
    "kernel_norm_png",
    "layer_reports",
    "stage_times",
    "write_report",
]
