"""`<top>_cosim.rpt`: what the RTL took in simulation, of Vivado HLS and Vitis HLS."""

from __future__ import annotations

import re
from pathlib import Path

from fpgaprune.errors import ReportError
from fpgaprune.vendor.columns import cycles_of
from fpgaprune.vendor.grid import iterate_tables
from fpgaprune.vendor.report import VendorReport

_SIMULATOR = re.compile(r"^\s*Simulation tool\s*:\s*(?P<name>[^\s.]+)", re.MULTILINE)
_DATE = re.compile(r"^\s*Report time\s*:\s*(?P<date>.*?)\.?\s*$", re.MULTILINE)
_DESIGN = re.compile(r"[Cc]o-?simulation Report for '(?P<design>[^']+)'")
_NOT_RUN = {"na", "n/a", "-", ""}


def recognises_cosim(text: str) -> bool:
    """Whether `text` is, or contains, such a report."""
    return _SIMULATOR.search(text) is not None


def parse_cosim(text: str, source: Path) -> tuple[VendorReport, ...]:
    """One report for each language that was simulated; usually one.

    Raises:
        ReportError: the table is cut off, or no language was simulated.
    """
    simulator, date, design = _SIMULATOR.search(text), _DATE.search(text), _DESIGN.search(text)
    lines = text.splitlines()
    first_line = 0 if simulator is None else text.count("\n", 0, simulator.start())
    reports = []
    for number, table in iterate_tables(lines, str(source)):
        if number < first_line or table.index("RTL") is None:
            continue
        for row in table.rows:
            status = row[table.require("Status")].strip()
            if status.casefold() in _NOT_RUN:
                continue
            passed = status.casefold() == "pass"
            language = row[table.require("RTL")].strip()
            note = () if passed else (f"the simulation ended with {status!r}: its cycles are not those of the design",)
            reports.append(
                VendorReport(
                    tool=f"C/RTL co-simulation ({simulator['name'] if simulator else 'unknown'})",
                    tool_version=None,
                    stage="cosim",
                    design=design["design"] if design else None,
                    cycles=cycles_of(table, row),
                    state=language,
                    passed=passed,
                    date=date["date"] if date else None,
                    source=source,
                    notes=note,
                )
            )
        break
    if not reports:
        raise ReportError(
            f"{source}: no language of this co-simulation was simulated, or its table is missing; "
            f"wanted a table RTL / Status / Latency / Interval with a status other than NA"
        )
    return tuple(reports)
