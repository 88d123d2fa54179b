"""Benches of the modules of `hw/rtl` that a scheduled layer has."""

from __future__ import annotations

import numpy as np

from fpgaprune.rtl import Program, ScheduledSums
from tests.integration.module_bench import Bench

# What is written is read two clocks later.
MEMORY = """\
    wire {name}_enters, {name}_there, {name}_taken;
    reg [2:0] {name}_at, {name}_then;
    wire [5:0] {name}_found;
    fp_credit #(.ROOM(8)) {name}_credit (.clk(clk), .rst(rst), .s_valid({0}_valid), .s_ready({0}_ready),
        .enters({name}_enters), .freed({1}_valid & {1}_ready), .skipped(1'b0));
    fp_memory #(.WIDTH(6), .DEPTH(8), .ADDRESS(3)) {name} (.clk(clk), .write({name}_enters), .write_at({name}_at),
        .in_data({0}_data), .read(1'b1), .read_at({name}_then), .out_data({name}_found));
    always @(posedge clk) begin
        {name}_then <= {name}_at;
        {name}_at <= rst ? 3'd0 : {name}_at + {{2'd0, {name}_enters}};
    end
    fp_delay #(.DEPTH(2)) {name}_delay (.clk(clk), .rst(rst), .in({name}_enters), .out({name}_there));
    fp_fifo #(.WIDTH(6), .DEPTH(8)) {name}_queue (.clk(clk), .rst(rst), .s_data({name}_found), .s_valid({name}_there),
        .s_ready({name}_taken), .m_data({1}_data), .m_valid({1}_valid), .m_ready({1}_ready));
"""

# Three products of the lanes of a beat, added up over two beats.
TOTAL = """\
    wire {name}_enters, {name}_there, {name}_done, {name}_taken;
    wire [15:0] {name}_total;
    wire [35:0] {name}_products;
    reg {name}_last, {name}_last1, {name}_last2;
    fp_credit #(.ROOM(16)) {name}_credit (.clk(clk), .rst(rst), .s_valid({0}_valid), .s_ready({0}_ready),
        .enters({name}_enters), .freed({1}_valid & {1}_ready), .skipped({name}_enters & ~{name}_last));
    always @(posedge clk) begin
        {name}_last <= ~rst & ({name}_last ^ {name}_enters);
        {name}_last1 <= {name}_last;
        {name}_last2 <= {name}_last1;
    end
    fp_delay #(.DEPTH(2)) {name}_delay (.clk(clk), .rst(rst), .in({name}_enters), .out({name}_there));
    fp_products #(.TAPS(3), .X_WIDTH(6), .X_SIGNED(1), .W_WIDTH(6), .TOGETHER(1)) {name}_p (.clk(clk),
        .x({0}_data[17:0]), .weights({0}_data[35:18]), .products({name}_products));
    fp_total #(.TAPS(3), .WIDTH(12), .SUM_WIDTH(16), .LEVELS(2)) {name} (.clk(clk), .rst(rst), .valid({name}_there),
        .last({name}_last2), .products({name}_products), .leaves({name}_done), .total({name}_total));
    fp_fifo #(.WIDTH(16), .DEPTH(16)) {name}_queue (.clk(clk), .rst(rst), .s_data({name}_total), .s_valid({name}_done),
        .s_ready({name}_taken), .m_data({1}_data), .m_valid({1}_valid), .m_ready({1}_ready));
"""


def totals(x):
    return [(x[:, :3] * x[:, 3:]).sum(axis=1).reshape(3, 2).sum(axis=1)[:, None]]


def doubled_products(signed):
    """Two values that meet one weight in one multiplier; `signed` or not."""
    text = f"""\
    wire {{name}}_enters, {{name}}_there, {{name}}_taken;
    wire [23:0] {{name}}_products;
    fp_credit #(.ROOM(9)) {{name}}_credit (.clk(clk), .rst(rst), .s_valid({{0}}_valid), .s_ready({{0}}_ready),
        .enters({{name}}_enters), .freed({{1}}_valid & {{1}}_ready), .skipped(1'b0));
    fp_delay #(.DEPTH(3)) {{name}}_delay (.clk(clk), .rst(rst), .in({{name}}_enters), .out({{name}}_there));
    fp_products #(.TAPS(1), .X_WIDTH(6), .X_SIGNED({int(signed)}), .W_WIDTH(6), .TOGETHER(2)) {{name}} (.clk(clk),
        .x({{0}}_data[11:0]), .weights({{0}}_data[17:12]), .products({{name}}_products));
    fp_fifo #(.WIDTH(24), .DEPTH(8)) {{name}}_queue (.clk(clk), .rst(rst), .s_data({{name}}_products),
        .s_valid({{name}}_there), .s_ready({{name}}_taken), .m_data({{1}}_data), .m_valid({{1}}_valid),
        .m_ready({{1}}_ready));
"""

    def expected(x):
        values = x[:, :2] if signed else x[:, :2] & 63
        return [values * x[:, 2:]]

    return Bench(text, [(40, 3)], [(40, 2)], expected, out_width=12)


def products_of_luts():
    """Products of every width of the narrower factor, with a sign and without one, side by side."""
    kinds = [(bits, signed) for bits in range(1, 9) for signed in (False, True)]
    made = "".join(
        f"    fp_product #(.NARROW({bits}), .SIGNED({int(signed)}), .WIDE(9), .WIDTH(17)) {{name}}_{at} (.clk(clk),\n"
        f"        .narrow({{0}}_data[{bits - 1}:0]), .wide({{0}}_data[17:9]),\n"
        f"        .product({{name}}_all[{17 * at} +: 17]));\n"
        for at, (bits, signed) in enumerate(kinds)
    )
    width = 17 * len(kinds)
    text = f"""\
    wire {{name}}_enters, {{name}}_there, {{name}}_taken;
    wire [{width - 1}:0] {{name}}_all;
    fp_credit #(.ROOM(9)) {{name}} (.clk(clk), .rst(rst), .s_valid({{0}}_valid), .s_ready({{0}}_ready),
        .enters({{name}}_enters), .freed({{1}}_valid & {{1}}_ready), .skipped(1'b0));
    fp_delay #(.DEPTH(3)) {{name}}_delay (.clk(clk), .rst(rst), .in({{name}}_enters), .out({{name}}_there));
{made}    fp_fifo #(.WIDTH({width}), .DEPTH(8)) {{name}}_queue (.clk(clk), .rst(rst), .s_data({{name}}_all),
        .s_valid({{name}}_there), .s_ready({{name}}_taken), .m_data({{1}}_data), .m_valid({{1}}_valid),
        .m_ready({{1}}_ready));
"""

    def expected(x):
        narrow = [x[:, 0] & (1 << bits) - 1 for bits, _ in kinds]
        values = [
            value - (value >> bits - 1 << bits if signed else 0)
            for value, (bits, signed) in zip(narrow, kinds, strict=True)
        ]
        return [np.stack(values, axis=1) * x[:, 1:]]

    return Bench(text, [(60, 2)], [(60, len(kinds))], expected, width=9, out_width=17)


def channel_windows(rows, columns, channels, size, stride):
    names = ("CHANNELS", "ROWS", "COLUMNS", "KH", "KW", "SH", "SW")
    given = ", ".join(f".{n}({v})" for n, v in zip(names, (channels, rows, columns, *size, *stride), strict=True))
    text = (
        f"    fp_channel_window #(.WIDTH(6), {given}) {{name}} (.clk(clk), .rst(rst), .s_data({{0}}_data),\n"
        "        .s_valid({0}_valid), .s_ready({0}_ready), .m_data({1}_data), .m_valid({1}_valid),\n"
        "        .m_ready({1}_ready));\n"
    )

    def expected(x):
        image = x.reshape(rows, columns, channels)
        found = [
            image[r : r + size[0], c : c + size[1], channel].reshape(-1)
            for r in range(0, rows - size[0] + 1, stride[0])
            for c in range(0, columns - size[1] + 1, stride[1])
            for channel in range(channels)
        ]
        return [np.array(found)]

    places = ((rows - size[0]) // stride[0] + 1) * ((columns - size[1]) // stride[1] + 1)
    return Bench(text, [(rows * columns * channels, 1)], [(places * channels, size[0] * size[1])], expected)


def scheduled(seed, taps, channels, outputs, multipliers, kept, places=3, together=1, signed=True, in_luts=False):
    """`fp_scheduled` with random kernels."""
    rng = np.random.default_rng(seed)
    kernels = rng.integers(-8, 8, (taps, channels, outputs)) * (rng.random((channels, outputs)) < kept)
    sums = ScheduledSums(Program.of(kernels, multipliers), channels, 6, signed, 16, places, 0, together, None, in_luts)
    p = sums.parameters
    given = ", ".join(f".{name}({value})" for name, value in {**p, "STARTS": sums.starts}.items())
    word, words, turn, turns = sums.word_bits, sums.words(), sums.turn_bits, sums.turns()

    def memory(name, at, width, rows, enable):
        cases = "".join(f"            {place}: {name} <= {width}'h{row:x};\n" for place, row in enumerate(rows))
        return (
            f"    always @(posedge clk) if ({enable}) case ({at})\n{cases}"
            f"            default: {name} <= {width}'h0;\n        endcase\n"
        )

    text = (
        f"    wire [{p['STEP'] - 1}:0] {{name}}_step;\n    reg [{word - 1}:0] {{name}}_word;\n"
        f"    wire {{name}}_reads;\n    wire [{p['TURN'] - 1}:0] {{name}}_turn;\n"
        f"    reg [{turn - 1}:0] {{name}}_part;\n"
        + memory("{name}_word", "{name}_step", word, words, "1'b1")
        + memory("{name}_part", "{name}_turn", turn, turns, "{name}_reads")
        + f"    fp_scheduled #({given}) {{name}} (.clk(clk), .rst(rst), .step({{name}}_step), .word({{name}}_word),\n"
        "        .reads({name}_reads), .turn({name}_turn), .part({name}_part), .s_data({0}_data),\n"
        "        .s_valid({0}_valid), .s_ready({0}_ready), .m_data({1}_data), .m_valid({1}_valid),\n"
        "        .m_ready({1}_ready));\n"
    )

    def expected(x):
        values = (x if signed else x & 63).reshape(places, channels, taps)
        return [np.einsum("pct,tco->po", values, kernels).reshape(-1, 1)]

    given, out = [(places * channels, taps)], [(places * outputs, 1)]
    return Bench(text, given, out, expected, out_width=16, clocks=-(-places // together) * sums.period)


SCHEDULED = {
    "fp_memory": Bench(MEMORY, [(7, 1)], [(7, 1)], lambda x: [x]),
    "fp_total": Bench(TOTAL, [(6, 6)], [(3, 1)], totals, out_width=16),
    "fp_products": doubled_products(signed=True),
    "fp_product": products_of_luts(),
    "fp_products_unsigned": doubled_products(signed=False),
    "fp_channel_window": channel_windows(5, 4, 3, (3, 2), (1, 1)),
    "fp_channel_window_strided": channel_windows(7, 6, 2, (2, 3), (3, 2)),
    "fp_channel_window_row": channel_windows(1, 7, 1, (1, 3), (1, 2)),
    "fp_channel_window_sparse": channel_windows(4, 5, 2, (1, 1), (2, 3)),
    **{f"fp_{name}": scheduled(7, 4, 3, 5, 8, 0.7, 4, 2) for name in ("group", "turns")},
    "fp_scheduled_odd": scheduled(8, 6, 2, 4, 6, 0.9, 5, 2, signed=False),
    "fp_scheduled_two_pieces": scheduled(9, 6, 4, 3, 3, 0.6, 3, 2),
    "fp_scheduled": scheduled(0, 4, 3, 5, 8, 0.7),
    "fp_scheduled_in_luts": scheduled(10, 4, 3, 5, 8, 0.7, in_luts=True),
    "fp_scheduled_in_luts_unsigned": scheduled(11, 3, 2, 4, 4, 0.9, 4, signed=False, in_luts=True),
    "fp_scheduled_split": scheduled(1, 1, 9, 2, 5, 0.8),
    "fp_scheduled_sparse": scheduled(2, 9, 4, 6, 27, 0.2),
    "fp_scheduled_one": scheduled(3, 3, 1, 1, 3, 1.0),
    "fp_scheduled_none": scheduled(4, 2, 3, 2, 2, 0.0),
    "fp_scheduled_pieces": scheduled(6, 6, 3, 4, 5, 0.6),
    "fp_scheduled_full": scheduled(5, 4, 6, 8, 4, 1.0),
}
