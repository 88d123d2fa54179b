"""`Router`: what place and route needs to know of one family of devices beyond its table in `hw/synth`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fpgaprune.fabric.boards import Board
from fpgaprune.fabric.devices import Devices, devices_of
from fpgaprune.fabric.open_tools import OpenTool
from fpgaprune.target import Part

# Arguments: a yosys netlist as JSON data, its top module, the part, and most seconds.
Prepare = Callable[[dict[str, Any], str, Part, float], None]


@dataclass(frozen=True)
class Packing:
    """How a routed design becomes the file that configures a board.

    Attributes:
        tool: the tool that packs it.
        pins: returns the text of the file that ties ports to a board's pins.
        pins_file: name of that file.
        routing: nextpnr's options that read `pins_file` and write the routed design; `{clock_mhz}` is the board's.
        arguments: the tool's arguments, after those of the device.
        product: the file that the tool writes; loaders know it by the ending of its name.
        routed: the file in which nextpnr writes each cell with its place, if the bitstream can be read back.
    """

    tool: OpenTool
    pins: Callable[[Board], str]
    pins_file: str
    routing: tuple[str, ...]
    arguments: tuple[str, ...]
    product: str
    routed: str | None = None


@dataclass(frozen=True)
class Router:
    """How one family is placed and routed.

    A new family needs a file with its `Router`, which `fpgaprune.fabric.families` lists, and the table `place` in
    `hw/synth/{family}.toml`. A family with many rules of its own, as ECP5, has a folder for them.

    Attributes:
        family: name of its file in `hw/synth`.
        tool: its nextpnr.
        prepare: changes the netlist for one part before nextpnr reads it; None if nextpnr reads it as it is.
        made_by: returns the versions of everything that `prepare` depends on, which become part of the netlist's name;
            raises ToolError if a package that it needs is missing.
        packing: None if no bitstream can be made.
    """

    family: str
    tool: OpenTool
    prepare: Prepare | None = None
    made_by: Callable[[], tuple[str, ...]] = tuple
    packing: Packing | None = None

    @property
    def tools(self) -> tuple[OpenTool, ...]:
        """Every program that place and route and bitstreams run."""
        return (self.tool,) if self.packing is None else (self.tool, self.packing.tool)

    @property
    def devices(self) -> Devices:
        """The parts of the family."""
        return devices_of(self.family)
