"""`summary.results.rpt` of SmartHLS (Microchip): co-simulation, timing and resources after Libero."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from fpgaprune.errors import ReportError
from fpgaprune.vendor.cells import parse_count, parse_time_ns
from fpgaprune.vendor.grid import Table, iterate_tables
from fpgaprune.vendor.report import Cycles, ModuleRow, Usage, VendorReport

_SECTION = re.compile(r"^====== \d+\. (?P<name>.*?) ======\s*$", re.MULTILINE)
_STATUS = re.compile(r"SW/HW co-simulation:\s*(?P<status>\S+)")
_WANTED = "wanted hls_output/reports/summary.results.rpt as SmartHLS wrote it"
# The interface logic of RAMs and math blocks is printed apart, as `488 + 72`; both take fabric.
_LUT = ("Fabric + Interface 4LUT", "4LUT")
_FF = ("Fabric + Interface DFF", "DFF")
_DSP = ("Math", "MACC", "Math Block")
_OTHER = {"lsram": ("LSRAM",), "usram": ("uSRAM",)}


def recognises_libero(text: str) -> bool:
    """Whether `text` is such a report."""
    return any(match["name"] == "Resource Usage" for match in _SECTION.finditer(text))


def parse_libero(text: str, source: Path) -> tuple[VendorReport, ...]:
    """The reports in `text`: resources, and the simulation where it was run.

    Resources are of stage `route` where the report states a timing, which Libero knows only after place and route,
    else of stage `synth`. An LSRAM holds 20 Kb and a uSRAM 1 Kb: they stand in `other`, and `bram18` is None.

    Raises:
        ReportError: a section is missing or cut off, or neither simulation nor synthesis was run.
    """
    sections = {match["name"]: match.end() for match in _SECTION.finditer(text)}
    bodies = {name: _body(text, start, sections) for name, start in sections.items()}
    usage, timing = _table(bodies, "Resource Usage", source), _table(bodies, "Timing Result", source)
    reports = []
    if usage is not None:
        reports.append(_resources(usage, timing, source))
    for name in ("Simulation Result", "Simulation Cycle Latency"):
        table = _table(bodies, name, source) if name in bodies else None
        if table is not None and table.rows:
            reports.append(_simulation(table, bodies[name], source))
    if not reports:
        raise ReportError(f"{source} states neither resources nor a simulation: neither was run; {_WANTED}")
    return tuple(reports)


def _body(text: str, start: int, sections: Mapping[str, int]) -> str:
    following = min((end for end in sections.values() if end > start), default=len(text))
    return text[start:following]


def _table(bodies: Mapping[str, str], name: str, source: Path) -> Table | None:
    """The section's table; None where the section says that its step was not run."""
    if name not in bodies:
        raise ReportError(f"{source} has no section {name!r}; the report is cut off; {_WANTED}")
    tables = [table for _, table in iterate_tables(bodies[name].splitlines(), f"{source}, {name}")]
    if not tables and "N/A" not in bodies[name] and "Latency" not in name:
        raise ReportError(f"{source}: section {name!r} has neither a table nor 'N/A'; the report is cut off; {_WANTED}")
    return tables[0] if tables else None


def _resources(usage: Table, timing: Table | None, source: Path) -> VendorReport:
    used = {_bare(row[usage.require("Resource Type")]): row[usage.require("Used")] for row in usage.rows}

    def count(names: Sequence[str]) -> int | None:
        name = next((name for name in names if name in used), None)
        return None if name is None else _sum(used[name], f"{usage.where}: {name!r}")

    lut, ff = count(_LUT), count(_FF)
    if lut is None or ff is None:
        raise ReportError(f"{usage.where}: no row {_LUT[0]!r} or {_FF[0]!r}; the report is cut off; {_WANTED}")
    clock = timing.rows[0] if timing and timing.rows else None
    place = f"{timing.where}: " if timing else ""
    return VendorReport(
        tool="Libero",
        tool_version=None,
        stage="synth" if clock is None else "route",
        clock_ns=_time(timing, clock, "Target Period", place),
        est_clock_ns=_time(timing, clock, "Period", place),
        slack_ns=_time(timing, clock, "Worst Slack", place),
        total=Usage(lut=lut, ff=ff, dsp=count(_DSP)),
        other={name: value for name, names in _OTHER.items() if (value := count(names)) is not None},
        source=source,
    )


def _simulation(table: Table, body: str, source: Path) -> VendorReport:
    """Cycles of the first top-level function; the others are rows."""
    rows = tuple(
        ModuleRow(row[table.require("Top-Level Name")].strip(), cycles=_cycles(table, row)) for row in table.rows
    )
    status = _STATUS.search(body)
    return VendorReport(
        tool="SmartHLS co-simulation",
        tool_version=None,
        stage="cosim",
        design=rows[0].name,
        cycles=rows[0].cycles,
        rows=rows[1:],
        passed=None if status is None else status["status"].startswith("PASS"),
        source=source,
    )


def _cycles(table: Table, row: Sequence[str]) -> Cycles:
    found: list[int | None] = []
    for name in ("Call Latency (min/max/avg)", "Call II (min/max/avg)"):
        text = row[table.require(name)].strip()
        parts = [part.strip() for part in text.split("/")]
        if text.upper().startswith("N/A") or len(parts) != 3:
            found += [None, None]
        else:
            found += [parse_count(part, f"{table.where}: {name!r}") for part in parts[:2]]
    return Cycles(*found)


def _time(table: Table | None, row: Sequence[str] | None, name: str, place: str) -> float | None:
    if table is None or row is None:
        return None
    return parse_time_ns(row[table.require(name)], f"{place}{name!r}")


def _sum(text: str, where: str) -> int | None:
    counts = [parse_count(part, where) for part in text.split("+")]
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None


def _bare(name: str) -> str:
    return name.strip().rstrip("*").strip()
