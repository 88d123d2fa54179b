"""Reads `rtl.rpt` and `cycle.rpt` of Catapult: latency, throughput, clock or critical path, and LUTs if stated."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from fpgaprune.errors import ReportError
from fpgaprune.measure import CSYNTH, Cycles, Resources
from fpgaprune.vendor.cells import parse_count, parse_number, parse_whole_blocks
from fpgaprune.vendor.report import ModuleRow, VendorReport
from fpgaprune.vendor.ruled import RuledTable, is_rule, read_fixed, read_fixed_row

_PROCESSES = "Processes/Blocks in Design"
_MATERIALS = "Bill Of Materials (Datapath)"
_CLOCKS = "Clock Information"
_END = "End of Report"
_TOTAL = "Design Total:"
_TOTAL_AREA = "TOTAL AREA (After Assignment):"
# `-- Generated date:  ...` is the date of the report; `-- Build Date:` is the date of the tool.
_FIELD = re.compile(r"-- (?P<name>Version|Generated date):(?P<value>.*)")
_VERSION = re.compile(r"\s*(?P<version>\d[\w.]*)")
_SOLUTION = re.compile(r"Solution Settings: {0,8}(?P<name>\S+)")
_PATH = re.compile(r"(?P<name>Max Delay|Slack):(?P<value>.*)")


def recognises_catapult(text: str) -> bool:
    """Whether `text` is such a report."""
    return _PROCESSES in text and "Real Operation(s) count" in text


def parse_catapult(text: str, source: Path) -> tuple[VendorReport, ...]:
    """The report in `text`.

    `cycle.rpt` states the period that was asked for. `rtl.rpt` states the critical path, which is the estimated period,
    its slack, and the area. With an FPGA library the area counts LUTs and DSPs, which `total` holds; an area score has
    the unit of the library and is no count. For a loop without a bound Catapult prints a latency of -1, which is None.

    Raises:
        ReportError: the report is cut off.
    """
    lines = text.splitlines()
    if not any(line.strip() == _END for line in lines):
        raise ReportError(f"{source} has no line {_END!r}; the report is cut off; wanted the whole file of Catapult")
    processes = _table(lines, _PROCESSES, source)
    if processes is None:
        raise ReportError(f"{source} has no table {_PROCESSES!r}; the report is cut off or not one of Catapult")
    named = {row.get("Process", ""): row for row in processes.rows}
    if _TOTAL not in named:
        raise ReportError(f"{source}: the table at {processes.where} has no row {_TOTAL!r}; the report is cut off")
    head = {match["name"]: match["value"].strip() for line in lines[:40] if (match := _FIELD.match(line))}
    version, solution = _VERSION.match(head.get("Version", "")), _SOLUTION.search(text)
    rows = tuple(
        ModuleRow(name, _block(name), cycles=_cycles(processes, row))
        for name, row in named.items()
        if name.startswith("/")
    )
    area = _area(lines, source)
    delay, slack = _critical_path(lines, source)
    return (
        VendorReport(
            tool="Catapult",
            tool_version=version["version"] if version else None,
            stage=CSYNTH,
            design=_top(rows) or (solution["name"] if solution else None),
            clock_ns=_clock(lines, source),
            est_clock_ns=delay,
            slack_ns=slack,
            total=Resources(
                lut=parse_whole_blocks(area.get("Area(LUTs)", ""), f"{source}, {_TOTAL_AREA!r}, 'Area(LUTs)'"),
                dsp=parse_whole_blocks(area.get("Area(DSP)", ""), f"{source}, {_TOTAL_AREA!r}, 'Area(DSP)'"),
            ),
            cycles=_cycles(processes, named[_TOTAL]),
            rows=rows,
            date=head.get("Generated date") or None,
            source=source,
            notes=_notes(area),
        ),
    )


def _notes(area: Mapping[str, str]) -> tuple[str, ...]:
    if "Area(LUTs)" in area:
        return ("Catapult estimates the LUTs and DSPs of the datapath; it does not count registers and memories",)
    if "Area Score" in area:
        return (f"the area score {area['Area Score']} has the unit of the library and is no count of LUTs",)
    return ()


def _table(lines: Sequence[str], title: str, source: Path) -> RuledTable | None:
    start = _start(lines, title)
    return None if start is None else read_fixed(lines, start + 2, str(source))


def _start(lines: Sequence[str], title: str) -> int | None:
    """The number of the line `title`; a header and a rule stand below it."""
    return next(
        (at for at, line in enumerate(lines[:-2]) if line.strip() == title and is_rule(lines[at + 2])),
        None,
    )


def _area(lines: Sequence[str], source: Path) -> dict[str, str]:
    """The row of the total area, which follows an empty line; empty for `cycle.rpt`."""
    start = _start(lines, _MATERIALS)
    if start is None:
        return {}
    for number in range(start + 3, len(lines)):
        if lines[number].strip().startswith(_TOTAL_AREA):
            return read_fixed_row(lines, start + 2, number, str(source))
    raise ReportError(f"{source} has no row {_TOTAL_AREA!r} under {_MATERIALS!r}; the report is cut off")


def _clock(lines: Sequence[str], source: Path) -> float | None:
    """The period asked for; None for `rtl.rpt`, which does not state it."""
    table = _table(lines, _CLOCKS, source)
    period = next((table.get(row, "Period") for row in table.rows), None) if table else None
    return None if table is None or period is None else parse_number(period, f"{table.where}: 'Period'")


def _critical_path(lines: Sequence[str], source: Path) -> tuple[float | None, float | None]:
    """Delay and slack of the critical path; None for `cycle.rpt`."""
    found: dict[str, float | None] = {}
    start = next((at for at, line in enumerate(lines) if line.strip() == "Critical Path"), len(lines))
    for line in lines[start + 1 : start + 3]:
        if match := _PATH.match(line.strip()):
            value = parse_number(match["value"], f"{source}, 'Critical Path', {match['name']!r}")
            # Catapult prints binary floating point, as 8.505004999999999.
            found[match["name"]] = None if value is None else round(value, 6)
    return found.get("Max Delay"), found.get("Slack")


def _cycles(table: RuledTable, row: dict[str, str]) -> Cycles:
    def count(name: str) -> int | None:
        text = table.get(row, name)
        # Catapult prints -1 for a loop without a bound.
        return None if text is None or text == "-1" else parse_count(text, f"{table.where}: {name!r}")

    # Catapult states one latency and one number of cycles between two inputs.
    latency, throughput = count("Latency"), count("Throughput")
    return Cycles(latency, latency, throughput, throughput)


def _block(process: str) -> str | None:
    """The block of `/top/block/core`, by its name in the C++."""
    parts = process.split("/")
    return parts[2] if len(parts) > 2 else None


def _top(rows: Sequence[ModuleRow]) -> str | None:
    """The first part of the path of every process; None if they differ."""
    tops = {row.name.split("/")[1] for row in rows if row.name.count("/")}
    return tops.pop() if len(tops) == 1 else None
