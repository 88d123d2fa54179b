"""What open tools measure of a network as Verilog: simulation, synthesis, place and route, a bitstream."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fpgaprune.design import Design
from fpgaprune.emulate import emulate
from fpgaprune.errors import ReadbackError, ToolError
from fpgaprune.fabric import (
    bitstream_ending,
    bitstream_seconds,
    family_of,
    find_board_router,
    golden_bytes,
    golden_vectors,
    make_bitstream,
    netlist_seconds,
    place_and_route,
    read_back_seconds,
    simulate,
    simulation_seconds,
    simulator_version,
    slowness,
    synthesis_seconds,
    synthesize,
    with_netlist,
)
from fpgaprune.files import digest_file
from fpgaprune.flow.task import arrays_of
from fpgaprune.measure import OF_VERILOG, ROUTE_ECP5, BitstreamLink, Kernels, Measured, Simulated, VerilogPrice
from fpgaprune.processes import OnStep
from fpgaprune.readback import Results, check_bitstream
from fpgaprune.report import Check
from fpgaprune.rtl import VerilogProject
from fpgaprune.target import Part
from fpgaprune.vendor import ModuleRow, VendorReport

OTHER_BITS = "outputs with other bits"


def simulate_verilog(project: VerilogProject, design: Design, x: Any, timeout_s: float, on_step: OnStep) -> Simulated:
    """Simulate `project`, the Verilog of `design`, by Verilator; left out without a simulator or samples.

    `x` are samples (N, ...), or a list of such arrays for several inputs. They follow one another without a gap.
    Building and running may each take `timeout_s` wall-clock seconds.

    Raises:
        RtlError: the Verilog is stuck or breaks its protocol.
    """
    samples = len(x[0] if isinstance(x, list) else x)
    if samples == 0:
        return Simulated(left_out="the flow asks for no samples (simulate is 0)")
    on_step(0, 1, "simulation")
    try:
        found = simulate(project, x, timeout_s=timeout_s)
    except ToolError as error:
        return Simulated(left_out=str(error))
    on_step(1, 1, "simulation")
    return Simulated(
        tool=simulator_version(),
        samples=samples,
        outputs_unlike_emulation=sum(
            int((a != b).sum()) for a, b in zip(found.outputs, arrays_of(emulate(design, x)), strict=True)
        ),
        latency_cycles=found.latency_cycles,
        interval_cycles=found.interval_cycles,
    )


def expected_seconds(
    project: VerilogProject, prices: Mapping[str, VerilogPrice], samples: int, seeds: int, board: str | None
) -> tuple[float, bool]:
    """Estimate the seconds of `simulate_verilog` and `measure_project`, and tell whether place and route is in them.

    `prices` are the estimates of the design for each family that is synthesised, or place and routed.
    """
    synthesis = placed = 0.0
    known = True
    for family, price in prices.items():
        luts = price.resources.lut
        synthesis += synthesis_seconds(family, 0 if luts is None else luts.value, len(project.layers))
    one = next(iter(prices.values()), None)
    size = 0 if one is None or one.resources.lut is None else one.resources.lut.value
    simulation = simulation_seconds(size, 0 if one is None else one.interval_cycles, samples)
    if seeds:
        placed += seeds * (bitstream_seconds(ROUTE_ECP5.family, size) or 0)
    if board is not None:
        router = find_board_router(board)[1]
        figures = {} if one is None else {name: one.resources[name] for name in OF_VERILOG}
        there = router.devices.placed_luts({name: row.value for name, row in figures.items() if row is not None})
        made = bitstream_seconds(router.family, there)
        known = made is not None
        then = read_back_seconds(router.family, there) + netlist_seconds(router.family, there)
        placed += 0 if made is None else made + then
    # The whole design and its modules are synthesised side by side, each half of the work.
    return slowness() * (synthesis / min(os.cpu_count() or 1, 2) + simulation + placed), known


def verilog_checks(measured: Measured | None) -> list[Check]:
    """Return the checks of the simulation and of a bitstream that was read back; none if nothing was measured."""
    if measured is None:
        return []
    found, name = measured.simulation, "Verilog simulation against emulation"
    if found.left_out is not None:
        checks = [Check(name, OTHER_BITS, left_out=found.left_out)]
    else:
        checks = [Check(name, OTHER_BITS, found.outputs_unlike_emulation, 0, samples=found.samples)]
    back = (measured.bitstream or {}).get("read_back")
    if back is not None:
        name, quantity = "bitstream, read back, against emulation", "bits that differ"
        # Where only the comparison of cells was left out, the samples were compared.
        if "differ" not in back:
            checks.append(Check(name, quantity, left_out=back["left_out"]))
        else:
            checks.append(Check(name, quantity, back["differ"], 0, samples=back["samples"]))
    return checks


def _read_back(
    path: Path, board: str, project: VerilogProject, design: Design, x: Any, cache: Path, timeout_s: float
) -> dict[str, Any]:
    """Return what the bitstream at `path` answers the samples `x`, as JSON data; or why it was not read back."""
    try:
        vectors = golden_vectors(project, design, x)
        sent, wanted = golden_bytes(project, vectors)
        results = Results.of(project.outputs[0])
        found = check_bitstream(path, board, sent, wanted, vectors.samples, results, timeout_s=timeout_s)
    except (ReadbackError, ToolError) as error:
        return {"left_out": str(error).replace(str(path), path.name)}
    link = with_netlist(found.link(path.name, board), project, board, cache=cache)
    return {**found.to_json(), "link": link.to_json()}


def bitstream_link(measured: Measured | None) -> BitstreamLink | None:
    """Return the link of a bitstream that was read back; None if there is none."""
    data = ((measured.bitstream or {}).get("read_back") or {}).get("link") if measured is not None else None
    return None if data is None else BitstreamLink.from_json(data)


def measure_project(
    project: VerilogProject,
    design: Design,
    part: Part,
    folder: Path,
    on_step: OnStep,
    simulation: Simulated,
    *,
    families: Sequence[str] = (),
    seeds: int = 0,
    device: str | None = None,
    board: str | None = None,
    target_mhz: float | None = None,
    timeout_s: float = 3600.0,
    x: Any = None,
) -> Measured:
    """Return what open tools measure of `project`, the Verilog of `design`, with the settings of `MeasureConfig`.

    A bitstream is read back too, and answers the samples `x`, if there are any.

    The tools work in `folder`/synth. The figures of the family of `part` stand beside the estimates. `on_step` is
    called with `(done, total, note)` for each module and each seed.

    Raises:
        ToolError, RtlError, TargetError: as for `synthesize`, `place_and_route` and `make_bitstream`.
    """
    cache = folder / "synth"
    limits: dict[str, Any] = {"timeout_s": timeout_s, "cache": cache}
    synthesis, route, bitstream = {}, None, None
    for family in families:

        def tell(done: int, total: int, note: str, family: str = family) -> None:
            on_step(done, total, f"{family}: {note}")

        on_step(0, 0, f"synthesis for {family}")
        synthesis[family] = synthesize(project, family, on_step=tell, **limits)
    if seeds:
        on_step(0, 0, "place and route for ecp5")
        asked: dict[str, Any] = {"seeds": seeds, "target_mhz": target_mhz, "on_step": on_step}
        route = place_and_route(project, "ecp5", device, **asked, **limits)
    if board is not None:
        on_step(0, 0, f"synthesis, place and route for {board}")
        output = folder / f"{project.name}{bitstream_ending(board)}"
        made = make_bitstream(project, board, output, device=device, **limits).to_json()
        bitstream = {**made, "path": output.name, "sha256": digest_file(output)}
        if x is not None and len(x[0] if isinstance(x, list) else x):
            on_step(0, 0, "the bitstream is read back")
            bitstream["read_back"] = _read_back(output, board, project, design, x, cache, timeout_s)
    built = {layer.layer: layer.note for layer in project.layers if layer.note}
    return Measured(family_of(part), kernels_kept(design), synthesis, route, simulation, built, bitstream)


def kernels_kept(design: Design) -> tuple[Kernels, ...]:
    """Count for each convolution the kernels that are not zero in hardware, and all its kernels."""
    rows = []
    for layer in design.layers:
        weight = layer.weights.get("weight")
        if weight is None or weight.ndim < 3:
            continue
        kernels = np.asarray(weight != 0).any(axis=tuple(range(weight.ndim - 2)))
        rows.append(Kernels(layer.name, int(kernels.sum()), int(kernels.size)))
    return tuple(rows)


def open_reports(measured: Measured, name: str) -> list[VendorReport]:
    """Return the measurements of a run for the part's own family, in the form of vendor reports.

    Synthesis for another family counts other cells, which must not stand in the same column.
    """
    reports = []
    synthesis = measured.synthesis.get(measured.part_family or "")
    if synthesis is not None and synthesis.total is not None:
        rows = tuple(
            ModuleRow(str(layer.layer), layer.module, layer.cells)
            for layer in synthesis.layers
            if layer.cells is not None
        )
        total = synthesis.total
        reports.append(VendorReport(synthesis.tool, None, synthesis.stage, design=name, total=total, rows=rows))
    route = measured.route
    if route is not None and route.used is not None:
        clock, used = route.whole.clock_ns, route.whole.resources
        part = route.device
        reports.append(
            VendorReport(route.tool, None, route.stage, design=name, part=part, est_clock_ns=clock, total=used)
        )
    return reports
