"""Vendor tools, found and run, and their reports, in one vocabulary."""

from fpgaprune.vendor.read import parse_reports, read_report, read_reports
from fpgaprune.vendor.report import RESOURCES, STAGES, Cycles, ModuleRow, Usage, VendorReport

__all__ = [
    "RESOURCES",
    "STAGES",
    "Cycles",
    "ModuleRow",
    "Usage",
    "VendorReport",
    "parse_reports",
    "read_report",
    "read_reports",
]
