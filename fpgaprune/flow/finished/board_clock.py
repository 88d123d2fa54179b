"""`with_faster_clock`: the bitstream with a clock from the FPGA's PLL, where the network and not the wire is slow."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from fpgaprune.errors import RtlError, TargetError, ToolError
from fpgaprune.fabric import Bitstream, board_pll, make_bitstream
from fpgaprune.flow.run import Progress
from fpgaprune.rtl import VerilogProject

# A faster clock is worth another place and route if the network takes this share of a sample's time, and if the clock
# becomes so many times as fast.
_SHARE, _FASTER = 0.3, 1.3
# The other place and route may reach less: the clock asked for is this much of what was reached.
_REACHED = 0.9


def with_faster_clock(
    made: Bitstream,
    latency_cycles: int,
    project: VerilogProject,
    board: str | os.PathLike[str],
    left: Callable[[], float],
    tools: dict[str, Any],
    progress: Progress,
) -> Bitstream:
    """Return `made`, or the same design with a faster clock if that pays and the tools bring it to an end in time.

    Args:
        made: the bitstream at the clock of the board's oscillator; its file is overwritten only by a faster one.
        latency_cycles: cycles of a sample in the network.
        project: the Verilog.
        board: a board of `hw/boards`.
        left: the seconds that are left.
        tools: further arguments of `make_bitstream`.
        progress: is told which clock is tried, and why it was given up.
    """
    if made.core_share(latency_cycles) < _SHARE:
        return made
    pll = board_pll(board, _REACHED * made.fmax_mhz)
    if pll is None or pll.clock_mhz < _FASTER * made.clock_mhz:
        return made
    clocks = f"{pll.clock_mhz:g} MHz from the PLL instead of {made.clock_mhz:g} MHz"
    progress.step(0, 0, clocks)
    try:
        return make_bitstream(project, board, made.path, timeout_s=left(), advise=False, pll=pll, **tools)
    except (ToolError, TargetError, RtlError) as error:
        progress.stage("export", "warning", f"no clock of {clocks}: {error}")
        return made
