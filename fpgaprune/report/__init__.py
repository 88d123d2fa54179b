"""Reports of a run: one HTML page, Markdown, JSON; and heat maps of kernels."""

from __future__ import annotations

from fpgaprune.report.contents import Accuracy, Check, LayerReport, LinkCheck, RunReport, StageTime
from fpgaprune.report.norms import kernel_norm_png
from fpgaprune.report.write import ReportPaths, write_report

__all__ = [
    "Accuracy",
    "Check",
    "LayerReport",
    "LinkCheck",
    "ReportPaths",
    "RunReport",
    "StageTime",
    "kernel_norm_png",
    "write_report",
]
