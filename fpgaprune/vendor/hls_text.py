"""Reads `<top>_csynth.rpt` and `<module>_csynth.rpt` of Vivado HLS and Vitis HLS."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from fpgaprune.errors import ReportError
from fpgaprune.measure import CSYNTH
from fpgaprune.vendor.cells import parse_time_ns, shorten
from fpgaprune.vendor.grid import COLUMNS, PrintedTable, cycles_of, is_border, read_table, skip_table, usage_of
from fpgaprune.vendor.report import ModuleRow, VendorReport

_TITLE = re.compile(r"^== (?P<tool>\S{1,20} HLS|HLS) Report for '(?P<design>[^'\n]+)'", re.MULTILINE)
_SECTION = re.compile(r"^== (?P<name>[^=].*)")
_HEADING = re.compile(r"^\s*(?P<level>[+*]) (?P<name>[A-Za-z][^:|]*):")
_FIELD = re.compile(r"^\s*\* (?P<name>[A-Z][A-Za-z ]+):(?P<value>.*)")
# hls4ml prints several reports one after the other and cuts off the end of this one.
_COLLECTED = "SYNTHESIS REPORT:"
_NEXT = re.compile(
    r"^(CO-SIMULATION RESULT|SYNTHESIS REPORT|C SIMULATION RESULT|VIVADO SYNTHESIS REPORT)", re.MULTILINE
)

_READ = frozenset({"Summary", "Instance"})

Place = tuple[str, str, str]


def recognises_hls_text(text: str) -> bool:
    """Return whether `text` is, or contains, such a report."""
    return _TITLE.search(text) is not None


def parse_hls_text(text: str, source: Path) -> tuple[VendorReport, ...]:
    """Return the reports in `text`: one, or several that were printed one after the other.

    Raises:
        ReportError: a report is cut off or lacks a figure that every such report states.
    """
    titles = list(_TITLE.finditer(text))
    ends = [title.start() for title in titles[1:]] + [len(text)]
    reports = []
    for title, end in zip(titles, ends, strict=True):
        following = _NEXT.search(text, title.end(), end)
        body = text[title.start() : following.start() if following else end]
        first_line = text.count("\n", 0, title.start())
        collected = _COLLECTED in text[: title.start()]
        # Empty lines before the text keep the line numbers of the file, for messages.
        reports.append(_parse_one("\n" * first_line + body, title, source, collected=collected))
    return tuple(reports)


def header_fields(lines: Sequence[str]) -> dict[str, str]:
    """Return the `* Name: value` lines at the head of a report."""
    fields: dict[str, str] = {}
    for line in lines:
        match = _FIELD.match(line)
        if match and match["value"].strip():
            fields.setdefault(match["name"], match["value"].strip())
    return fields


def clock_of(table: PrintedTable) -> tuple[float | None, float | None]:
    """Return the target period and the estimated period in ns, of the first clock in the table."""
    if not table.rows:
        return None, None

    def time(name: str) -> float | None:
        return parse_time_ns(table.rows[0][table.require(name)], f"{table.where}: {name!r}")

    return time("Target"), time("Estimated")


def _parse_one(text: str, title: re.Match[str], source: Path, *, collected: bool) -> VendorReport:
    where = f"{source} ({title['tool']} report for {shorten(title['design'])})"
    lines = text.splitlines()
    tables = _tables(lines, str(source))
    if not collected and not any(place[0] == "Interface" for place in tables):
        raise ReportError(f"{where} has no table of ports at its end; the report is cut off; wanted the whole file")
    timing = _require(tables, "Performance Estimates", "Timing", where)
    latency = _require(tables, "Performance Estimates", "Latency", where)
    usage = _require(tables, "Utilization Estimates", "", where)
    for names in list(COLUMNS.values())[:3]:  # every release states LUT, FF and DSP
        usage.require(*names)
    named = {row[0].strip(): row for row in usage.rows}
    if "Total" not in named or not latency.rows:
        raise ReportError(f"{where}: the summary at {usage.where} has no row 'Total', or the one of latency is empty")
    # The rows below the total hold capacities and percentages; '~0' there means less than one half.
    classes = {name: usage_of(usage, named[name]) for name in list(named)[: list(named).index("Total")]}
    fields = header_fields(lines)
    if "Version" not in fields:
        raise ReportError(f"{where} has no line '* Version:'; wanted the whole report of Vivado HLS or Vitis HLS")
    clock, estimated = clock_of(timing)
    summary = latency.rows[0]
    return VendorReport(
        tool=title["tool"],
        tool_version=fields["Version"].split()[0],
        stage=CSYNTH,
        design=title["design"],
        part=fields.get("Target device"),
        clock_ns=clock,
        est_clock_ns=estimated,
        total=usage_of(usage, named["Total"]),
        cycles=cycles_of(latency, summary),
        rows=_rows(tables),
        breakdown=classes,
        pipeline=latency.text(summary, "Pipeline Type"),
        date=fields.get("Date"),
        source=source,
    )


def _tables(lines: Sequence[str], source: str) -> dict[Place, PrintedTable]:
    """Return the tables by section, `+` heading and `*` heading; a table that is not needed must only have an end."""
    found: dict[Place, PrintedTable] = {}
    section = plus = star = ""
    at = 0
    while at < len(lines):
        line = lines[at]
        if is_border(line):
            if star in _READ and (section, plus, star) not in found:
                found[section, plus, star], at = read_table(lines, at, source, wraps=True)
            else:
                at = skip_table(lines, at, source)
            continue
        if match := _SECTION.match(line):
            section, plus, star = match["name"].strip(), "", ""
        elif match := _HEADING.match(line):
            if match["level"] == "+":
                plus, star = match["name"].split(" (")[0].strip(), ""
            else:
                star = match["name"].strip()
        at += 1
    return found


def _require(tables: Mapping[Place, PrintedTable], section: str, plus: str, where: str) -> PrintedTable:
    table = tables.get((section, plus, "Summary"))
    if table is None:
        path = " / ".join(name for name in (section, plus, "Summary") if name)
        raise ReportError(f"{where} has no table {path!r}; the report is cut off or of an unknown form")
    return table


def _rows(tables: Mapping[Place, PrintedTable]) -> tuple[ModuleRow, ...]:
    """Return the instances of both detail tables, joined by name; a figure that no table states is None."""
    rows: dict[str, ModuleRow] = {}
    if timed := tables.get(("Performance Estimates", "Detail", "Instance")):
        for cells in timed.rows:
            name, module = cells[timed.require("Instance")].strip(), timed.text(cells, "Module")
            pipeline = timed.text(cells, "Pipeline Type", "Pipeline")
            rows[name] = ModuleRow(name, module, cycles=cycles_of(timed, cells), pipeline=pipeline)
    if sized := tables.get(("Utilization Estimates", "Detail", "Instance")):
        for cells in sized.rows:
            name = cells[sized.require("Instance")].strip()
            if name != "Total":
                known = rows.get(name, ModuleRow(name, sized.text(cells, "Module")))
                rows[name] = replace(known, usage=usage_of(sized, cells))
    return tuple(rows.values())
