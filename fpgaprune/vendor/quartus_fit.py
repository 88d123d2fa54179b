"""Reads `<revision>.fit.rpt` and `<revision>.fit.summary` of Intel Quartus: counts after place and route."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from fpgaprune.errors import ReportError
from fpgaprune.measure import ROUTE, Resources
from fpgaprune.vendor.cells import parse_count, shorten
from fpgaprune.vendor.grid import PrintedTable, is_border
from fpgaprune.vendor.report import ModuleRow, VendorReport

_STATUS = re.compile(r"^;? {0,4}Fitter Status {0,60}[;:]", re.MULTILINE)
_ENTRY = re.compile(r"\s*\d{1,4}\. (?P<name>\S.*)")
_SUMMARY = "Fitter Summary"
_ENTITIES = "Fitter Resource Utilization by Entity"
_OTHER = {
    "alm": ("Logic utilization (in ALMs)",),
    "logic_element": ("Total logic elements",),
    "ram_block": ("Total RAM Blocks",),
    "memory_bit": ("Total block memory bits", "Total memory bits"),
    "multiplier_9bit": ("Embedded Multiplier 9-bit elements",),
}
_DSP = ("Total DSP Blocks",)
# The last line of the summary, in every family.
_LAST = ("Total PLLs", "UFM blocks")
# In the Standard and Lite editions, in Pro, and in families without ALMs.
_FF = ("Total registers", "Total dedicated logic registers", "Dedicated logic registers")
# Families without ALMs, as MAX 10 and Cyclone IV, count four-input functions; the line is indented.
_LUT = ("Total combinational functions",)


def recognises_quartus_fit(text: str) -> bool:
    """Return whether `text` is a fitter report of Quartus."""
    return _STATUS.search(text) is not None


def parse_quartus_fit(text: str, source: Path) -> tuple[VendorReport, ...]:
    """Parse the fitter report of Quartus.

    An ALM is no LUT, and a block of 10 or 20 Kb is no block of 18 Kb: `other` counts both, and `bram18` is None. `lut`
    counts ALUTs, which only a `.fit.rpt` states, in its table by entity; in families without ALMs it counts four-input
    functions.

    Raises:
        ReportError: the fit failed, or the report is cut off.
    """
    lines = text.splitlines()
    full = any(line.strip().strip(";").strip() == _SUMMARY for line in lines)
    if full:
        _check_end(lines, source)
        table = _table(lines, _SUMMARY, source, headed=False)
        values = {row[0].strip(): row[1].strip() for row in table.rows}
    else:
        # A last line without a line end may be cut; no figure of it is needed.
        whole = lines if text.endswith("\n") else lines[:-1]
        pairs = (line.partition(" : ") for line in whole)
        values = {name.strip(): value.strip() for name, colon, value in pairs if colon}
        if not any(name in values for name in _LAST):
            raise ReportError(f"{source} has no line {' or '.join(map(repr, _LAST))}; the report is cut off")
    status = values.get("Fitter Status", "")
    if not status.startswith("Successful"):
        raise ReportError(
            f"{source}: fitter status {shorten(status)}; wanted 'Successful': a failed fit has no figures"
        )

    def count(names: Sequence[str]) -> int | None:
        name = next((name for name in names if name in values), None)
        return None if name is None else parse_count(values[name], f"{source}: {name!r}")

    registers = count(_FF)
    other = {name: value for name, names in _OTHER.items() if (value := count(names)) is not None}
    if registers is None or not other.keys() & {"alm", "logic_element"}:
        raise ReportError(
            f"{source}: the fitter summary lacks {_FF[0]!r}, or a count of ALMs or logic elements; the report is cut "
            f"off or of an unknown form"
        )
    rows = _entities(_table(lines, _ENTITIES, source)) if full and _has(lines, _ENTITIES) else ()
    version = next((value for name, value in values.items() if name.endswith("Version")), "")
    top = rows[0] if rows else None
    return (
        VendorReport(
            tool="Quartus Prime" if "Quartus Prime Version" in values else "Quartus",
            tool_version=version.split()[0] if version else None,
            stage=ROUTE,
            design=values.get("Top-level Entity Name"),
            part=values.get("Device"),
            total=Resources(
                lut=top.usage.lut if top and top.usage.lut is not None else count(_LUT), ff=registers, dsp=count(_DSP)
            ),
            rows=rows[1:],
            other=other,
            state="fitted",
            date=status.partition(" - ")[2] or None,
            source=source,
            notes=("block memory of Intel is counted in other['ram_block'], in blocks of the device's own size",),
        ),
    )


def _has(lines: Sequence[str], title: str) -> bool:
    return any(line.startswith(";") and line.strip(" ;") == title for line in lines)


def _table(lines: Sequence[str], title: str, source: Path, *, headed: bool = True) -> PrintedTable:
    """Return the table under a line `; title ;`; semicolons separate its cells."""
    at = next(at for at, line in enumerate(lines) if line.startswith(";") and line.strip(" ;") == title)
    where = f"{source}, line {at + 1} ({title})"
    end = at + 1
    while end < len(lines) and (lines[end].startswith(";") or is_border(lines[end])):
        end += 1
    body = [line for line in lines[at + 1 : end] if not is_border(line)]
    if end - at < 3 or not is_border(lines[end - 1]) or not body:
        raise ReportError(f"{where}: the table has no closing line; the report is cut off; wanted the whole file")
    cells = [tuple(cell.rstrip() for cell in line.strip()[1:-1].split(";")) for line in body]
    for row in cells:
        if len(row) != len(cells[0]):
            raise ReportError(f"{where}: a row has {len(row)} cells; wanted {len(cells[0])}, as the first has")
    if headed:
        return PrintedTable(where, tuple(" ".join(cell.split()) for cell in cells[0]), tuple(cells[1:]))
    return PrintedTable(where, ("Name", "Value"), tuple(cells))


def _entities(table: PrintedTable) -> tuple[ModuleRow, ...]:
    """Return one row for each entity, the top first; `1,234 (56)` counts an entity with and without those below it."""

    def count(row: Sequence[str], *names: str) -> int | None:
        at = table.index(*names)
        if at is None:
            return None
        return parse_count(row[at].partition("(")[0], f"{table.where}: {shorten(row[0])}, {names[0]!r}")

    return tuple(
        ModuleRow(
            row[table.require("Compilation Hierarchy Node")].strip().strip("|"),
            table.text(row, "Entity Name"),
            Resources(
                lut=count(row, "Combinational ALUTs"),
                ff=count(row, "Dedicated Logic Registers"),
                # In the Pro edition the column's name says how the fitter counts.
                dsp=count(row, "DSP Blocks", "DSP Blocks needed [=A-B]", "DSP Elements"),
            ),
        )
        for row in table.rows
    )


def _check_end(lines: Sequence[str], source: Path) -> None:
    """Check that the last section in the table of contents follows."""
    start = next((at for at, line in enumerate(lines) if line.strip(" ;") == "Table of Contents"), None)
    if start is None:
        raise ReportError(f"{source} has no table of contents; the report is cut off; wanted the whole .fit.rpt")
    entries, after = [], start + 2
    while after < len(lines) and lines[after].strip():
        if match := _ENTRY.match(lines[after]):
            entries.append(match["name"].strip())
        after += 1
    last = entries[-1] if entries else "any section"
    if not any(line.strip(" ;") == last for line in lines[after:]):
        raise ReportError(
            f"{source} lacks {shorten(last)} of its table of contents; the report is cut off; wanted all of it"
        )
