"""`make_bitstream`: a file that configures a board to compute a design over its serial line."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msgspec import Struct

from fpgaprune.errors import RtlError, TargetError
from fpgaprune.fabric.beats import beat_bytes
from fpgaprune.fabric.board_advice import advise_board
from fpgaprune.fabric.boards import TOP, Board, board_top, find_board
from fpgaprune.fabric.cells import family_of
from fpgaprune.fabric.families import find_router
from fpgaprune.fabric.identity import digest_of_verilog
from fpgaprune.fabric.nextpnr import run_nextpnr
from fpgaprune.fabric.open_tools import YOSYS, Found, find_open_tools
from fpgaprune.fabric.placed import write_placed
from fpgaprune.fabric.pll import Pll, find_pll
from fpgaprune.fabric.records import digest_of, read_record, write_record
from fpgaprune.fabric.router import Packing, Router
from fpgaprune.fabric.wrapped import WrappedNetlist, wrapped_netlist
from fpgaprune.files import hardware_path, write_bytes
from fpgaprune.measure import RESOURCES, Cells, Resources, to_plain
from fpgaprune.processes import OnStep, countdown
from fpgaprune.rtl import VerilogProject
from fpgaprune.target import find_part, require_clock

_RESULT = "bitstream.json"


@dataclass(frozen=True, slots=True)
class Bitstream:
    """A design on a board.

    Attributes:
        path: the file, as `.bit` for an ECP5, `.fs` for a Gowin FPGA, `.bin` for an iCE40.
        board: the board that it configures.
        device: the FPGA on the board.
        baud: bits a second on the serial line.
        clock_mhz: frequency of the design's clock.
        fmax_mhz: frequency that the design reaches with its serial port; at least `clock_mhz`.
        in_bytes: bytes of one sample.
        out_bytes: bytes of one result.
        digest: what the board says of its design when it is asked.
        used: what the design takes on the device with its serial harness, after place and route.
        used_alone: the same without the harness.
        synthesised: what synthesis counts with the serial harness.
        synthesised_alone: what synthesis counts without the harness.
        load: the command that configures the board.
        note: what a user must do before the serial line works; empty if nothing.
        loaded: whether such a bitstream was ever loaded into a real board, as a sentence.
        pll: makes the design's clock; None if that is the oscillator's.
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
    used: Resources[int]
    used_alone: Resources[int]
    synthesised: Resources[int]
    synthesised_alone: Resources[int]
    load: str
    note: str
    loaded: str
    pll: Pll | None = None

    def speed(self, latency_cycles: int) -> str:
        """Say how many samples a second the board answers with a network of this latency, and what limits them."""
        wire_ms, core_ms = _milliseconds(self.in_bytes + self.out_bytes, self.baud, latency_cycles, self.clock_mhz)
        limit = "the serial line"
        if core_ms > wire_ms:
            limit = "the network" if self.fmax_mhz < 1.5 * self.clock_mhz else "the board's clock"
        return (
            f"about {1e3 / (wire_ms + core_ms):,.0f} samples a second, limited by {limit}: a sample takes "
            f"{wire_ms:.3g} ms on the line ({self.baud:,} baud) and {core_ms:.3g} ms in the network "
            f"({latency_cycles:,} cycles at {self.clock_mhz:g} of {self.fmax_mhz:.0f} MHz)"
        )

    def core_share(self, latency_cycles: int) -> float:
        """Return the share 0..1 of a sample's time that the network takes; the serial line takes the rest."""
        return core_share(self.in_bytes + self.out_bytes, self.baud, latency_cycles, self.clock_mhz)

    def to_json(self) -> dict[str, Any]:
        """Return everything as JSON data."""
        plain: dict[str, Any] = to_plain(self)
        return plain


def core_share(line_bytes: int, baud: int, latency_cycles: int, clock_mhz: float) -> float:
    """Return the share 0..1 of a sample's time that a network takes; its `line_bytes`, sent and got, take the rest."""
    wire_ms, core_ms = _milliseconds(line_bytes, baud, latency_cycles, clock_mhz)
    return core_ms / (wire_ms + core_ms)


def _milliseconds(line_bytes: int, baud: int, latency_cycles: int, clock_mhz: float) -> tuple[float, float]:
    """Return what a sample takes on the line, and in the network."""
    return 1e4 * line_bytes / baud, latency_cycles / (1e3 * clock_mhz)


class _Record(Struct):
    fmax_mhz: float
    used: Resources[int]
    used_alone: Resources[int]


def find_board_router(board: str | os.PathLike[str]) -> tuple[Board, Router, Packing]:
    """Return the board, what places and routes its FPGA, and what packs its bitstream.

    Raises:
        TargetError: the board is unknown, or no open tool makes bitstreams for its FPGA.
    """
    place = find_board(board)
    part = find_part(place.device)
    require_clock(1e3 / place.clock_mhz, part.family)
    router = find_router(family_of(part) or part.family)
    if router.packing is None:
        raise TargetError(f"fpgaprune makes no bitstream for {router.devices.name}; wanted a board with another FPGA")
    return place, router, router.packing


def find_board_tools(board: str | os.PathLike[str]) -> list[Found]:
    """Return the tools that make a bitstream for `board`: synthesis, place and route, and what packs it.

    Raises:
        TargetError: as for `find_board_router`.
        ToolError: some are missing; the message names all of them.
    """
    _, router, packing = find_board_router(board)
    found = find_open_tools(YOSYS, router.tool, packing.tool)
    router.made_by()  # Raises if a package is missing.
    return found


def bitstream_ending(board: str | os.PathLike[str]) -> str:
    """Return how the name of a bitstream for `board` ends, as `.bit`.

    Raises:
        TargetError: as for `find_board_router`.
    """
    return Path(find_board_router(board)[2].product).suffix


def crowding(
    project: VerilogProject,
    board: str | os.PathLike[str],
    *,
    timeout_s: float,
    cache: str | os.PathLike[str],
    on_step: OnStep,
) -> str | None:
    """Say of what `board`'s FPGA has too little to spare for place and route to end soon; None if it has enough.

    Synthesis counts the project with the serial port, and every kind of cell; `make_bitstream` finds its result in
    `cache`.

    Raises:
        TargetError, ToolError, RtlError: as for `make_bitstream`.
    """
    place, router, _ = find_board_router(board)
    on_step(0, 0, "synthesis")
    netlist = _netlist(project, place, router, cache, timeout_s)
    return router.devices.crowding(Cells.sum([netlist.cells, netlist.around]), find_part(place.device))


def _netlist(
    project: VerilogProject,
    place: Board,
    router: Router,
    cache: str | os.PathLike[str] | None,
    timeout_s: float,
    pll: Pll | None = None,
) -> WrappedNetlist:
    """Return the project with the board's serial port, synthesised."""
    uart = hardware_path("boards", "uart_stream.v").read_text(encoding="utf-8")
    verilog = board_top(project, place, uart, pll)
    return wrapped_netlist(project, router, TOP, verilog, cache=cache, timeout_s=timeout_s)


def board_pll(board: str | os.PathLike[str], most_mhz: float) -> Pll | None:
    """Find the fastest clock up to `most_mhz` that the FPGA's PLL makes of the board's oscillator; None without one.

    Raises:
        TargetError: as for `find_board_router`.
    """
    place, router, _ = find_board_router(board)
    kind = router.devices.pll
    return None if kind is None else find_pll(kind, place.clock_mhz, most_mhz, place.baud)


def make_bitstream(
    project: VerilogProject,
    board: str | os.PathLike[str],
    output: str | os.PathLike[str],
    *,
    device: str | None = None,
    seed: int = 1,
    timeout_s: float = 3600.0,
    cache: str | os.PathLike[str] | None = None,
    on_step: OnStep | None = None,
    advise: bool = True,
    pll: Pll | None = None,
) -> Bitstream:
    """Make the file that configures a board to take samples and to give results over its serial line, at its clock.

    Where the bitstream can be read back, the cells of synthesis and their places lie beside it (`cells_file`).

    A sample is sent beat by beat, each beat as whole bytes, the lowest byte first; so is the result.

    Args:
        project: as `to_verilog` writes it, with one input and one output.
        board: name in `hw/boards`, or a TOML file like those there.
        output: the file to write; its name ends as that of `Bitstream.path`.
        device: the FPGA on the board; the one in the board's file unless given.
        seed: seed of place and route.
        timeout_s: most seconds for all tools together.
        cache: as for `synthesize`.
        on_step: is told what the tools do; how many steps are left is not known, and both numbers are 0.
        pll: makes the design's clock, as `board_pll` gives it; the oscillator is its clock unless given.
        advise: find out, by synthesis for the FPGAs of other boards, which one would take a design that does not fit.

    Raises:
        TargetError: the board or the device is unknown, or the design does not fit; the message names a board of
            `hw/boards` that would take it, by what synthesis for that board's FPGA counts.
        ToolTimeoutError: the tools took longer; the one that ran was ended.
        ToolError: a tool is missing or died; its log is kept.
        RtlError: `output` is a folder or ends otherwise, or the design is too slow for the board's clock; nothing is
            written.
    """
    place, router, packing = find_board_router(board)
    ending = Path(packing.product).suffix
    if Path(output).is_dir():
        raise RtlError(f"bitstream {os.fspath(output)!r} is a folder; name a file, as {Path(output).name}{ending}")
    if Path(output).suffix != ending:
        raise RtlError(f"bitstream {os.fspath(output)!r} for {place.name}: its name must end in {ending}")
    devices = router.devices
    part = devices.find(device or place.device)
    _, tool, packer = find_board_tools(board)
    tell = on_step or (lambda *_: None)
    left = countdown(timeout_s)
    tell(0, 0, "synthesis")
    netlist = _netlist(project, place, router, cache, left(), pll)
    clock_mhz = place.clock_mhz if pll is None else pll.clock_mhz
    home = project.path / "synth" if cache is None else Path(cache)
    whole = Cells.sum([netlist.cells, netlist.around])
    try:
        devices.check_fits(project.name, whole, part)
    except TargetError as error:
        if not advise:
            raise
        advice = advise_board(project, router.family, whole, home, left())
        raise TargetError(f"{error}; {advice}") from None
    pins = packing.pins(place)
    routing = (option.format(clock_mhz=clock_mhz) for option in packing.routing)
    options = (*devices.selecting(part, place.package, place.speed, whole), *routing)
    prepared = netlist.prepared(router, part, left())
    made_by = (tool.version, packer.version, prepared.name, pins)
    folder = netlist.folder / f"{part.name}-{digest_of(*made_by, *options, str(seed))}"
    if not (folder / _RESULT).is_file():
        write_bytes(folder / packing.pins_file, pins.encode())
        report = run_nextpnr(tool, folder, prepared, options, seed, left(), on_step=tell)
        tell(0, 0, f"bitstream by {packing.tool.program}")
        arguments = (*devices.devices[part.name].packing, *packing.arguments)
        packer.run(arguments, folder, left(), f"{packing.tool.program}.log")
        used = Resources(**devices.used(report.sites, Cells(), whole))
        alone = Resources(**devices.used(report.sites, netlist.around, netlist.cells))
        write_record(folder / _RESULT, _Record(report.fmax_mhz, used, alone))
    found = read_record(folder / _RESULT, _Record, "a record of place and route", "delete it")
    fmax = found.fmax_mhz
    if fmax < clock_mhz:
        raise RtlError(
            f"{project.name} reaches {fmax:.1f} MHz on {part.name}, and the clock of {place.name} runs at "
            f"{clock_mhz:g} MHz; try another seed, or pipeline the design more deeply"
        )
    path = write_bytes(output, (folder / packing.product).read_bytes())
    if packing.routed is not None:
        write_placed(netlist.joined, folder / packing.routed, TOP, path)
    sent, got = (beat_bytes(port) * port.beats for port in (project.inputs[0], project.outputs[0]))
    return Bitstream(
        path,
        place.name,
        part.name,
        place.baud,
        clock_mhz,
        fmax,
        sent,
        got,
        digest_of_verilog(project),
        found.used,
        found.used_alone,
        _counts(whole),
        _counts(netlist.cells),
        place.load,
        place.note,
        place.was_loaded,
        pll,
    )


def _counts(cells: Cells) -> Resources[int]:
    return Resources(**{name: cells[name] for name in RESOURCES})
