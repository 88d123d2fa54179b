"""Reads the co-simulation in `summary.results.rpt` of SmartHLS, in the two forms that its releases print."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from fpgaprune.measure import COSIM, Cycles
from fpgaprune.vendor.cells import parse_count
from fpgaprune.vendor.grid import PrintedTable
from fpgaprune.vendor.report import ModuleRow, VendorReport

_STATUS = re.compile(r"^[ \t]{0,8}SW/HW co-simulation:[ \t]{0,8}(?P<status>\w+)", re.MULTILINE)
_FIELD = re.compile(r"^[ \t]{0,8}(?P<name>Number of calls|Cycle latency):(?P<value>.*)", re.MULTILINE)
_TOOL = "SmartHLS co-simulation"


def parse_simulation(body: str, table: PrintedTable | None, top: str | None, source: Path) -> VendorReport | None:
    """The report on the simulation; None if none was run.

    Newer releases print a table with the latency and interval of a call. Older releases print `Number of calls` and
    `Cycle latency`, which counts the cycles of the whole simulation (6,134 for 6,105 calls in Microchip's user guide).
    For these, latency and interval of a call are None, and `other` holds both numbers.

    Args:
        body: text of the section.
        table: the table in the section; None if it has none.
        top: top-level module that other sections name.
        source: the file.

    Raises:
        ReportError: something else stands in place of a figure.
    """
    status = _STATUS.search(body)
    passed = None if status is None else status["status"] == "PASS"
    if table is not None:
        return _of_table(table, passed, source)
    fields = {match["name"]: match["value"] for match in _FIELD.finditer(body)}
    if not fields and passed is None:
        return None
    counts = {
        name: parse_count(fields.get(field, ""), f"{source}, {field!r}")
        for name, field in {"calls": "Number of calls", "simulated_cycles": "Cycle latency"}.items()
    }
    return VendorReport(
        tool=_TOOL,
        tool_version=None,
        stage=COSIM,
        design=top,
        other={name: count for name, count in counts.items() if count is not None},
        passed=passed,
        source=source,
        notes=("the cycles are those of the whole simulation; a latency of one call is not stated",),
    )


def _of_table(table: PrintedTable, passed: bool | None, source: Path) -> VendorReport | None:
    """The report from a table: the cycles are those of the first top-level function; the others are rows."""
    rows = tuple(
        ModuleRow(row[table.require("Top-Level Name")].strip(), cycles=_cycles(table, row)) for row in table.rows
    )
    if not rows:
        return None
    return VendorReport(
        tool=_TOOL,
        tool_version=None,
        stage=COSIM,
        design=rows[0].name,
        cycles=rows[0].cycles,
        rows=rows[1:],
        passed=passed,
        source=source,
    )


def _cycles(table: PrintedTable, row: Sequence[str]) -> Cycles:
    found: list[int | None] = []
    for name in ("Call Latency (min/max/avg)", "Call II (min/max/avg)"):
        text = row[table.require(name)].strip()
        parts = [part.strip() for part in text.split("/")]
        if text.upper().startswith("N/A") or len(parts) != 3:
            found += [None, None]
        else:
            found += [parse_count(part, f"{table.where}: {name!r}") for part in parts[:2]]
    return Cycles(*found)
