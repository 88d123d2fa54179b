"""Vendor tools: this package finds and runs them, and reads their reports into one vocabulary."""

from fpgaprune.vendor.read import Reports, Unread, find_reports, parse_reports, read_report, read_reports
from fpgaprune.vendor.report import ModuleRow, VendorReport

__all__ = [
    "ModuleRow",
    "Reports",
    "Unread",
    "VendorReport",
    "find_reports",
    "parse_reports",
    "read_report",
    "read_reports",
]
