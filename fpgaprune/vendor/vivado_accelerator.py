"""Reads `report_accelerator_utilization` of Vitis: counts of the kernels, and of the linked platform."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from msgspec import structs

from fpgaprune.errors import ReportError
from fpgaprune.measure import Resources
from fpgaprune.vendor.cells import parse_number, shorten
from fpgaprune.vendor.grid import PrintedTable, iterate_tables, usage_of
from fpgaprune.vendor.report import PLATFORM, ModuleRow, VendorReport
from fpgaprune.vendor.vivado_timing import read_vivado_head

_KIND = "a report of Vivado's report_accelerator_utilization"
_KERNELS = "Used Resources"
_PLATFORM = "Platform"
# Rows that state capacities and are no part of a design.
_CAPACITIES = ("User Budget", "Unused Resources")
_COUNTED = {"lut": ("LUT",), "ff": ("REG",), "dsp": ("DSP",), "uram": ("URAM",)}
_COLUMNS = ("Name", "LUT", "REG", "BRAM", "DSP")


def recognises_vivado_accelerator(text: str) -> bool:
    """Return whether `text` is a `report_accelerator_utilization` of Vitis."""
    head = read_vivado_head(text)
    if head is None:
        return False
    return "report_accelerator_utilization" in (head.command or "") or "Accelerator Utilization Design" in text


def parse_vivado_accelerator(text: str, source: Path) -> tuple[VendorReport, ...]:
    """Return the report in `text`: `total` counts all kernels, `breakdown` the platform around them.

    Block RAM is counted in tiles of 36 Kb: the counts of platform and user budget add up to the tiles of the device. A
    tile is two `bram18`.

    Raises:
        ReportError: it is cut off, or does not say whether the design is synthesised or placed.
    """
    head = read_vivado_head(text)
    if head is None or head.stage is None:
        state = None if head is None else head.state
        raise ReportError(f"{source}: design state {state!r}; wanted {_KIND} with the state Synthesized to Routed")
    tables = [table for _, table in iterate_tables(text.splitlines(), str(source))]
    table = next((table for table in tables if all(table.index(name) is not None for name in _COLUMNS)), None)
    if table is None:
        raise ReportError(
            f"{source} has no table with the columns {', '.join(_COLUMNS)}; the report is cut off or not {_KIND}"
        )
    rows = {row[table.require("Name")].strip(): row for row in table.rows}
    if _KERNELS not in rows or _PLATFORM not in rows:
        raise ReportError(f"{table.where}: no row {_PLATFORM!r} or {_KERNELS!r}; the report is cut off or not {_KIND}")
    memory = table.count(rows[_KERNELS], "LUTAsMem")
    return (
        head.report(
            source,
            head.stage,
            total=_usage(table, rows[_KERNELS]),
            rows=tuple(
                ModuleRow(name, None, _usage(table, row))
                for name, row in rows.items()
                if name not in (_KERNELS, _PLATFORM, *_CAPACITIES)
            ),
            breakdown={PLATFORM: _usage(table, rows[_PLATFORM])},
            other={} if memory is None else {"lut_memory": memory},
            notes=("the platform around the kernels is no part of the total",),
        ),
    )


def _usage(table: PrintedTable, row: Sequence[str]) -> Resources[int]:
    return structs.replace(usage_of(table, row, _COUNTED), bram18=_bram18(table, row))


def _bram18(table: PrintedTable, row: Sequence[str]) -> int | None:
    where = f"{table.where}: {shorten(row[table.require('Name')])}, 'BRAM'"
    tiles = parse_number(row[table.require("BRAM")], where)
    if tiles is not None and (tiles < 0 or not (2 * tiles).is_integer()):
        raise ReportError(f"{where} counts {tiles} tiles; wanted whole or half ones")
    return None if tiles is None else int(2 * tiles)
