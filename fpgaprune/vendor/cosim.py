"""Reads `<top>_cosim.rpt` of Vivado HLS and Vitis HLS: the cycles of the RTL in simulation."""

from __future__ import annotations

import re
from pathlib import Path

from fpgaprune.errors import ReportError
from fpgaprune.measure import COSIM
from fpgaprune.vendor.cells import shorten
from fpgaprune.vendor.grid import cycles_of, iterate_tables
from fpgaprune.vendor.report import VendorReport

# Vitis HLS does not name the simulator if the simulation failed.
_SIMULATOR = re.compile(r"^[ \t]{0,8}Simulation tool[ \t]{0,20}:[ \t]{0,8}(?P<name>[^\s.]{1,40})", re.MULTILINE)
_DATE = re.compile(r"^[ \t]{0,8}Report time[ \t]{0,20}:(?P<date>.*)", re.MULTILINE)
_HEADER = re.compile(r"^[+|] {0,20}RTL {0,20}[+|] {0,20}Status {0,20}[+|]", re.MULTILINE)
_DESIGN = re.compile(r"[Cc]o-?simulation Report for '(?P<design>[^'\n]+)'")
_NOT_RUN = {"na", "n/a", "-", ""}


def recognises_cosim(text: str) -> bool:
    """Return whether `text` is, or contains, such a report."""
    return _SIMULATOR.search(text) is not None or (_DATE.search(text) and _HEADER.search(text)) is not None


def parse_cosim(text: str, source: Path) -> tuple[VendorReport, ...]:
    """Return one report for each language that was simulated, usually one.

    Raises:
        ReportError: the table is cut off, or no language was simulated.
    """
    simulator, date, design = _SIMULATOR.search(text), _DATE.search(text), _DESIGN.search(text)
    lines = text.splitlines()
    # If the reports of a project were printed into one file, other tables come before this one.
    head = simulator or date
    first_line = 0 if head is None else text.count("\n", 0, head.start())
    reports = []
    for number, table in iterate_tables(lines, str(source)):
        if number < first_line or table.index("RTL") is None:
            continue
        for row in table.rows:
            status = row[table.require("Status")].strip()
            if status.casefold() in _NOT_RUN:
                continue
            passed = status.casefold() == "pass"
            failure = f"the simulation ended with {shorten(status)}: its cycles are not those of the design"
            reports.append(
                VendorReport(
                    tool=f"C/RTL co-simulation ({simulator['name']})" if simulator else "C/RTL co-simulation",
                    tool_version=None,
                    stage=COSIM,
                    design=design["design"] if design else None,
                    cycles=cycles_of(table, row),
                    state=row[table.require("RTL")].strip(),
                    passed=passed,
                    date=date["date"].strip().removesuffix(".") if date else None,
                    source=source,
                    notes=() if passed else (failure,),
                )
            )
        break
    if not reports:
        raise ReportError(
            f"{source}: no language of this co-simulation was simulated, or its table is missing; "
            f"wanted a table RTL / Status / Latency / Interval with a status other than NA"
        )
    return tuple(reports)
