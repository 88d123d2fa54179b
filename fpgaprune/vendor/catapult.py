"""`rtl.rpt` and `cycle.rpt` of Catapult: latency, throughput and clock; area where the library counts LUTs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from fpgaprune.errors import ReportError
from fpgaprune.vendor.cells import parse_count, parse_number
from fpgaprune.vendor.report import Cycles, ModuleRow, VendorReport
from fpgaprune.vendor.ruled import RuledTable, is_rule, read_fixed

_PROCESSES = "Processes/Blocks in Design"
_CLOCKS = "Clock Information"
_VERSION = re.compile(r"Catapult\b.*?\b(?:Version|Synthesis)\s*:?\s*(?P<version>\d[\w.]*)")
_SOLUTION = re.compile(r"Solution Settings:\s*(?P<name>\S+)")
_DATE = re.compile(r"^.*?Date\s*:?\s*(?P<date>[A-Z][a-z]{2} [A-Z][a-z]{2} .*?)\s*$", re.MULTILINE)
_AREA = re.compile(r"^\s*Total Area Score:\s+(?P<scores>.*\S)", re.MULTILINE)
_TOTAL = "Design Total:"


def recognises_catapult(text: str) -> bool:
    """Whether `text` is such a report."""
    return _PROCESSES in text and "Real Operation(s) count" in text


def parse_catapult(text: str, source: Path) -> tuple[VendorReport, ...]:
    """The report in `text`.

    Catapult's area score has the unit of the chosen library, so it is no LUT count: `total` is None throughout, the
    note states the score. A latency of -1, which it prints for a loop without a bound, is None.

    Raises:
        ReportError: the report is cut off before its total or its clock.
    """
    lines = text.splitlines()
    processes = _table(lines, _PROCESSES, source)
    clocks = _table(lines, _CLOCKS, source)
    named = {row.get("Process", ""): row for row in processes.rows}
    if _TOTAL not in named:
        raise ReportError(f"{source}: the table at {processes.where} has no row {_TOTAL!r}; the report is cut off")
    period = next((clocks.get(row, "Period") for row in clocks.rows), None)
    if period is None:
        raise ReportError(f"{source}: the table at {clocks.where} has no clock; the report is cut off")
    version, date, area = _VERSION.search(text), _DATE.search(text), _AREA.search(text)
    solution = _SOLUTION.search(text)
    rows = tuple(
        ModuleRow(name, _block(name), cycles=_cycles(processes, row))
        for name, row in named.items()
        if name.startswith("/")
    )
    notes = ["Catapult estimates an area score, not LUTs; counts come from the logic synthesis that it starts"]
    if area:
        notes.append(f"total area score after assignment {area['scores'].split()[-1]}")
    return (
        VendorReport(
            tool="Catapult",
            tool_version=version["version"] if version else None,
            stage="csynth",
            design=_top(rows) or (solution["name"] if solution else None),
            clock_ns=parse_number(period, f"{clocks.where}: 'Period'"),
            cycles=_cycles(processes, named[_TOTAL]),
            rows=rows,
            date=date["date"] if date else None,
            source=source,
            notes=tuple(notes),
        ),
    )


def _table(lines: Sequence[str], title: str, source: Path) -> RuledTable:
    starts = [at for at, line in enumerate(lines) if line.strip() == title]
    if starts and starts[0] + 2 < len(lines) and is_rule(lines[starts[0] + 2]):
        return read_fixed(lines, starts[0] + 2, str(source))
    raise ReportError(f"{source} has no table {title!r}; the report is cut off or not one of Catapult")


def _cycles(table: RuledTable, row: dict[str, str]) -> Cycles:
    def count(name: str) -> int | None:
        text = table.get(row, name)
        # -1 stands for a loop without a bound.
        return None if text is None or text == "-1" else parse_count(text, f"{table.where}: {name!r}")

    # Catapult gives the schedule's latency and the cycles between two inputs, each as one number.
    latency, throughput = count("Latency"), count("Throughput")
    return Cycles(latency, latency, throughput, throughput)


def _block(process: str) -> str | None:
    """The block of `/top/block/core`, written as the C++ has it."""
    parts = process.split("/")
    return parts[2] if len(parts) > 2 else None


def _top(rows: Sequence[ModuleRow]) -> str | None:
    """The first part of every process' path, where they agree."""
    tops = {row.name.split("/")[1] for row in rows if row.name.count("/")}
    return tops.pop() if len(tops) == 1 else None
