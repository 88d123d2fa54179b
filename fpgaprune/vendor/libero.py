"""Reads `summary.results.rpt` of SmartHLS (Microchip): co-simulation, timing and resources after Libero."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fpgaprune.errors import ReportError
from fpgaprune.measure import ROUTE, SYNTH, Resources
from fpgaprune.vendor.cells import parse_count, parse_time_ns, shorten
from fpgaprune.vendor.grid import PrintedTable, iterate_tables
from fpgaprune.vendor.report import VendorReport
from fpgaprune.vendor.smarthls_simulation import parse_simulation

# `====== 3. Resource Usage ======`, and with `of HLS-generated IP Core (top-level module: <name>)` since 2022.
_TITLE = re.compile(r"^[ \t]{0,8}====== \d{1,2}\. (?P<title>[^=\n]{1,300}) ======", re.MULTILINE)
_TOP = re.compile(r"\(top-level module: (?P<name>[^()\n]{1,200})\)")
_DEVICE = re.compile(r"^Device: (?P<part>.*)", re.MULTILINE)
_SIMULATION = ("Simulation Result", "Simulation Cycle Latency")
_TIMING = "Timing Result"
_RESOURCES = "Resource Usage"
_WANTED = "wanted hls_output/reports/summary.results.rpt as SmartHLS wrote it"
# The interface logic of RAMs and math blocks is printed separately, as `488 + 72`; both take fabric.
_LUT = ("Fabric + Interface 4LUT", "4LUT")
_FF = ("Fabric + Interface DFF", "DFF")
_DSP = ("Math", "MACC", "Math Block")
_OTHER = {"lsram": ("LSRAM",), "usram": ("uSRAM",)}


@dataclass(frozen=True, slots=True)
class _Section:
    """A section: its top-level module and its text, after empty lines that keep the line numbers of the file."""

    top: str | None
    text: str


def recognises_libero(text: str) -> bool:
    """Whether `text` is such a report."""
    return any(match["title"].startswith((_TIMING, _RESOURCES)) for match in _TITLE.finditer(text))


def parse_libero(text: str, source: Path) -> tuple[VendorReport, ...]:
    """The reports in `text`: resources, and the simulation if it was run.

    Resources are of stage `route` if the report states a timing, which Libero knows only after place and route, else of
    stage `synth`. An LSRAM holds 20 Kb and a uSRAM 1 Kb: `other` counts them, and `bram18` is None.

    Raises:
        ReportError: a section is missing or cut off, or neither simulation nor synthesis was run.
    """
    sections = _sections(text)
    for name in (_TIMING, _RESOURCES):
        if name not in sections:
            raise ReportError(f"{source} has no section {name!r}; the report is cut off; {_WANTED}")
    usage, timing = (_table(sections[name], name, source) for name in (_RESOURCES, _TIMING))
    device = _DEVICE.search(text)
    reports = []
    if usage is not None:
        top = sections[_RESOURCES].top
        reports.append(_resources(usage, timing, top, device["part"].strip() if device else None, source))
    simulated = next((sections[name] for name in _SIMULATION if name in sections), None)
    if simulated is not None:
        table = _first_table(simulated, source)
        simulation = parse_simulation(simulated.text, table, sections[_RESOURCES].top, source)
        reports += [] if simulation is None else [simulation]
    if not reports:
        raise ReportError(f"{source} states neither resources nor a simulation: neither was run; {_WANTED}")
    return tuple(reports)


def _sections(text: str) -> dict[str, _Section]:
    """The sections, by the first words of their titles, which are the same in every release."""
    titles = list(_TITLE.finditer(text))
    ends = [title.start() for title in titles[1:]] + [len(text)]
    found: dict[str, _Section] = {}
    for title, end in zip(titles, ends, strict=True):
        name = title["title"].split(" of HLS-generated")[0].strip()
        top = _TOP.search(title["title"])
        body = "\n" * text.count("\n", 0, title.end()) + text[title.end() : end]
        found.setdefault(name, _Section(top["name"] if top else None, body))
    return found


def _first_table(section: _Section, source: Path) -> PrintedTable | None:
    return next((table for _, table in iterate_tables(section.text.splitlines(), str(source))), None)


def _table(section: _Section, name: str, source: Path) -> PrintedTable | None:
    """The section's table; None if the section says that its step was not run."""
    table = _first_table(section, source)
    if table is None and "N/A" not in section.text:
        raise ReportError(f"{source}: section {name!r} has neither a table nor 'N/A'; the report is cut off; {_WANTED}")
    return table


def _resources(
    usage: PrintedTable, timing: PrintedTable | None, top: str | None, part: str | None, source: Path
) -> VendorReport:
    kind, amount = usage.require("Resource Type"), usage.require("Used")
    used = {row[kind].strip().rstrip("*").strip(): row[amount] for row in usage.rows}

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
        stage=SYNTH if clock is None else ROUTE,
        design=top,
        part=part,
        clock_ns=_time(timing, clock, "Target Period", place),
        est_clock_ns=_time(timing, clock, "Period", place),
        slack_ns=_time(timing, clock, "Worst Slack", place),
        total=Resources(lut=lut, ff=ff, dsp=count(_DSP)),
        other={name: value for name, names in _OTHER.items() if (value := count(names)) is not None},
        source=source,
    )


def _time(table: PrintedTable | None, row: Sequence[str] | None, name: str, place: str) -> float | None:
    if table is None or row is None:
        return None
    return parse_time_ns(row[table.require(name)], f"{place}{name!r}")


def _sum(text: str, where: str) -> int | None:
    """The sum that `153 + 216` or `153 + 216 = 369` states; a printed sum is checked."""
    terms, equals, printed = text.partition("=")
    counts = [parse_count(term, where) for term in terms.split("+")]
    known = [count for count in counts if count is not None]
    total = sum(known) if len(known) == len(counts) else None
    if equals and parse_count(printed, where) != total:
        raise ReportError(f"{where} holds {shorten(text)}, which does not add up; {_WANTED}")
    return total
