"""A design by hand that takes every kind of cell that is read back, the answers that it gives, and its bitstream."""

import lzma
from functools import cache
from pathlib import Path

import numpy as np

from fpgaprune.fabric import cells_file
from fpgaprune.readback import Chip, Results, read_cells, read_chip
from fpgaprune.rtl import RtlLayer
from fpgaprune.values import FixedType

from ..by_hand import project_by_hand, stream_module

BOARD = "tang-nano-9k"
KEPT = Path(__file__).parent / "mixed.fs.xz"

_BODY = """\
    wire signed [7:0] a = s_axis_tdata[7:0];
    wire signed [7:0] b = s_axis_tdata[15:8];
    reg [3:0] state;
    assign s_axis_tready = state == 4'd0;

    // A block memory that is only read.
    reg [15:0] rom [0:1023];
    integer i;
    initial for (i = 0; i < 1024; i = i + 1) rom[i] = 16'd40503 * i + 16'd977;
    reg [15:0] read;
    always @(posedge clk) read <= rom[s_axis_tdata[9:0]];

    // A block memory that is written too.
    reg [8:0] ram [0:2047];
    initial for (i = 0; i < 2048; i = i + 1) ram[i] = 5 * i + 1;
    reg [8:0] was;
    always @(posedge clk) begin
        if (state == 4'd4) ram[s_axis_tdata[10:0]] <= was + a;
        was <= ram[s_axis_tdata[10:0]];
    end

    // A small memory of tables.
    reg [3:0] small [0:15];
    always @(posedge clk) if (s_axis_tvalid && s_axis_tready) small[b[3:0]] <= a[3:0];

    // Products of 9 and of 18 bits.
    reg signed [7:0] x, y;
    wire signed [15:0] product = x * y;
    wire signed [23:0] wide = $signed(was) * $signed({x, y});

    // Start values of 1 that no reset makes.
    reg [7:0] mark = 8'hb5;
    always @(posedge clk) if (state == 4'd9) mark <= {mark[6:0], mark[7]};

    always @(posedge clk)
        if (rst) begin
            state         <= 4'd0;
            m_axis_tvalid <= 1'b0;
        end else case (state)
            4'd0: if (s_axis_tvalid) begin
                state <= 4'd1;
                x     <= a;
                y     <= b;
            end
            4'd8: begin
                m_axis_tdata  <= {small[b[3:0]], 4'd9, mark, read ^ product, was[7:0] ^ wide[15:8], wide[7:0]};
                m_axis_tvalid <= 1'b1;
                m_axis_tlast  <= 1'b1;
                state         <= 4'd9;
            end
            4'd9: if (m_axis_tready) begin
                m_axis_tvalid <= 1'b0;
                state         <= 4'd0;
            end
            default: state <= state + 4'd1;
        endcase"""


def mixed_project(folder):
    """The project, written to `folder`."""
    layer = RtlLayer("mixed", "linear", ("rtl/mixed.v",), "2 -> 1", {"result": "fixed<48,48>"}, kept=2, dropped=0)
    modules = {"mixed": stream_module("mixed", 48, _BODY)}
    return project_by_hand(folder, "mixed", modules, (layer,), FixedType(48, 48))


RESULTS = Results(lanes=1, width=48, fraction=0, beat_bytes=6)


def samples(count, seed=1):
    """The bytes to send, and those that must come back."""
    sent = np.random.default_rng(seed).integers(0, 256, (count, 2)).astype(np.uint8)
    return sent.tobytes(), b"".join(answer(*map(int, row)).to_bytes(6, "little") for row in sent)


def signed(value, bits):
    """`value` in two's complement."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def answer(first, second):
    """What a freshly configured board answers."""
    a, b, whole = signed(first, 8), signed(second, 8), first | second << 8
    read = 40503 * (whole & 1023) + 977
    was = 5 * (whole & 2047) + 1 + first  # a sum with an unsigned number is one
    wide = signed(was, 9) * signed(first << 8 | second, 16)
    low = (was ^ wide >> 8) & 0xFF
    return (first & 15) << 44 | 9 << 40 | 0xB5 << 32 | ((read ^ a * b) & 0xFFFF) << 16 | low << 8 | wide & 0xFF


def kept_bitstream(folder, name="mixed"):
    """A bitstream that is kept beside this file, as a file in `folder` with the cells of synthesis beside it."""
    path = folder / f"{name}.fs"
    path.write_bytes(lzma.decompress(KEPT.with_name(f"{name}.fs.xz").read_bytes()))
    cells_file(path).write_bytes(KEPT.with_name(f"{name}.cells.xz").read_bytes())
    return path


@cache
def _rows(name, folder):
    return read_chip(kept_bitstream(folder, name), BOARD).rows


def kept_chip(folder, name="mixed"):
    """A fresh copy of the chip that a kept bitstream configures."""
    return Chip("GW1N-9C", [[*row] for row in _rows(name, folder)])


def kept_cells(name="mixed"):
    """The cells of synthesis of a kept bitstream."""
    return read_cells(KEPT.with_name(f"{name}.cells.xz"))
