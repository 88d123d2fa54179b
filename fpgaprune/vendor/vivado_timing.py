"""Reads `report_timing_summary` of Vivado, and the head of its reports: worst slack, clock, and the period reached."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fpgaprune.errors import ReportError
from fpgaprune.measure import ROUTE, SYNTH, Stage
from fpgaprune.vendor.cells import parse_number, shorten
from fpgaprune.vendor.report import VendorReport

# Tables whose columns are marked by runs of dashes under the header; none has more than a hundred columns.
_RULE = re.compile(r"\s*-+(\s+-+){1,99}\s*")
_RUN = re.compile(r"-+")
_WORDS = re.compile(r"\S+(?: \S+)*")


@dataclass(frozen=True, slots=True)
class RuledTable:
    """A table of a report.

    Attributes:
        where: file and line of the header, for messages.
        columns: header texts.
        rows: column -> text; empty cells are left out.
    """

    where: str
    columns: tuple[str, ...]
    rows: tuple[dict[str, str], ...]

    def get(self, row: dict[str, str], name: str) -> str | None:
        """Return the text of `row` in column `name`; None if the cell is empty.

        Raises:
            ReportError: the table has no such column.
        """
        if name not in self.columns:
            raise ReportError(
                f"{self.where}: no column {name!r}; the table has {', '.join(map(shorten, self.columns[:20]))}"
            )
        return row.get(name)


def is_rule(line: str) -> bool:
    """Return whether `line` consists of two or more runs of dashes."""
    return _RULE.fullmatch(line) is not None


def read_floating(lines: Sequence[str], rule: int, source: str) -> RuledTable:
    """Return the table below the rule `lines[rule]`, whose cells may be wider than its dashes (Vivado).

    Two or more spaces separate cells. A cell belongs to the column whose dashes it overlaps most, or is nearest to.
    The table ends at the first empty line.
    """
    spans = [match.span() for match in _RUN.finditer(lines[rule])]
    columns = [""] * len(spans)
    for match in _WORDS.finditer(lines[rule - 1] if rule else ""):
        columns[_nearest(match.span(), spans)] = match[0]
    rows = []
    for line in lines[rule + 1 :]:
        if not line.strip():
            break
        row: dict[str, str] = {}
        for match in _WORDS.finditer(line):
            row.setdefault(columns[_nearest(match.span(), spans)], match[0])
        rows.append(row)
    return RuledTable(f"{source}, line {rule}", tuple(columns), tuple(rows))


def _nearest(cell: tuple[int, int], spans: Sequence[tuple[int, int]]) -> int:
    def gap(number: int) -> int:
        # Negative if they overlap.
        return max(spans[number][0] - cell[1], cell[0] - spans[number][1])

    return min(range(len(spans)), key=gap)


_FIELD = re.compile(r"^\| {0,4}(?P<name>[A-Z][A-Za-z ]{1,40}):(?P<value>.*)")
_VERSION = re.compile(r"Vivado v\.? ?(?P<version>\S{1,40})")
# After synth_design and opt_design no cell has a site yet: the stage is `synth`. From placement on, cells have sites,
# and Vivado's own run writes its final utilization.
_STAGES = {"synthesized": SYNTH, "optimized": SYNTH, "placed": ROUTE, "physopt": ROUTE, "routed": ROUTE}


@dataclass(frozen=True, slots=True)
class VivadoHead:
    """The head of a report of Vivado, as printed; what it does not state is None.

    Attributes:
        version: version of Vivado.
        command: the command that wrote the report.
        design: name of the design.
        part: name of the device.
        date: date of the report.
        state: state of the design.
    """

    version: str | None
    command: str | None
    design: str | None
    part: str | None
    date: str | None
    state: str | None

    @property
    def stage(self) -> Stage | None:
        """`synth` or `route`; None if the state is missing or not known."""
        words = [] if self.state is None else self.state.casefold().split()
        return next((_STAGES[word] for word in words if word in _STAGES), None)

    def report(self, source: Path, stage: Stage, **found: Any) -> VendorReport:
        """Return the report in file `source` with what was `found` below its head."""
        return VendorReport(
            tool="Vivado",
            tool_version=self.version,
            stage=stage,
            design=self.design,
            part=self.part,
            state=self.state,
            date=self.date,
            source=source,
            **found,
        )


def read_vivado_head(text: str) -> VivadoHead | None:
    """Return the head at the beginning of `text`; None if Vivado did not write it."""
    fields: dict[str, str] = {}
    for line in text.splitlines()[:40]:
        match = _FIELD.match(line)
        if match and match["value"].strip():
            fields.setdefault(match["name"].strip(), match["value"].strip())
    version = _VERSION.search(fields.get("Tool Version", ""))
    if version is None:
        return None
    return VivadoHead(
        version=version["version"],
        command=fields.get("Command"),
        design=fields.get("Design"),
        part=fields.get("Device"),
        date=fields.get("Date"),
        state=fields["Design State"][:80] if "Design State" in fields else None,
    )


_KIND = "a report of Vivado's report_timing_summary"
_UNCONSTRAINED = "There are no user specified timing constraints."
_SECTION = re.compile(r"\| (?P<name>[A-Z][A-Za-z ]+)")


def recognises_vivado_timing(text: str) -> bool:
    """Return whether `text` is a timing report of Vivado."""
    head = read_vivado_head(text)
    if head is None:
        return False
    return "report_timing_summary" in (head.command or "") or "| Design Timing Summary" in text


def parse_vivado_timing(text: str, source: Path) -> tuple[VendorReport, ...]:
    """Return the report in `text`: `est_clock_ns` is the period of the clock with the worst slack, less that slack.

    Without a timing constraint Vivado prints a slack of `inf` and no clock; then all three figures are None, and a note
    says so.

    Raises:
        ReportError: the report is cut off, or its design is placed but not routed: this is neither `synth` nor `route`.
    """
    head = read_vivado_head(text)
    if head is None:
        raise ReportError(f"{source} has no line '| Tool Version : Vivado'; wanted {_KIND}")
    stage = _stage(head, text, source)
    tables = _sections(text.splitlines(), str(source))
    summary = tables.get("Design Timing Summary")
    clocks = tables.get("Clock Summary")
    free = _UNCONSTRAINED in text
    if summary is None or not summary.rows or not (clocks or free) or "| Inter Clock Table" not in text:
        missing = [name for name in ("Design Timing Summary", "Clock Summary", "Inter Clock Table") if name not in text]
        raise ReportError(
            f"{source} has no whole table {(missing or ['Design Timing Summary'])[0]!r}; the report is cut off or not "
            f"{_KIND}"
        )
    slack = _number(summary, summary.rows[0], "WNS(ns)")
    period = None
    if clocks is not None:
        clock = _worst_clock(tables.get("Intra Clock Table"), clocks)
        period = next((_number(clocks, row, "Period(ns)") for row in clocks.rows if row.get("Clock") == clock), None)
    return (
        head.report(
            source,
            stage,
            clock_ns=period,
            est_clock_ns=None if period is None or slack is None else round(period - slack, 6),
            slack_ns=slack,
            notes=("the design has no timing constraint, so the report states no slack and no period",) if free else (),
        ),
    )


def _stage(head: VivadoHead, text: str, source: Path) -> Stage:
    """Return the stage of the state in the head; without a state, the stage that the delays of the paths' nets show."""
    if head.stage == SYNTH or (head.stage == ROUTE and "routed" in (head.state or "").casefold()):
        return head.stage
    if head.state is None:
        # Each net of a path says whether its delay is routed, estimated from its placement, or unplaced.
        if ", routed)" in text and ", estimated)" not in text:
            return ROUTE
        if ", unplaced)" in text and ", estimated)" not in text:
            return SYNTH
    raise ReportError(
        f"{source}: design state {head.state!r}: its delays are neither those after routing nor those after synthesis; "
        f"wanted report_timing_summary after route_design, or after synth_design"
    )


def _sections(lines: Sequence[str], source: str) -> dict[str, RuledTable]:
    tables: dict[str, RuledTable] = {}
    name = None
    for number, line in enumerate(lines):
        if match := _SECTION.fullmatch(line.rstrip()):
            name = match["name"].strip()
        elif name is not None and name not in tables and is_rule(line) and number:
            tables[name] = read_floating(lines, number, source)
    return tables


def _worst_clock(table: RuledTable | None, clocks: RuledTable) -> str | None:
    """Return the clock with the least setup slack; the only clock if there is one."""
    if len(clocks.rows) == 1 or table is None:
        return clocks.rows[0].get("Clock") if len(clocks.rows) == 1 else None
    slacks = [(_number(table, row, "WNS(ns)"), row.get("Clock")) for row in table.rows]
    known = [(slack, clock) for slack, clock in slacks if slack is not None]
    return min(known, key=lambda pair: pair[0])[1] if known else None


def _number(table: RuledTable, row: dict[str, str], name: str) -> float | None:
    text = table.get(row, name)
    return None if text in (None, "inf") else parse_number(text, f"{table.where}: {name!r}")
