"""`Board`: what a design with a serial port needs to know of a development board, from `hw/boards`."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from pathlib import Path

import msgspec
from msgspec import structs

from fpgaprune.errors import TargetError
from fpgaprune.fabric.identity import identity_of
from fpgaprune.fabric.pll import Pll
from fpgaprune.files import hardware_path, read_toml, shipped_names
from fpgaprune.rtl import VerilogProject
from fpgaprune.target import serial_board

TOP = "fpgaprune_board"
BAUD = 1_000_000
_PINS = ("clk", "serial_in", "serial_out")
# A pause of about this length within a sample gives it up.
_PAUSE_S = 0.04


class Board(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A board with an FPGA, a clock and a serial line.

    Attributes:
        name: its name.
        source: the document that states the pins.
        date: the day on which the file was written.
        device: the FPGA that the board is usually sold with.
        package: the FPGA's package.
        speed: the FPGA's speed grade.
        clock_mhz: frequency of the oscillator at pin `clk`.
        io_type: electrical standard of the pins.
        load: command that configures the board until it is switched off; `{file}` is the bitstream.
        pins: `clk`, `serial_in` and `serial_out` -> their sites.
        high: pins that must be held high -> their sites.
        baud: bits a second on the serial line.
        usb: vendor and product of the board's serial chip, as `0403:6015`; None if it has none, or is not known.
        usb_interface: the chip's interface that is the serial line, from 0; None if it has only one.
        note: what a user must do before the serial line works.
        loaded: the day on which a bitstream of ours was loaded into a real board; None if that never happened.
    """

    name: str
    source: str
    date: str
    device: str
    package: str
    clock_mhz: float
    io_type: str
    load: str
    pins: Mapping[str, str]
    high: Mapping[str, str] = {}
    speed: int | None = None
    baud: int = BAUD
    usb: str | None = None
    usb_interface: int | None = None
    note: str = ""
    loaded: str | None = None

    @property
    def was_loaded(self) -> str:
        """Whether a bitstream of ours was ever loaded into a real board, as a sentence."""
        if self.loaded is None:
            return (
                f"no bitstream of fpgaprune was ever loaded into a real {self.name}: pins and timing were never tried"
            )
        return f"a bitstream of fpgaprune was loaded into a real {self.name} on {self.loaded}"


def _pause_bits(clock_mhz: float) -> int:
    """Return log2 of the cycles, some 40 ms, of a pause that gives a sample up."""
    return round(math.log2(clock_mhz * 1e6 * _PAUSE_S))


def _locking(pll: Pll) -> str:
    return f"""    wire clock, locked;
{pll.verilog()}    reg [1:0] steady = 2'b00;
    always @(posedge clock) steady <= {{steady[0], locked}};
"""


def list_serial_boards() -> tuple[str, ...]:
    """Return the names of the boards in `hw/boards`."""
    return shipped_names("boards", ".toml")


def is_serial_board(name: str) -> bool:
    """Return whether `name` means a board of `hw/boards`: in any case, without dashes, or as one of its variants."""
    return serial_board(name) is not None


def find_board(board: str | os.PathLike[str]) -> Board:
    """Find a board of `hw/boards` by its name, or read it from a TOML file.

    Raises:
        TargetError: the name is unknown, or the file has another form.
    """
    path, variant = Path(board), None
    if path.suffix != ".toml":
        name, variant = serial_board(str(board)) or (str(board), None)
        path = hardware_path("boards", f"{name}.toml")
    try:
        document = read_toml(path, TargetError, "board file", "see hw/boards for the form")
    except FileNotFoundError:
        known = ", ".join(list_serial_boards())
        raise TargetError(f"board {str(board)!r} is unknown; wanted a TOML file or one of {known}") from None
    try:
        found = msgspec.convert(document, Board)
    except msgspec.ValidationError as error:
        raise TargetError(f"board file {path}: {error}; see hw/boards for the form") from None
    if sorted(found.pins) != sorted(_PINS):
        raise TargetError(f"board file {path} has pins {', '.join(found.pins)}; wanted {', '.join(_PINS)}")
    if not found.clock_mhz > 0:
        raise TargetError(f"board file {path}: clock_mhz is {found.clock_mhz:g}; wanted a number above 0")
    return found if variant is None else structs.replace(found, device=variant)


def _takes_slowly(project: VerilogProject) -> bool:
    """Return whether the network may take its inputs more slowly than the line brings them: a step at a time."""
    return any(Path(name).name == "fp_recurrent.v" for name in project.files)


def board_top(project: VerilogProject, board: Board, uart: str, pll: Pll | None = None) -> str:
    """Write Verilog of module `TOP`: it joins `project` to a board's pins through `uart`, the text of uart_stream.v.

    The clock is that of the board's oscillator, or that of `pll`.

    Raises:
        TargetError: the project has several inputs or outputs, or takes loads of weights, or a bit of the serial line
            takes no whole number of cycles.
        RtlError: a file of the project is missing.
    """
    if project.loads is not None:
        raise TargetError(
            f"{project.name} takes loads of weights, which a serial line does not carry; write its Verilog without "
            "loadable, or take a board with AXI (pynq-z2, zcu104, kv260, ultra96v2)"
        )
    identity = identity_of(project)
    clock_mhz = board.clock_mhz if pll is None else pll.clock_mhz
    divider = clock_mhz * 1e6 / board.baud
    if divider < 4 or abs(divider - round(divider)) > 0.02 * divider:
        raise TargetError(f"board {board.name}: {clock_mhz:g} MHz is no multiple of {board.baud:,} bits a second")
    source, sink = identity.source, identity.sink
    told = identity.to_bytes()
    held = "".join(f",\n    output wire {name}" for name in board.high)
    levels = "".join(f"    assign {name} = 1'b1;\n" for name in board.high)
    # Until the PLL is locked, the clock is none.
    clock, hold, locking = ("clk", "1'b0", "") if pll is None else ("clock", "!steady[1]", _locking(pll))
    return f"""// {project.name} on {board.name}: samples and results over a serial line of {board.baud:,} baud.
module {TOP} (
    input  wire clk,
    input  wire serial_in,
    output wire serial_out{held}
);
{levels}{locking}    wire rst, in_tvalid, in_tready, in_tlast, out_tvalid, out_tready, out_tlast;
    wire [{source.width_bits - 1}:0] in_tdata;
    wire [{sink.width_bits - 1}:0] out_tdata;
    uart_stream #(
        .DIVIDER({round(divider)}), .IN_BITS({source.width_bits}), .OUT_BITS({sink.width_bits}), .BEATS({source.beats}),
        .PAUSE_BITS({_pause_bits(clock_mhz)}), .KEEP({int(_takes_slowly(project))}), .IDENTITY_BYTES({len(told)}),
        .IDENTITY({8 * len(told)}'h{told[::-1].hex()})
    ) link (
        .clk({clock}), .hold({hold}), .serial_in(serial_in), .serial_out(serial_out), .design_rst(rst),
        .to_design_tdata(in_tdata), .to_design_tvalid(in_tvalid), .to_design_tready(in_tready),
        .to_design_tlast(in_tlast), .from_design_tdata(out_tdata), .from_design_tvalid(out_tvalid),
        .from_design_tready(out_tready)
    );
    {project.top} network (
        .clk({clock}), .rst(rst),
        .{source.prefix}_tdata(in_tdata), .{source.prefix}_tvalid(in_tvalid), .{source.prefix}_tready(in_tready),
        .{source.prefix}_tlast(in_tlast), .{sink.prefix}_tdata(out_tdata), .{sink.prefix}_tvalid(out_tvalid),
        .{sink.prefix}_tready(out_tready), .{sink.prefix}_tlast(out_tlast)
    );
endmodule

{uart}"""
