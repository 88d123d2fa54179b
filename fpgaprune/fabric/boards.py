"""`Board`: the pins of a development board that a design with a serial port needs, from `hw/boards`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

from fpgaprune.documents import read_toml
from fpgaprune.errors import TargetError
from fpgaprune.rtl import VerilogProject
from fpgaprune.target import hardware_path

TOP = "fpgaprune_board"
BAUD = 1_000_000
_PINS = ("clk", "serial_in", "serial_out")


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
        pins: `clk`, `serial_in` and `serial_out` -> their sites.
        high: pins that must be held high -> their sites.
    """

    name: str
    source: str
    date: str
    device: str
    package: str
    speed: int
    clock_mhz: float
    io_type: str
    pins: Mapping[str, str]
    high: Mapping[str, str] = {}


def find_board(board: str | os.PathLike[str]) -> Board:
    """The board of that name in `hw/boards`, or the board that a TOML file describes.

    Raises:
        TargetError: the name is unknown, or the file has another form.
    """
    path = Path(board)
    if path.suffix != ".toml":
        path = hardware_path("boards", f"{board}.toml")
    try:
        document = read_toml(path, TargetError, "board file", "see hw/boards for the form")
    except FileNotFoundError:
        known = ", ".join(sorted(p.stem for p in hardware_path("boards").glob("*.toml")))
        raise TargetError(f"board {str(board)!r} is unknown; wanted a TOML file or one of {known}") from None
    try:
        found = msgspec.convert(document, Board)
    except msgspec.ValidationError as error:
        raise TargetError(f"board file {path}: {error}; see hw/boards for the form") from None
    if sorted(found.pins) != sorted(_PINS):
        raise TargetError(f"board file {path} has pins {', '.join(found.pins)}; wanted {', '.join(_PINS)}")
    return found


def board_top(project: VerilogProject, board: Board, uart: str) -> str:
    """Verilog of module `TOP`: it joins `project` to the pins of `board` through `uart`, the text of uart_stream.v.

    Raises:
        TargetError: the project has several inputs or outputs, or a bit of the serial line takes no whole number of
            cycles.
    """
    if len(project.inputs) != 1 or len(project.outputs) != 1:
        raise TargetError(
            f"{project.name} has {len(project.inputs)} inputs and {len(project.outputs)} outputs; "
            "a serial line carries one of each"
        )
    divider = board.clock_mhz * 1e6 / BAUD
    if divider < 4 or abs(divider - round(divider)) > 0.02 * divider:
        raise TargetError(f"board {board.name}: {board.clock_mhz:g} MHz is no multiple of {BAUD:,} bits a second")
    source, sink = project.inputs[0], project.outputs[0]
    held = "".join(f",\n    output wire {name}" for name in board.high)
    levels = "".join(f"    assign {name} = 1'b1;\n" for name in board.high)
    return f"""// {project.name} on {board.name}: samples and results go over a serial line of {BAUD:,} bits a second.
module {TOP} (
    input  wire clk,
    input  wire serial_in,
    output wire serial_out{held}
);
{levels}    wire rst, in_tvalid, in_tready, in_tlast, out_tvalid, out_tready, out_tlast;
    wire [{source.width_bits - 1}:0] in_tdata;
    wire [{sink.width_bits - 1}:0] out_tdata;
    uart_stream #(
        .DIVIDER({round(divider)}), .IN_BITS({source.width_bits}), .OUT_BITS({sink.width_bits}), .BEATS({source.beats})
    ) link (
        .clk(clk), .serial_in(serial_in), .serial_out(serial_out), .design_rst(rst),
        .to_design_tdata(in_tdata), .to_design_tvalid(in_tvalid), .to_design_tready(in_tready),
        .to_design_tlast(in_tlast), .from_design_tdata(out_tdata), .from_design_tvalid(out_tvalid),
        .from_design_tready(out_tready)
    );
    {project.top} network (
        .clk(clk), .rst(rst),
        .{source.prefix}_tdata(in_tdata), .{source.prefix}_tvalid(in_tvalid), .{source.prefix}_tready(in_tready),
        .{source.prefix}_tlast(in_tlast), .{sink.prefix}_tdata(out_tdata), .{sink.prefix}_tvalid(out_tvalid),
        .{sink.prefix}_tready(out_tready), .{sink.prefix}_tlast(out_tlast)
    );
endmodule

{uart}"""
