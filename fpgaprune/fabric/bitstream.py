"""`make_bitstream`: a file that configures a board to compute a design over its serial line."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fpgaprune.documents import read_json
from fpgaprune.errors import RtlError, TargetError
from fpgaprune.fabric.boards import BAUD, TOP, board_top, find_board
from fpgaprune.fabric.cells import family_of
from fpgaprune.fabric.families import find_router
from fpgaprune.fabric.nextpnr import run_nextpnr
from fpgaprune.fabric.open_tools import find_open_tool
from fpgaprune.fabric.wrapped import digest_of, wrapped_netlist
from fpgaprune.files import write_bytes
from fpgaprune.processes import run_tool
from fpgaprune.rtl import VerilogProject
from fpgaprune.target import find_part, hardware_path

_RESULT = "bitstream.json"


@dataclass(frozen=True, slots=True)
class Bitstream:
    """A design on a board.

    Attributes:
        path: the `.bit` file.
        board, device: that it is for.
        baud: bits a second of the serial line.
        clock_mhz: of the board.
        fmax_mhz: that the design with its serial port reaches; above `clock_mhz`.
        in_bytes: of one sample.
        out_bytes: of one result.
    """

    path: Path
    board: str
    device: str
    baud: int
    clock_mhz: float
    fmax_mhz: float
    in_bytes: int
    out_bytes: int

    def to_json(self) -> dict[str, Any]:
        """Everything as JSON data."""
        plain = ("board", "device", "baud", "clock_mhz", "fmax_mhz", "in_bytes", "out_bytes")
        return {"path": str(self.path), **{name: getattr(self, name) for name in plain}}


def make_bitstream(
    project: VerilogProject,
    board: str | os.PathLike[str],
    output: str | os.PathLike[str],
    *,
    device: str | None = None,
    seed: int = 1,
    timeout_s: float = 3600.0,
    cache: str | os.PathLike[str] | None = None,
) -> Bitstream:
    """`output` configures the board to take samples and give results over its serial line, at the board's clock.

    A sample is sent beat by beat, each beat as whole bytes, lowest byte first; so is the result.

    Args:
        project: as `to_verilog` writes it; with one input and one output.
        board: name in `hw/boards`, or a TOML file like those there.
        output: the `.bit` file to write.
        device: FPGA on the board; the board file's unless given.
        seed: for place and route.
        timeout_s: most seconds for each tool.
        cache: as for `synthesize`.

    Raises:
        TargetError: the board or device is unknown, or the design does not fit.
        ToolError: a tool is missing, died or ran too long; its log is kept.
        RtlError: `output` is a folder, or the design is too slow for the board's clock; nothing is written.
    """
    if Path(output).is_dir():
        raise RtlError(f"bitstream {os.fspath(output)!r} is a folder; name a file, as {Path(output).name}.bit")
    place = find_board(board)
    part = find_part(device or place.device)
    router = find_router(family_of(part) or part.family)
    packing, devices = router.packing, router.devices
    if packing is None:
        raise TargetError(f"a bitstream for {devices.name} is not offered; wanted a board with another FPGA")
    devices.find(part.name)
    tool, packer = find_open_tool(router.tool), find_open_tool(packing.tool)
    router.made_by()  # A package that is missing is named before synthesis.
    uart = hardware_path("boards", "uart_stream.v").read_text(encoding="utf-8")
    verilog = board_top(project, place, uart)
    netlist = wrapped_netlist(project, router, TOP, verilog, cache=cache, timeout_s=timeout_s)
    devices.check_fits(project.name, netlist.cells, part)
    pins = packing.pins(place)
    options = (*devices.selecting(part, place.package, place.speed), *packing.routing)
    prepared = netlist.prepared(router, part, timeout_s)
    made_by = (tool.version, packer.version, prepared.name, pins)
    folder = netlist.folder / f"{part.name}-{digest_of(*made_by, *options, str(seed))}"
    if not (folder / _RESULT).is_file():
        write_bytes(folder / packing.pins_file, pins.encode())
        report = run_nextpnr(router.tool, tool, folder, prepared, options, seed, timeout_s)
        program, log = packing.tool.program, f"{packing.tool.program}.log"
        command = (*packer.command, *packing.arguments)
        run_tool(command, folder, timeout_s, name=program, log_name=log, product=packing.tool.product)
        write_bytes(folder / _RESULT, json.dumps({"fmax_mhz": report.fmax_mhz}).encode())
    fmax = float(_kept(folder / _RESULT))
    if fmax < place.clock_mhz:
        raise RtlError(
            f"{project.name} reaches {fmax:.1f} MHz on {part.name}, and the clock of {place.name} runs at "
            f"{place.clock_mhz:g} MHz; try another seed, or pipeline the design more deeply"
        )
    path = write_bytes(output, (folder / packing.arguments[-1]).read_bytes())
    return Bitstream(path, place.name, part.name, BAUD, place.clock_mhz, fmax, *_bytes(project))


def _kept(result: Path) -> Any:
    found = read_json(result, RtlError, "a record of place and route", "delete it")
    if not isinstance(found, dict) or not isinstance(found.get("fmax_mhz"), int | float):
        raise RtlError(f"{result} is not a record of place and route: it has no fmax_mhz; delete it")
    return found["fmax_mhz"]


def _bytes(project: VerilogProject) -> tuple[int, int]:
    sent, got = ((port.width_bits + 7) // 8 * port.beats for port in (project.inputs[0], project.outputs[0]))
    return sent, got
