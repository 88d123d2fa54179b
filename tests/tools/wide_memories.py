"""A design by hand with a table and a memory of words as wide as two ports of a block memory, and its answers."""

import numpy as np

from fpgaprune.rtl import RtlLayer
from fpgaprune.values import FixedType

from ..unit.by_hand import project_by_hand, stream_module

_BODY = """\
    localparam WIDTH = {width};
    wire [7:0] a = s_axis_tdata[7:0];
    wire [7:0] b = s_axis_tdata[15:8];
    reg  [3:0] state;
    assign s_axis_tready = state == 4'd8;
    integer i;

    reg [WIDTH-1:0] rom [0:511];
    initial for (i = 0; i < 512; i = i + 1) rom[i] = {rom_factor} * i + 77;
    reg [WIDTH-1:0] read;
    always @(posedge clk) read <= rom[{{1'b1, b}}];

    // Written at one address, and read at another.
    reg [WIDTH-1:0] ram [0:511];
    initial for (i = 0; i < 512; i = i + 1) ram[i] = {ram_factor} * i + 5;
    reg [WIDTH-1:0] was;
    always @(posedge clk) begin
        if (state == 4'd4) ram[{{1'b0, a}}] <= read;
        was <= ram[{{1'b0, b}}];
    end

    always @(posedge clk)
        if (rst) begin
            state         <= 4'd0;
            m_axis_tvalid <= 1'b0;
        end else case (state)
            4'd0: if (s_axis_tvalid) state <= 4'd1;
            4'd7: begin
                m_axis_tdata  <= was + {{read, 1'b1}};
                m_axis_tvalid <= 1'b1;
                m_axis_tlast  <= 1'b1;
                state         <= 4'd8;
            end
            4'd8: state <= 4'd9;
            4'd9: if (m_axis_tready) begin
                m_axis_tvalid <= 1'b0;
                state         <= 4'd0;
            end
            default: state <= state + 4'd1;
        endcase"""
_ROM, _RAM = 130_363, 94_907


def wide_project(folder, width):
    """The project with words of `width` bits, written to `folder`."""
    body = _BODY.format(width=width, rom_factor=_ROM, ram_factor=_RAM)
    layer = RtlLayer("wide", "linear", ("rtl/wide.v",), "2 -> 1", {"result": "fixed<40,40>"}, kept=2, dropped=0)
    modules = {"wide": stream_module("wide", 40, body)}
    return project_by_hand(folder, "wide", modules, (layer,), FixedType(40, 40))


def wide_samples(count, width):
    """The bytes to send, and those that must come back; every third sample reads what it wrote."""
    sent = np.random.default_rng(5).integers(0, 256, (count, 2)).astype(np.uint8)
    sent[::3, 1] = sent[::3, 0]
    return sent.tobytes(), b"".join(_answer(int(a), int(b), width).to_bytes(5, "little") for a, b in sent)


def _answer(a, b, width):
    read = (_ROM * (256 + b) + 77) % 2**width
    was = read if a == b else (_RAM * b + 5) % 2**width
    return (was + 2 * read + 1) % 2**40
