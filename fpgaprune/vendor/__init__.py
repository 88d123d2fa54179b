"""Vendor tools, found and run, and their reports, in one vocabulary."""

from fpgaprune.vendor.read import Reports, Unread, find_reports, parse_reports, read_report, read_reports
from fpgaprune.vendor.report import RESOURCES, STAGES, Cycles, ModuleRow, Usage, VendorReport

__all__ = [
    "RESOURCES",
    "STAGES",
    "Cycles",
    "ModuleRow",
    "Reports",
    "Unread",
    "Usage",
    "VendorReport",
    "find_reports",
    "parse_reports",
    "read_report",
    "read_reports",
]
