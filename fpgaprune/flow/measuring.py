"""A network as Verilog in open synthesis and place and route: what they measure, as JSON data and as tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fpgaprune.design import Design
from fpgaprune.fabric.bitstream import make_bitstream
from fpgaprune.fabric.cells import FIGURES, family_of
from fpgaprune.fabric.place import place_and_route
from fpgaprune.fabric.synthesis import synthesize
from fpgaprune.files import digest_file
from fpgaprune.measure import OPEN_SYNTH, ROUTE_ECP5, Resources
from fpgaprune.rtl.project import VerilogProject
from fpgaprune.target import CAPACITIES, Part
from fpgaprune.vendor import ModuleRow, VendorReport

FORMAT = 1
TerminalTable = tuple[str, tuple[str, ...], list[tuple[Any, ...]]]
_TELL = Callable[[int, int, str], None]


def measure_project(
    project: VerilogProject,
    design: Design,
    part: Part,
    folder: Path,
    on_step: _TELL,
    *,
    families: Sequence[str] = (),
    seeds: int = 0,
    device: str | None = None,
    board: str | None = None,
    target_mhz: float | None = None,
    timeout_s: float = 3600.0,
) -> dict[str, Any]:
    """What open tools measure of `project`, as JSON data; they work in `folder`/synth.

    Args:
        project: the Verilog of `design`.
        design: the network.
        part: that the run is for; its family's figures stand beside the estimates.
        folder: of the run.
        on_step: told of each module and each seed.
        families: of FPGAs to synthesise for.
        seeds: runs of place and route on an ECP5.
        device: the ECP5.
        target_mhz: the clock that place and route aims at.
        board: a bitstream is written for it.
        timeout_s: most seconds for each run of a tool.

    Raises:
        ToolError, RtlError, TargetError: as for `synthesize`, `place_and_route` and `make_bitstream`.
    """
    cache = folder / "synth"
    limits: dict[str, Any] = {"timeout_s": timeout_s, "cache": cache}
    found: dict[str, Any] = {
        "format": FORMAT,
        "part_family": family_of(part),
        "kernels": kernels_kept(design),
        "built": {layer.layer: layer.note for layer in project.layers if layer.note},
        OPEN_SYNTH: {},
        ROUTE_ECP5: None,
        "bitstream": None,
    }
    for family in families:

        def tell(done: int, total: int, note: str, family: str = family) -> None:
            on_step(done, total, f"{family}: {note}")

        found[OPEN_SYNTH][family] = synthesize(project, family, on_step=tell, **limits).to_json()
    if seeds:
        asked: dict[str, Any] = {"seeds": seeds, "target_mhz": target_mhz, "on_step": on_step}
        routed = place_and_route(project, "ecp5", device, **asked, **limits)
        found[ROUTE_ECP5] = routed.to_json()
    if board is not None:
        output = folder / f"{project.name}.bit"
        made = make_bitstream(project, board, output, device=device, **limits).to_json()
        found["bitstream"] = {**made, "path": output.name, "sha256": digest_file(output)}
    return found


def measured_tables(found: dict[str, Any]) -> list[TerminalTable]:
    """Title, headers and rows of each table that a terminal shows; each holds one stage."""
    kernels = {row["layer"]: row["kept"] for row in found["kernels"]}
    tables: list[TerminalTable] = []
    simulation = found["simulation"]
    if "left_out" not in simulation:
        names = ("samples", "outputs_unlike_emulation", "latency_cycles", "interval_cycles")
        shown = ("samples", "other bits\nthan emulated", "latency\nin clocks", "interval\nin clocks")
        title = f"Verilog simulation, {simulation['tool']}"
        tables.append((title, shown, [tuple(simulation[name] for name in names)]))
    for family, synthesis in found[OPEN_SYNTH].items():
        rows = [
            (layer["layer"], kernels.get(layer["layer"]), *_figures(layer["cells"])) for layer in synthesis["layers"]
        ]
        rows.append(("total", None, *_figures(synthesis["total"])))
        headers = ("layer", "kernels kept", "LUT", "FF", "carry", "DSP", "BRAM18", "URAM")
        title = f"{OPEN_SYNTH} for {family}, {synthesis['tool']}; total: {synthesis['total_of'] or 'unknown'}"
        tables.append((title, headers, rows))
    route = found[ROUTE_ECP5]
    if route is not None:
        sites = ("lut", "ff", "dsp", "bram18")
        rows = [
            (str(run["seed"]), _mhz(run["fmax_mhz"]), *((run["used"] or {}).get(name) for name in sites))
            for run in route["runs"]
        ]
        rows.append(("median", _mhz(route["fmax_mhz"]), *(None for _ in sites)))
        title = f"{ROUTE_ECP5} on {route['device']}, {route['tool']}, aimed at {route['target_mhz']:g} MHz"
        tables.append((title, ("seed", "MHz", "LUT", "FF", "DSP", "BRAM18"), rows))
    return tables


def _figures(cells: dict[str, Any] | None) -> tuple[int | None, ...]:
    return tuple(None if cells is None else cells[name] for name in FIGURES)


def _mhz(value: float | None) -> str | None:
    return None if value is None else f"{value:.1f}"


def kernels_kept(design: Design) -> list[dict[str, Any]]:
    """For each convolution, how many kernels have a weight that is not zero in hardware, and how many there are."""
    rows = []
    for layer in design.layers:
        weight = layer.weights.get("weight")
        if weight is None or weight.ndim < 3:
            continue
        kernels = np.asarray(weight != 0).any(axis=tuple(range(weight.ndim - 2)))
        rows.append({"layer": layer.name, "kept": int(kernels.sum()), "total": int(kernels.size)})
    return rows


def open_reports(measured: dict[str, Any], name: str) -> list[VendorReport]:
    """The figures of `measure.json` in the vocabulary of vendor reports, as far as they are for the part's own family.

    Synthesis for another family counts other cells, so that it would mean something else in the same column.
    """
    reports = []
    synthesis = measured[OPEN_SYNTH].get(measured["part_family"])
    if synthesis is not None and synthesis["total"] is not None:
        rows = tuple(
            ModuleRow(layer["layer"], layer["module"], _usage(layer["cells"]))
            for layer in synthesis["layers"]
            if layer["cells"] is not None
        )
        total = _usage(synthesis["total"])
        reports.append(VendorReport(synthesis["tool"], None, OPEN_SYNTH, design=name, total=total, rows=rows))
    route = measured[ROUTE_ECP5]
    if route is not None and route["used"] is not None:
        clock = None if route["fmax_mhz"] is None else round(1e3 / route["fmax_mhz"], 3)
        used: Resources[int] = Resources(**route["used"])
        part = route["device"]
        reports.append(
            VendorReport(route["tool"], None, ROUTE_ECP5, design=name, part=part, est_clock_ns=clock, total=used)
        )
    return reports


def _usage(cells: dict[str, Any]) -> Resources[int]:
    return Resources(**{name: cells[name] for name in CAPACITIES})
