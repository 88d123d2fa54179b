"""`make_bitstream`: a file that configures a board to compute a design over its serial line."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msgspec import Struct

from fpgaprune.errors import RtlError, TargetError
from fpgaprune.fabric.beats import beat_bytes
from fpgaprune.fabric.boards import TOP, board_top, find_board
from fpgaprune.fabric.cells import family_of
from fpgaprune.fabric.families import find_router
from fpgaprune.fabric.identity import digest_of_verilog
from fpgaprune.fabric.nextpnr import run_nextpnr
from fpgaprune.fabric.open_tools import find_open_tool
from fpgaprune.fabric.records import digest_of, read_record, write_record
from fpgaprune.fabric.wrapped import wrapped_netlist
from fpgaprune.files import write_bytes
from fpgaprune.measure import to_plain
from fpgaprune.rtl import VerilogProject
from fpgaprune.target import find_part, hardware_path

_RESULT = "bitstream.json"


@dataclass(frozen=True, slots=True)
class Bitstream:
    """A design on a board.

    Attributes:
        path: the `.bit` file.
        board: the board that it configures.
        device: the FPGA on the board.
        baud: bits a second on the serial line.
        clock_mhz: frequency of the board's clock.
        fmax_mhz: frequency that the design reaches with its serial port; at least `clock_mhz`.
        in_bytes: bytes of one sample.
        out_bytes: bytes of one result.
        digest: what the board says of its design when it is asked.
    """

    path: Path
    board: str
    device: str
    baud: int
    clock_mhz: float
    fmax_mhz: float
    in_bytes: int
    out_bytes: int
    digest: str

    def to_json(self) -> dict[str, Any]:
        """Everything as JSON data."""
        plain: dict[str, Any] = to_plain(self)
        return plain


class _Record(Struct):
    fmax_mhz: float


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
    """`output` configures the board to take samples and to give results over its serial line, at the board's clock.

    A sample is sent beat by beat, each beat as whole bytes, the lowest byte first; so is the result.

    Args:
        project: as `to_verilog` writes it, with one input and one output.
        board: name in `hw/boards`, or a TOML file like those there.
        output: the `.bit` file to write.
        device: the FPGA on the board; the one in the board's file unless given.
        seed: seed of place and route.
        timeout_s: most seconds for each tool.
        cache: as for `synthesize`.

    Raises:
        TargetError: the board or the device is unknown, or the design does not fit.
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
        raise TargetError(f"fpgaprune makes no bitstream for {devices.name}; wanted a board with another FPGA")
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
        report = run_nextpnr(tool, folder, prepared, options, seed, timeout_s)
        packer.run(packing.arguments, folder, timeout_s, f"{packing.tool.program}.log")
        write_record(folder / _RESULT, _Record(report.fmax_mhz))
    fmax = read_record(folder / _RESULT, _Record, "a record of place and route", "delete it").fmax_mhz
    if fmax < place.clock_mhz:
        raise RtlError(
            f"{project.name} reaches {fmax:.1f} MHz on {part.name}, and the clock of {place.name} runs at "
            f"{place.clock_mhz:g} MHz; try another seed, or pipeline the design more deeply"
        )
    path = write_bytes(output, (folder / packing.arguments[-1]).read_bytes())
    sent, got = (beat_bytes(port) * port.beats for port in (project.inputs[0], project.outputs[0]))
    digest = digest_of_verilog(project)
    return Bitstream(path, place.name, part.name, place.baud, place.clock_mhz, fmax, sent, got, digest)
