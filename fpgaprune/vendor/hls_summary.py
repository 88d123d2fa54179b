"""Reads `csynth.rpt`, the Synthesis Summary of Vitis HLS: the whole hierarchy in one table."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from fpgaprune.errors import ReportError
from fpgaprune.measure import CSYNTH, Cycles
from fpgaprune.vendor.cells import shorten
from fpgaprune.vendor.grid import PrintedTable, iterate_tables, usage_of
from fpgaprune.vendor.hls_text import clock_of, header_fields
from fpgaprune.vendor.report import SUMMARY, ModuleRow, VendorReport

_TITLE = re.compile(r"^== Synthesis Summary Report of '(?P<design>[^'\n]+)'", re.MULTILINE)
_NAME = "Modules & Loops"
# A module's row begins with '+', a loop's with 'o'; '*' behind the name marks a dataflow region.
_MODULE = re.compile(r"\s*\+ (?P<name>\S+)\s*")


def recognises_hls_summary(text: str) -> bool:
    """Return whether `text` is a Synthesis Summary of Vitis HLS."""
    return _TITLE.search(text) is not None


def parse_hls_summary(text: str, source: Path) -> tuple[VendorReport, ...]:
    """Parse a summary of Vitis HLS.

    The table states only the longest latency, so the shortest is None. A dash in the table means 0 or unknown, so it is
    None; `<top>_csynth.rpt` tells the two apart.

    Raises:
        ReportError: the report is cut off or has no row for the top module.
    """
    title = _TITLE.search(text)
    design = title["design"] if title else ""
    where = f"{source} (synthesis summary of {shorten(design)})"
    lines = text.splitlines()
    tables = [table for _, table in iterate_tables(lines, str(source), wraps=True)]
    clocks = next((table for table in tables if table.index("Clock") is not None and table.index("Target")), None)
    modules = next((table for table in tables if table.index(_NAME) is not None), None)
    if modules is None:
        raise ReportError(f"{where} has no table with a column {_NAME!r}; the report is cut off")
    if "HW Interfaces" not in text:
        raise ReportError(f"{where} has no section 'HW Interfaces'; the report is cut off; wanted the whole file")
    rows = [
        (match["name"].removesuffix("*"), cells)
        for cells in modules.rows
        if (match := _MODULE.fullmatch(cells[modules.require(_NAME)]))
    ]
    if not rows or rows[0][0] != design:
        raise ReportError(f"{where}: the table at {modules.where} does not begin with the row of the design")
    fields = header_fields(lines)
    clock, estimated = clock_of(clocks) if clocks else (None, None)
    top = rows[0][1]
    return (
        VendorReport(
            tool="Vitis HLS",
            tool_version=fields["Version"].split()[0] if "Version" in fields else None,
            stage=CSYNTH,
            design=design,
            part=fields.get("Target device"),
            clock_ns=clock,
            est_clock_ns=estimated,
            total=usage_of(modules, top),
            cycles=_cycles(modules, top),
            rows=tuple(_row(name, modules, cells) for name, cells in rows[1:]),
            pipeline=modules.text(top, "Pipelined"),
            state=SUMMARY,
            date=fields.get("Date"),
            source=source,
            notes=("a summary prints a dash both for none and for not stated; <top>_csynth.rpt tells them apart",),
        ),
    )


def _row(name: str, table: PrintedTable, row: Sequence[str]) -> ModuleRow:
    return ModuleRow(name, name, usage_of(table, row), _cycles(table, row), table.text(row, "Pipelined"))


def _cycles(table: PrintedTable, row: Sequence[str]) -> Cycles:
    return Cycles(latency_max=table.count(row, "Latency (cycles)"), interval_max=table.count(row, "Interval"))
