"""Reports of Intel's HLS compiler: `report_data.js` (its estimate) and `quartus_data.js` (after the fit).

The same objects lie as JSON in `resources/json` of newer releases and of oneAPI.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fpgaprune.errors import ReportError
from fpgaprune.vendor.cells import parse_count, parse_number
from fpgaprune.vendor.report import ModuleRow, Usage, VendorReport

_VARIABLE = re.compile(r"\bvar\s+(?P<name>\w+)\s*=\s*(?=[\[{])")
_AREA = "areaJSON"
_FIT = "quartusJSON"
_CLOCKS = "quartusFitClockSummary"
_RESOURCES = "quartusFitResourceUsageSummary"
_LUT = ("ALUTs", "ALUT")
_FF = ("FFs", "FF", "REGs")
_DSP = ("DSPs", "DSP")


def recognises_quartus_hls(text: str) -> bool:
    """Whether `text` is such a report."""
    return any(name in text for name in (f"var {_AREA}", f"var {_FIT}", f'"{_RESOURCES}"'))


def parse_quartus_hls(text: str, source: Path) -> tuple[VendorReport, ...]:
    """The reports in `text`: `csynth` from the compiler's estimate, `route` from the fit.

    Memory blocks of Intel do not hold 18 Kb: they stand in `other`, and `bram18` is None.

    Raises:
        ReportError: the file is cut off, names no columns, or no fit has been run.
    """
    values = _values(text, source)
    reports = []
    if _AREA in values:
        reports.append(_estimate(values[_AREA], values.get("infoJSON"), source))
    if _FIT in values:
        reports.append(_fit(values[_FIT], source))
    return tuple(reports)


def _values(text: str, source: Path) -> dict[str, Any]:
    """The JSON objects that the file gives names to."""
    decoder = json.JSONDecoder()
    values: dict[str, Any] = {}
    try:
        if text.lstrip().startswith("{"):
            return {_FIT: decoder.raw_decode(text.lstrip())[0]}
        for match in _VARIABLE.finditer(text):
            # Source texts follow, which no report needs and which are not always JSON.
            if match["name"] in (_AREA, _FIT, "infoJSON"):
                values[match["name"]] = decoder.raw_decode(text, match.end())[0]
    except json.JSONDecodeError as error:
        raise ReportError(f"{source} is no whole report ({error}); it is cut off; wanted the whole file") from None
    return values


def _estimate(area: Any, info: Any, source: Path) -> VendorReport:
    columns = _list(area, "columns", source)
    total = _list(area, "total", source)
    names = [str(name) for name in columns]
    if len(names) > len(total) and not names[0].strip():
        names = names[1:]
    rows = []
    for child in area.get("children") or area.get("partitions") or ():
        data = child.get("data") if isinstance(child, Mapping) else None
        if isinstance(data, list) and "name" in child:
            rows.append(ModuleRow(str(child["name"]), None, _usage(names, data, source)))
    facts = _facts(info)
    device = facts.get("Target Family, Device", "")
    others = {"ram_block": ("RAMs", "RAM"), "mlab": ("MLABs", "MLAB")}
    counts = {name: _count(names, total, keys, source) for name, keys in others.items()}
    return VendorReport(
        tool="Intel HLS Compiler",
        tool_version=next((value for name, value in facts.items() if name.endswith("++ Version")), None),
        stage="csynth",
        design=facts.get("Project Name"),
        part=device.rpartition(",")[2].strip() or None,
        total=_usage(names, total, source),
        rows=tuple(rows),
        other={name: value for name, value in counts.items() if value is not None},
        date=facts.get("Reports Generated At"),
        source=source,
    )


def _fit(data: Any, source: Path) -> VendorReport:
    nodes = _nodes(data, _RESOURCES, source)
    clocks = _nodes(data, _CLOCKS, source)
    # The whole system where the compiler marks it; else the last row, which is the sum.
    node = next((node for node in nodes if node.get("type") == "system"), nodes[-1])
    clock = next((str(clocks[0][key]) for key in ("clock fmax", "clock", "kernel clock") if key in clocks[0]), "")
    fmax = parse_number(clock, f"{source}: {_CLOCKS}")

    def count(row: Mapping[str, Any], key: str) -> int | None:
        value = parse_number(str(row.get(key, "")), f"{source}: {row.get('name')!r}, {key!r}")
        # The fitter shares ALMs between entities and prints halves of them.
        return None if value is None else round(value)

    if fmax is None or count(node, "alm") is None:
        raise ReportError(f"{source}: no fit has been run: its clock is {clock!r}; compile with Quartus first")
    others = {"alm": "alm", "alut": "alut", "ram_block": "ram", "mlab": "mlab"}
    return VendorReport(
        tool="Quartus",
        tool_version=None,
        stage="route",
        est_clock_ns=1000.0 / fmax,
        total=Usage(lut=count(node, "alut"), ff=count(node, "reg"), dsp=count(node, "dsp")),
        rows=tuple(
            ModuleRow(
                str(row["name"]), None, Usage(lut=count(row, "alut"), ff=count(row, "reg"), dsp=count(row, "dsp"))
            )
            for row in nodes
            if row is not node and "name" in row
        ),
        other={name: value for name, key in others.items() if (value := count(node, key)) is not None},
        state="fitted",
        source=source,
    )


def _usage(names: Sequence[str], data: Sequence[Any], source: Path) -> Usage:
    return Usage(
        lut=_count(names, data, _LUT, source),
        ff=_count(names, data, _FF, source),
        dsp=_count(names, data, _DSP, source),
    )


def _count(names: Sequence[str], data: Sequence[Any], keys: Sequence[str], source: Path) -> int | None:
    at = next((names.index(key) for key in keys if key in names), None)
    if at is None or at >= len(data):
        return None
    return parse_count(str(data[at]), f"{source}: {names[at]!r}")


def _list(data: Any, key: str, source: Path) -> list[Any]:
    value = data.get(key) if isinstance(data, Mapping) else None
    if not isinstance(value, list) or not value:
        raise ReportError(f"{source}: {_AREA} has no list {key!r}; without it no figure can be named")
    return value


def _nodes(data: Any, key: str, source: Path) -> list[dict[str, Any]]:
    table = data.get(key) if isinstance(data, Mapping) else None
    nodes = table.get("nodes") if isinstance(table, Mapping) else None
    if not isinstance(nodes, list) or not nodes or not all(isinstance(node, dict) for node in nodes):
        raise ReportError(f"{source} has no rows in {key!r}; the file is cut off, or no fit has been run")
    return nodes


def _facts(info: Any) -> dict[str, str]:
    """Name and value of each row of the general information."""
    rows = info.get("rows", ()) if isinstance(info, Mapping) else ()
    facts: dict[str, str] = {}
    for row in rows:
        data = row.get("data") if isinstance(row, Mapping) else None
        if isinstance(data, list) and data:
            facts[str(row.get("name"))] = str(data[0])
    return facts
