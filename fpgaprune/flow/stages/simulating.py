"""Simulates the network's Verilog cycle by cycle on held-out samples, and compares its bits with the emulation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fpgaprune.design import Design
from fpgaprune.emulate import emulate
from fpgaprune.errors import ToolError
from fpgaprune.fabric import simulate, simulator_version
from fpgaprune.flow.task import arrays_of
from fpgaprune.measure import Measured, Simulated
from fpgaprune.report import Check
from fpgaprune.rtl import VerilogProject

OTHER_BITS = "outputs with other bits"


def simulate_verilog(
    project: VerilogProject,
    design: Design,
    x: Any,
    timeout_s: float,
    on_step: Callable[[int, int, str], None],
) -> Simulated:
    """The simulation of `project`, the Verilog of `design`, by Verilator; left out without a simulator or samples.

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


def verilog_checks(measured: Measured | None) -> list[Check]:
    """The checks of the simulation; none if nothing was measured."""
    if measured is None:
        return []
    found, name = measured.simulation, "Verilog simulation against emulation"
    if found.left_out is not None:
        return [Check(name, OTHER_BITS, left_out=found.left_out)]
    return [Check(name, OTHER_BITS, found.outputs_unlike_emulation, 0, samples=found.samples)]
