"""`make_bitstream`: a file that configures an ECP5 board to compute a design over its serial line."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fpgaprune.documents import read_json
from fpgaprune.errors import FpgaPruneError, RtlError, ToolError, shown
from fpgaprune.fabric.boards import BAUD, TOP, board_top, find_board
from fpgaprune.fabric.ecp5.family import (
    PLACER,
    anchored_netlist,
    check_fits,
    device_flag,
    digest_of,
    ecp5_netlist,
    find_ecp5,
)
from fpgaprune.fabric.ecp5.floorplan import partitioner
from fpgaprune.fabric.open_tools import ECPPACK, NEXTPNR_ECP5, find_open_tool
from fpgaprune.files import write_bytes
from fpgaprune.processes import run_tool
from fpgaprune.rtl.project import VerilogProject
from fpgaprune.target import hardware_path

_RESULT = "bitstream.json"


@dataclass(frozen=True, slots=True)
class Bitstream:
    """A design on a board.

    Attributes:
        path: the `.bit` file. board, device: that it is for. baud: bits a second of the serial line.
        clock_mhz: of the board. fmax_mhz: that the design with its serial port reaches; above `clock_mhz`.
        in_bytes: of one sample. out_bytes: of one result.
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
    part = find_ecp5(device or place.device)
    router, packer = find_open_tool(NEXTPNR_ECP5), find_open_tool(ECPPACK)
    partitioner()  # Named before synthesis where it is missing.
    uart = hardware_path("boards", "uart_stream.v").read_text(encoding="utf-8")
    netlist = ecp5_netlist(project, TOP, board_top(project, place, uart), cache=cache, timeout_s=timeout_s)
    check_fits(project, netlist.cells, part)
    constraints = place.constraints()
    options = (device_flag(part), "--package", place.package, "--speed", str(place.speed), "--seed", str(seed), *PLACER)
    anchored = anchored_netlist(netlist, part, timeout_s)
    made_by = (router.version, packer.version, anchored.name, constraints)
    folder = netlist.folder / f"{part.name}-{digest_of(*made_by, *options)}"
    if not (folder / _RESULT).is_file():
        write_bytes(folder / "board.lpf", constraints.encode())
        files = (
            "--json",
            f"../{anchored.name}",
            "--lpf",
            "board.lpf",
            "--textcfg",
            "board.config",
            "--report",
            "route.json",
        )
        for tool, command in (
            (NEXTPNR_ECP5, (*router.command, *options, "--timing-allow-fail", *files)),
            (ECPPACK, (*packer.command, "board.config", "board.bit")),
        ):
            log = f"{tool.program}.log"
            run_tool(command, folder, timeout_s, name=tool.program, log_name=log, product=tool.product)
        write_bytes(folder / _RESULT, json.dumps({"fmax_mhz": _fmax(folder / "route.json")}).encode())
    fmax = float(_kept(folder / _RESULT))
    if fmax < place.clock_mhz:
        raise RtlError(
            f"{project.name} reaches {fmax:.1f} MHz on {part.name}, and the clock of {place.name} runs at "
            f"{place.clock_mhz:g} MHz; try another seed, or pipeline the design more deeply"
        )
    path = write_bytes(output, (folder / "board.bit").read_bytes())
    return Bitstream(path, place.name, part.name, BAUD, place.clock_mhz, fmax, *_bytes(project))


def _kept(result: Path) -> Any:
    found = read_json(result, RtlError, "a record of place and route", "delete it")
    if not isinstance(found, dict) or not isinstance(found.get("fmax_mhz"), int | float):
        raise RtlError(f"{result} is not a record of place and route: it has no fmax_mhz; delete it")
    return found["fmax_mhz"]


def _fmax(report: Path) -> float:
    try:
        found = read_json(report, RtlError, "a report of nextpnr", "run it again", strict=False)
        (clock,) = found["fmax"].values()
        return round(float(clock["achieved"]), 2)
    except FileNotFoundError:
        raise ToolError(f"nextpnr ended without its report in {report.parent}; its log is there") from None
    except FpgaPruneError:
        raise
    except (AttributeError, LookupError, OverflowError, TypeError, ValueError) as error:
        raise RtlError(f"{report} is no report of nextpnr on one clock: {shown(error)}") from error


def _bytes(project: VerilogProject) -> tuple[int, int]:
    sent, got = ((port.width_bits + 7) // 8 * port.beats for port in (project.inputs[0], project.outputs[0]))
    return sent, got
