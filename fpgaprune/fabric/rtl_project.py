"""`RtlProject`: the Verilog of a design; its methods run tools on it."""

from __future__ import annotations

import os
from typing import Any

from fpgaprune import rtl
from fpgaprune.design import Design, VerilogLayout
from fpgaprune.fabric.bitstream import Bitstream, make_bitstream
from fpgaprune.fabric.place import place_and_route
from fpgaprune.fabric.simulation import Simulation, simulate
from fpgaprune.fabric.synthesis import synthesize
from fpgaprune.measure import PlaceAndRoute, Synthesis


class RtlProject(rtl.VerilogProject):
    """A Verilog project whose methods run the tools; each method is also a function of this package."""

    def simulate(self, x: Any, **options: Any) -> Simulation:
        """Return what the Verilog computes for `x`, cycle by cycle; see `fpgaprune.fabric.simulate`."""
        return simulate(self, x, **options)

    def synthesize(self, family: str, **options: Any) -> Synthesis:
        """Count what each layer and the design take on devices of `family`; see `fpgaprune.fabric.synthesize`."""
        return synthesize(self, family, **options)

    def place_and_route(self, family: str = "ecp5", device: str | None = None, **options: Any) -> PlaceAndRoute:
        """Place and route the project: what it takes, and its clock; see `fpgaprune.fabric.place_and_route`."""
        return place_and_route(self, family, device, **options)

    def make_bitstream(self, board: str, output: str | os.PathLike[str], **options: Any) -> Bitstream:
        """Make a file that configures `board` with the project; see `fpgaprune.fabric.make_bitstream`."""
        return make_bitstream(self, board, output, **options)


def to_verilog(
    design: Design,
    output_dir: str | os.PathLike[str],
    *,
    layout: VerilogLayout | None = None,
    cache: str | os.PathLike[str] | None = None,
    solver_seconds: float = 600.0,
    **changes: object,
) -> RtlProject:
    """Write the design as Verilog-2001, bit-exact with `emulate`, to `output_dir`; `project.json` lists the files.

    Every layer is a module in a file of its own, or in several where one would be too long. Streams are AXI4-Stream,
    one pixel of all channels a beat, raw integers of the type of the layer at that end, channel 0 in the lowest bits.
    The same design and layout give the same bytes.

    Args:
        design: what is to be computed.
        output_dir: is made.
        layout: how; the defaults unless given.
        cache: folder in which solved adders are kept by content; `cache` in `output_dir` unless given.
        solver_seconds: wall-clock limit of one run of da4ml; `shared` adders stand in beyond it.
        **changes: single fields of `VerilogLayout`, as `interval=4000`.

    Raises:
        UnsupportedLayerError: a layer has no Verilog; the message names it, and nothing is written.
        DesignError: as for `emulate`.
        RtlError: the layout does not fit the design.
        ToolError: the chosen solver is missing or failed.

    Examples:
        >>> project = fp.to_verilog(fp.make_design(model, target, x), "verilog")
        >>> (project.path / "project.json").is_file()
        True
    """
    made = rtl.to_verilog(design, output_dir, layout=layout, cache=cache, solver_seconds=solver_seconds, **changes)
    return RtlProject(**vars(made))
