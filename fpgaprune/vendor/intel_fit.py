"""Reads Quartus's fit of a project of Intel's HLS compilers: `quartusJSON`, in two dialects.

i++ writes tables with columns and children, one for each component; OpenCL and oneAPI write nodes, one for each kernel
and for the systems around them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fpgaprune.errors import ReportError
from fpgaprune.measure import ROUTE, Resources
from fpgaprune.vendor.cells import NOTHING, parse_number, parse_whole_blocks, period_ns, shorten
from fpgaprune.vendor.intel_values import CLOCKS, usage_of_counts
from fpgaprune.vendor.report import PLATFORM, ModuleRow, VendorReport

_RESOURCES = "quartusFitResourceUsageSummary"
_FMAX = ("kernel clock fmax", "clock fmax")
_FMAX_COLUMN = "1x clock fmax"
# The names of the figures in nodes, and in the columns of i++.
_NODE = {"alm": "alm", "lut": "alut", "ff": "reg", "dsp": "dsp", "ram_block": "ram", "mlab": "mlab"}
_COLUMN = {"alm": "ALMs", "ff": "FFs", "dsp": "DSPs", "ram_block": "RAMs", "mlab": "MLABs"}
_OTHER = ("alm", "ram_block", "mlab")
_NOTE = "Quartus shares an ALM between entities; a part of an ALM counts as a whole one"

Counts = dict[str, int | None]


def is_fitted(fit: Any) -> bool:
    """Whether the file holds figures of a fit; before the fit, i++ writes a hint and oneAPI writes `TBD`."""
    table = fit.get(_RESOURCES) if isinstance(fit, Mapping) else None
    if not isinstance(table, Mapping):
        return False
    nodes = table.get("nodes")
    if not isinstance(nodes, list):
        return True
    counts = [str(node.get("alm", "")) for node in nodes if isinstance(node, Mapping)]
    return not counts or any(count.strip().casefold() not in NOTHING for count in counts)


def fit_of(fit: Any, source: Path) -> VendorReport:
    """The report on the fit: `total` holds the resources of the component or of all kernels, without the board's.

    Raises:
        ReportError: no fit has been run, or the file is cut off.
    """
    if not is_fitted(fit):
        raise ReportError(f"{source}: no fit has been run, so there are no figures; compile with Quartus first")
    return _of_nodes(fit, source) if "nodes" in fit[_RESOURCES] else _of_children(fit, source)


def _of_children(fit: Any, source: Path) -> VendorReport:
    components = _objects(fit, _RESOURCES, "children", source)
    clock = _objects(fit, CLOCKS, "children", source)[0]
    fmax = _named(clock, _columns(fit[CLOCKS], source)).get(_FMAX_COLUMN, "")
    columns = _columns(fit[_RESOURCES], source)
    rows = [(str(one.get("name", "")), _counts(_named(one, columns), _COLUMN, source)) for one in components]
    # The file states no sum of several components.
    total = rows[0][1] if len(rows) == 1 else {}
    return _report(rows[0][0] if len(rows) == 1 else None, total, rows, fmax, source)


def _of_nodes(fit: Any, source: Path) -> VendorReport:
    nodes = _objects(fit, _RESOURCES, "nodes", source)
    system = next((node for node in nodes if node.get("type") == "system"), None)
    if system is None:
        raise ReportError(f"{source}: no row of {_RESOURCES} has the type 'system'; the file is cut off")
    kernels = [node for node in nodes if node.get("type") == "kernel"]
    clock = _objects(fit, CLOCKS, "nodes", source)[0]
    fmax = next((str(clock[key]) for key in _FMAX if key in clock), "")
    rows = [(str(node.get("name", "")), _counts(node, _NODE, source)) for node in kernels]
    entire = next((node for node in nodes if node.get("type") == "aclsystem"), None)
    return _report(
        rows[0][0] if len(rows) == 1 else None,
        _counts(system, _NODE, source),
        rows,
        fmax,
        source,
        entire=None if entire is None else _counts(entire, _NODE, source),
    )


def _report(
    design: str | None,
    total: Counts,
    rows: Sequence[tuple[str, Counts]],
    clock: str,
    source: Path,
    *,
    entire: Counts | None = None,
) -> VendorReport:
    # `entire` is the printed row of the system with the board. It may hold fewer DSPs than the kernels alone, so the
    # difference is not what the board takes.
    fmax = parse_number(clock, f"{source}: {CLOCKS}")
    if fmax is None:
        raise ReportError(f"{source}: {CLOCKS} states none of {', '.join((_FMAX_COLUMN, *_FMAX))}; it is cut off")
    return VendorReport(
        tool="Quartus",
        tool_version=None,
        stage=ROUTE,
        design=design,
        est_clock_ns=period_ns(fmax, f"{source}: {CLOCKS}"),
        total=usage_of_counts(total),
        rows=tuple(ModuleRow(name, None, usage_of_counts(counts)) for name, counts in rows),
        breakdown={} if entire is None else {PLATFORM: Resources()},
        other={
            **{name: value for name in _OTHER if (value := total.get(name)) is not None},
            **{f"system_{name}": value for name, value in (entire or {}).items() if value is not None},
        },
        state="fitted",
        source=source,
        notes=(_NOTE,),
    )


def _counts(row: Mapping[str, Any], names: Mapping[str, str], source: Path) -> Counts:
    return {
        name: parse_whole_blocks(str(row.get(key, "")), f"{source}: {_RESOURCES}, {key!r}")
        for name, key in names.items()
    }


def _named(row: Mapping[str, Any], columns: Sequence[str]) -> dict[str, str]:
    """Column -> figure of a row; `quartus.json` names each figure, `report_data.js` only names the columns."""
    data = row.get("data")
    if isinstance(data, Mapping):
        return {str(name): str(value) for name, value in data.items()}
    return {name: str(value) for name, value in zip(columns, data if isinstance(data, list) else (), strict=False)}


def _columns(table: Mapping[str, Any], source: Path) -> list[str]:
    columns = table.get("columns")
    if not isinstance(columns, list) or len(columns) < 2:
        raise ReportError(
            f"{source}: {shorten(str(table.get('name')))} names no columns; without them the figures have no names"
        )
    return [str(column).strip() for column in columns[1:]]


def _objects(fit: Any, key: str, list_of: str, source: Path) -> list[Mapping[str, Any]]:
    table = fit.get(key)
    found = table.get(list_of) if isinstance(table, Mapping) else None
    if not isinstance(found, list) or not found or not all(isinstance(one, Mapping) for one in found):
        raise ReportError(f"{source} has no rows in {key!r}; the file is cut off, or no fit has been run")
    return found
