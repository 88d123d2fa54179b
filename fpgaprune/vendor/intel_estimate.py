"""Reads the area that Intel's HLS compilers estimate: `areaJSON` of `report_data.js`, the table of `summary.json`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fpgaprune.errors import ReportError
from fpgaprune.measure import CSYNTH
from fpgaprune.vendor.cells import parse_count, parse_number, parse_whole_blocks
from fpgaprune.vendor.intel_values import AREA, SUMMARY_TABLE, usage_of_counts
from fpgaprune.vendor.report import PLATFORM, SUMMARY, ModuleRow, VendorReport

# Figure -> the name of its column, which some tables pad with spaces.
_COLUMNS = {"lut": "ALUTs", "ff": "FFs", "dsp": "DSPs", "ram_block": "RAMs", "mlab": "MLABs"}
_FRACTIONS = "Frac. DSPs"
_PACKING = "dsp_packing_factor"
_OTHER = ("ram_block", "mlab")
_BOARD = "board interface"
# Rows that are sums of other rows, or capacities.
_SUMS = ("Total", "Available", "Kernel Subtotal")
_NOTE = "a part of a block counts as a whole block; a board's interface is no part of the total"

Counts = dict[str, int | None]


def estimate_of_area(area: Any, info: Any, source: Path) -> VendorReport:
    """The estimate in `areaJSON`: `total` without the board's interface, one row for each component or kernel.

    Raises:
        ReportError: the columns have no names, or there is no total.
    """
    names = [str(name).strip() for name in _list(area, "columns", AREA, source)][1:]
    whole = _counts(area, names, _list(area, "total", AREA, source), source)
    rows: list[tuple[str, Counts]] = []
    parts: dict[str, Counts] = {}
    for child in _mappings(area.get("children"), source):
        name, kind = str(child.get("name", "")), child.get("type")
        if kind == "function":
            rows.append((name, _counts(area, names, _list(child, "total_kernel_resources", name, source), source)))
        elif isinstance(child.get("data"), list):
            parts[name] = _counts(area, names, child["data"], source)
        else:
            below = [
                _counts(area, names, _list(part, "data", name, source), source)
                for part in _mappings(child.get("children"), source)
            ]
            parts[PLATFORM if kind == "partition" else name] = _sum(below)
    facts = _facts(info)
    # i++ calls it a system; the compilers of kernels call it a kernel system.
    return _report(facts, whole, rows, parts, source, kernels=str(area.get("name")).startswith("Kernel"))


def estimate_of_summary(table: Any, source: Path) -> VendorReport:
    """As `estimate_of_area`, from `Estimated Resource Usage` of `summary.json` or `summary.ndjson`.

    Its state is `SUMMARY`: it rounds 511.5 DSPs down, `areaJSON` rounds them up.

    Raises:
        ReportError: the columns have no names, or there is no row `Total`.
    """
    names = [str(name).strip() for name in _list(table, "columns", SUMMARY_TABLE, source)][1:]
    rows: list[tuple[str, Counts]] = []
    parts: dict[str, Counts] = {}
    whole = None
    for child in _mappings(table.get("children"), source):
        name = str(child.get("name", ""))
        counts = _counts(table, names, _list(child, "data", name, source), source)
        if name == "Total":
            whole = counts
        elif name not in _SUMS:
            if "classes" not in child:
                rows.append((name, counts))
            else:
                parts[PLATFORM if name.casefold() == _BOARD else name] = counts
    if whole is None:
        raise ReportError(f"{source}: {SUMMARY_TABLE} has no row 'Total'; the report is cut off; wanted the whole file")
    kernels = str(table["columns"][0]).startswith("Kernel")
    return _report({}, whole, rows, parts, source, kernels=kernels, state=SUMMARY)


def _report(
    facts: Mapping[str, str],
    whole: Counts,
    rows: Sequence[tuple[str, Counts]],
    parts: Mapping[str, Counts],
    source: Path,
    *,
    kernels: bool,
    state: str | None = None,
) -> VendorReport:
    own = _less(whole, parts.get(PLATFORM), source)
    other = {name: value for name in _OTHER if (value := own.get(name)) is not None}
    if PLATFORM in parts:
        other |= {f"system_{name}": value for name, value in whole.items() if value is not None}
    device = facts.get("Target Family, Device", "").rpartition(",")[2].strip()
    return VendorReport(
        tool="Intel oneAPI or OpenCL compiler" if kernels else "Intel HLS Compiler",
        tool_version=facts.get("i++ Version"),
        stage=CSYNTH,
        design=rows[0][0] if len(rows) == 1 else (facts.get("Project Name", "").rpartition("/")[2] or None),
        part=device or None,
        total=usage_of_counts(own),
        rows=tuple(ModuleRow(name, None, usage_of_counts(counts)) for name, counts in rows),
        breakdown={name: usage_of_counts(counts) for name, counts in parts.items()},
        other=other,
        state=state,
        date=facts.get("Reports Generated At"),
        source=source,
        notes=(_NOTE,),
    )


def _counts(table: Mapping[str, Any], names: Sequence[str], data: Sequence[Any], source: Path) -> Counts:
    def text(column: str) -> str:
        at = names.index(column) if column in names else len(data)
        return str(data[at]) if at < len(data) else ""

    counts: Counts = {
        name: parse_whole_blocks(text(column), f"{source}: {column!r}") for name, column in _COLUMNS.items()
    }
    parts = parse_number(text(_FRACTIONS), f"{source}: {_FRACTIONS!r}")
    if parts and counts["dsp"] is not None:
        # Several multipliers share a DSP block; the file says how many.
        shared = parse_count(str(table.get(_PACKING, "")), f"{source}: {_PACKING!r}")
        counts["dsp"] = counts["dsp"] + math.ceil(parts / shared) if shared else None
    return counts


def _sum(parts: Sequence[Counts]) -> Counts:
    total: Counts = {}
    for name in _COLUMNS:
        known = [value for part in parts if (value := part[name]) is not None]
        total[name] = sum(known) if known and len(known) == len(parts) else None
    return total


def _less(whole: Counts, platform: Counts | None, source: Path) -> Counts:
    if platform is None:
        return whole
    own: Counts = {}
    for name, value in whole.items():
        taken = platform.get(name)
        own[name] = None if value is None or taken is None else value - taken
        if (own[name] or 0) < 0:
            raise ReportError(
                f"{source}: the board's interface takes {taken} {_COLUMNS[name]}, more than the total of {value}; "
                f"wanted the report of one compilation"
            )
    return own


def _list(data: Any, key: str, where: str, source: Path) -> list[Any]:
    value = data.get(key) if isinstance(data, Mapping) else None
    if not isinstance(value, list) or not value:
        raise ReportError(f"{source}: {where[:80]} has no list {key!r}; without it the figures have no names")
    return value


def _mappings(children: Any, source: Path) -> list[Mapping[str, Any]]:
    if not isinstance(children, list) or not all(isinstance(child, Mapping) for child in children):
        raise ReportError(f"{source} has no list of objects 'children'; the report is cut off or of an unknown form")
    return children


def _facts(info: Any) -> dict[str, str]:
    """Name -> value of each row of the general information."""
    rows = info.get("rows", ()) if isinstance(info, Mapping) else ()
    facts: dict[str, str] = {}
    for row in rows if isinstance(rows, list) else ():
        data = row.get("data") if isinstance(row, Mapping) else None
        if isinstance(data, list) and data:
            facts[str(row.get("name"))] = str(data[0])
    return facts
