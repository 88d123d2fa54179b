"""`RtlProject`: the Verilog of a design; its methods run tools on it."""

from __future__ import annotations

import os
from typing import Any

from fpgaprune import rtl
from fpgaprune.design import Design
from fpgaprune.fabric.bitstream import Bitstream, make_bitstream
from fpgaprune.fabric.place import place_and_route
from fpgaprune.fabric.simulation import Simulation, simulate
from fpgaprune.fabric.synthesis import synthesize
from fpgaprune.measure import PlaceAndRoute, Synthesis


class RtlProject(rtl.VerilogProject):
    """A Verilog project whose methods run the tools; each method is also a function of this package."""

    def simulate(self, x: Any, **options: Any) -> Simulation:
        """What the Verilog computes for `x`, cycle by cycle; see `fpgaprune.fabric.simulate`."""
        return simulate(self, x, **options)

    def synthesize(self, family: str, **options: Any) -> Synthesis:
        """What each layer and the whole design take on devices of `family`; see `fpgaprune.fabric.synthesize`."""
        return synthesize(self, family, **options)

    def place_and_route(self, family: str = "ecp5", device: str | None = None, **options: Any) -> PlaceAndRoute:
        """What the project takes on a device, and its clock frequency; see `fpgaprune.fabric.place_and_route`."""
        return place_and_route(self, family, device, **options)

    def make_bitstream(self, board: str, output: str | os.PathLike[str], **options: Any) -> Bitstream:
        """A file that configures `board` to compute what the project does; see `fpgaprune.fabric.make_bitstream`."""
        return make_bitstream(self, board, output, **options)


def to_verilog(
    design: Design, output_dir: str | os.PathLike[str], *, options: rtl.Options | None = None, **changes: Any
) -> RtlProject:
    """`output_dir` holds the design as Verilog-2001, bit-exact with `emulate`, and `project.json` lists the files.

    Every layer is a module in a file of its own, or in several files if one would be too long. Streams are AXI4-Stream:
    a beat is one pixel with all its channels, channel 0 in the lowest bits, as raw integers of the layer's type. The
    same design and options give the same bytes.

    Args:
        design: the network to compute.
        output_dir: is made if it is missing; solved adders are kept in its `cache` unless the options name a folder.
        options: how the Verilog is written; the defaults unless given.
        **changes: single fields of `Options`, as `adders="plain"`.

    Raises:
        UnsupportedLayerError: a layer has no Verilog; the message names it, and nothing is written.
        DesignError: as for `emulate`.
        RtlError: options do not fit the design.
        ToolError: the chosen solver is missing or failed.
    """
    return RtlProject(**vars(rtl.to_verilog(design, output_dir, options=options, **changes)))
