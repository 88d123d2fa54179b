"""A design by hand with memories of 4, 2 and 1 bits a word and a product between registers, and its answers."""

import numpy as np

from fpgaprune.rtl import RtlLayer
from fpgaprune.values import FixedType

from ..unit.by_hand import project_by_hand, stream_module

_BODY = """\
    wire signed [7:0] a = s_axis_tdata[7:0];
    wire signed [7:0] b = s_axis_tdata[15:8];
    reg  [3:0] state;
    assign s_axis_tready = state == 4'd8;
    integer i;

    // Words of 4, 2 and 1 bits; each is written at one address and read at that and at another.
    reg [3:0] four [0:4095];
    reg [1:0] two  [0:8191];
    reg       one  [0:16383];
    initial begin
        for (i = 0; i < 4096; i = i + 1) four[i] = 11 * i + (i >> 5);
        for (i = 0; i < 8192; i = i + 1) two[i] = 3 * i + (i >> 7);
        for (i = 0; i < 16384; i = i + 1) one[i] = i ^ (i >> 3) ^ (i >> 9);
    end
    reg [3:0] was4;
    reg [1:0] was2;
    reg       was1;
    wire [15:0] place = state < 4'd5 ? {b, a} : {a, b};
    always @(posedge clk) begin
        if (state == 4'd4) begin
            four[place[11:0]] <= a[3:0];
            two[place[12:0]]  <= a[1:0];
            one[place[13:0]]  <= a[0];
        end
        was4 <= four[place[11:0]];
        was2 <= two[place[12:0]];
        was1 <= one[place[13:0]];
    end

    // Registers that a multiplier may hold.
    reg signed [7:0] p, q;
    reg signed [15:0] product;
    always @(posedge clk) begin
        p       <= a;
        q       <= b;
        product <= p * q;
    end

    always @(posedge clk)
        if (rst) begin
            state         <= 4'd0;
            m_axis_tvalid <= 1'b0;
        end else case (state)
            4'd0: if (s_axis_tvalid) state <= 4'd1;
            4'd7: begin
                m_axis_tdata  <= {product, was4, was2, was1, 1'b1};
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


def narrow_project(folder):
    """The project, written to `folder`."""
    layer = RtlLayer("narrow", "linear", ("rtl/narrow.v",), "2 -> 1", {"result": "fixed<24,24>"}, kept=2, dropped=0)
    modules = {"narrow": stream_module("narrow", 24, _BODY)}
    return project_by_hand(folder, "narrow", modules, (layer,), FixedType(24, 24))


def narrow_samples(count):
    """The bytes to send, and those that must come back; every third sample reads what it wrote."""
    sent = np.random.default_rng(5).integers(0, 256, (count, 2)).astype(np.uint8)
    sent[::3, 1] = sent[::3, 0]
    return sent.tobytes(), b"".join(_answer(int(a), int(b)).to_bytes(3, "little") for a, b in sent)


def _answer(a, b):
    written, read = b << 8 | a, a << 8 | b

    def was(bits, words, start):
        same = written % words == read % words
        return (a if same else start(read % words)) % 2**bits

    four = was(4, 4096, lambda i: 11 * i + (i >> 5))
    two = was(2, 8192, lambda i: 3 * i + (i >> 7))
    one = was(1, 16384, lambda i: i ^ i >> 3 ^ i >> 9)
    product = (a - 256 * (a > 127)) * (b - 256 * (b > 127))
    return (product & 0xFFFF) << 8 | four << 4 | two << 2 | one << 1 | 1
