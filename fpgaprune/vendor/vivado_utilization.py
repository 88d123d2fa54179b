"""Reads `report_utilization` of Vivado, flat and `-hierarchical`: 7-series, UltraScale, UltraScale+ and Versal."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from fpgaprune.errors import ReportError
from fpgaprune.measure import ROUTE, Resources, Stage
from fpgaprune.vendor.cells import parse_number, shorten
from fpgaprune.vendor.grid import PrintedTable, iterate_tables
from fpgaprune.vendor.report import ModuleRow, VendorReport
from fpgaprune.vendor.vivado_timing import VivadoHead, read_vivado_head

# Names of rows in column 'Site Type'; families have different ones. The first name that a report has counts.
_LUT = ("Slice LUTs", "CLB LUTs")
_FF = ("Slice Registers", "CLB Registers", "Registers")
_DSP = ("DSPs", "DSP Slices", "DSP58", "DSP48E2", "DSP48E1")
_URAM = ("URAM", "URAM288E5", "URAM288")
_TILES = "Block RAM Tile"
_RAMB36 = ("RAMB36/FIFO", "RAMB36E5", "RAMB36E2", "RAMB36E1", "RAMB36")
_RAMB18 = ("RAMB18", "RAMB18E5", "RAMB18E2", "RAMB18E1")
_OTHER = {
    "lut_logic": ("LUT as Logic",),
    "lut_memory": ("LUT as Memory",),
    "lut_shift_register": ("LUT as Shift Register",),
    "carry4": ("CARRY4",),
    "carry8": ("CARRY8",),
    "lookahead8": ("LOOKAHEAD8",),
}
_CONTENTS = re.compile(r"\d{1,3}(\.\d{1,3}){0,4}\.? \S.*")
_KIND = "a report of Vivado's report_utilization"

Number = int | float | None


def recognises_vivado_utilization(text: str) -> bool:
    """Return whether `text` is a utilization report of Vivado."""
    head = read_vivado_head(text)
    if head is None:
        return False
    # The title alone also fits report_accelerator_utilization.
    return "report_utilization" in (head.command or "") or "\nUtilization Design Information" in text


def parse_vivado_utilization(text: str, source: Path) -> tuple[VendorReport, ...]:
    """Return the report in `text`; a 36 Kb tile counts as two `bram18`.

    Raises:
        ReportError: it is cut off, or does not say whether the design is synthesised or placed.
    """
    head = read_vivado_head(text)
    if head is None:
        raise ReportError(f"{source} has no line '| Tool Version : Vivado'; wanted {_KIND}")
    stage = head.stage
    if stage is None:
        raise ReportError(
            f"{source}: design state {head.state!r}; wanted Synthesized, Optimized, Placed or Routed, because figures "
            f"of different stages must not be mixed"
        )
    lines = text.splitlines()
    _check_contents(lines, source)
    tables = [table for _, table in iterate_tables(lines, str(source))]
    nested = [table for table in tables if table.index("Instance") is not None and table.index("Total LUTs")]
    if nested:
        total, rows, other = _hierarchy(nested[0])
    else:
        total, other = _flat([table for table in tables if table.index("Site Type") is not None], source)
        rows = ()
    return (_report(head, stage, total, rows, other, source),)


def _report(
    head: VivadoHead,
    stage: Stage,
    total: Resources[int],
    rows: tuple[ModuleRow, ...],
    other: dict[str, int],
    source: Path,
) -> VendorReport:
    notes = []
    if stage == ROUTE and "routed" not in (head.state or "").casefold():
        notes.append("counted after placement, before routing; routing changes counts only if it optimises")
    if "optimized" in (head.state or "").casefold():
        notes.append("counted after opt_design, which removes logic that synthesis left")
    return head.report(source, stage, total=total, rows=rows, other=other, notes=tuple(notes))


def _flat(tables: Sequence[PrintedTable], source: Path) -> tuple[Resources[int], dict[str, int]]:
    used: dict[str, float | None] = {}
    for table in tables:
        # The tables of each super logic region repeat the names without a column 'Used'.
        at = table.index("Used")
        if at is None:
            continue
        for row in table.rows:
            name = row[table.require("Site Type")].strip().rstrip("*")
            if name not in used:
                used[name] = parse_number(row[at], f"{table.where}: {shorten(name)}, 'Used'")

    def value(names: Sequence[str]) -> float | None:
        return next((used[name] for name in names if used.get(name) is not None), None)

    def first(names: Sequence[str]) -> int | None:
        return _whole(value(names), names[0], source)

    lut, ff = first(_LUT), first(_FF)
    if lut is None or ff is None:
        raise ReportError(
            f"{source} has no row {' or '.join(_LUT)}, or none of {', '.join(_FF)}; the report is cut off or not "
            f"{_KIND}"
        )
    other = {name: count for name, rows in _OTHER.items() if (count := first(rows)) is not None}
    # A tile holds one block of 36 Kb or two of 18 Kb.
    tiles = value((_TILES,))
    blocks = _blocks(value(_RAMB36), value(_RAMB18)) if tiles is None else 2 * tiles
    bram18 = _whole(blocks, _TILES, source)
    return Resources(lut=lut, ff=ff, dsp=first(_DSP), bram18=bram18, uram=first(_URAM)), other


def _blocks(large: Number, small: Number) -> Number:
    """Count blocks of 18 Kb: two for each of 36 Kb; None if neither number is known."""
    return None if large is None and small is None else 2 * (large or 0) + (small or 0)


def _whole(value: float | None, name: str, source: Path) -> int | None:
    if value is not None and value != int(value):
        raise ReportError(f"{source}: {name!r} counts {value}; wanted a whole number (of halves, for a tile of 36 Kb)")
    return None if value is None else int(value)


def _hierarchy(table: PrintedTable) -> tuple[Resources[int], tuple[ModuleRow, ...], dict[str, int]]:
    rows = []
    for cells in table.rows:
        name = cells[table.require("Instance")].strip()
        blocks = _blocks(table.count(cells, "RAMB36"), table.count(cells, "RAMB18"))
        usage = Resources(
            lut=table.count(cells, "Total LUTs"),
            ff=table.count(cells, "FFs"),
            dsp=table.count(cells, "DSP48 Blocks", "DSP Blocks", "DSP Slices", "DSPs"),
            bram18=None if blocks is None else int(blocks),
            uram=table.count(cells, "URAM"),
        )
        # The row '(name)' counts an instance without the instances inside it.
        if not name.startswith("("):
            rows.append(ModuleRow(name, table.text(cells, "Module"), usage))
    if not rows:
        raise ReportError(f"{table.where}: the hierarchy has no row; the report is cut off")
    top = table.rows[0]
    other = {"lut_logic": table.count(top, "Logic LUTs"), "lut_shift_register": table.count(top, "SRLs")}
    return rows[0].usage, tuple(rows[1:]), {name: count for name, count in other.items() if count is not None}


def _check_contents(lines: Sequence[str], source: Path) -> None:
    """Check that every section in the table of contents follows."""
    starts = [at for at, line in enumerate(lines) if line.strip() == "Table of Contents"]
    if not starts:
        raise ReportError(f"{source} has no table of contents; the report is cut off or not {_KIND}")
    names, at = [], starts[0] + 2
    while at < len(lines) and (match := _CONTENTS.match(lines[at])):
        names.append(match[0].strip())
        at += 1
    present = {line.strip() for line in lines[at:]}
    missing = [name for name in names if name not in present]
    if missing or not names:
        first = shorten(missing[0]) if missing else "any section"
        raise ReportError(f"{source} lacks {first} of its table of contents; the report is cut off; wanted all of it")
