"""A bench of the module of `hw/rtl` that leads the steps of a recurrent layer."""

from __future__ import annotations

import numpy as np

from tests.integration.module_bench import Bench

INPUTS, UNITS, STEPS = 3, 2, 4

# Unit 0 adds up the first input and the output of unit 1, unit 1 subtracts that of unit 0 from the last input. A state
# is that plus the state before, an output its state plus that again.
TEXT = """\
    wire [7:0] {name}_x, {name}_g, {name}_state, {name}_both;
    wire {name}_xv, {name}_xr, {name}_wv, {name}_wr, {name}_gv, {name}_gr, {name}_nv, {name}_nr;
    wire [39:0] {name}_w;
    wire [15:0] {name}_n;
    assign {name}_state = {name}_n[7:0] + {name}_n[15:8];
    assign {name}_both = {name}_state + {name}_n[7:0];
    fp_recurrent #(.X_WIDTH(8), .SUMS_WIDTH(8), .H_WIDTH(8), .R_WIDTH(16), .H_SIGNED(1), .INPUTS(3), .UNITS(2),
        .STEPS(4), .SEQUENCES(SEQUENCED)) {name} (.clk(clk), .rst(rst),
        .s_data({{{{2{{{0}_data[5]}}}}, {0}_data}}), .s_valid({0}_valid), .s_ready({0}_ready),
        .x_data({name}_x), .x_valid({name}_xv), .x_ready({name}_xr),
        .g_data({name}_g), .g_valid({name}_gv), .g_ready({name}_gr),
        .n_data({name}_n), .n_valid({name}_nv), .n_ready({name}_nr),
        .r_data({{{name}_state, {name}_both}}), .r_valid({name}_nv), .r_ready({name}_nr),
        .m_data({1}_data), .m_valid({1}_valid), .m_ready({1}_ready));
    fp_gather #(.WIDTH(8), .BEATS(5)) {name}_gather (.clk(clk), .rst(rst), .s_data({name}_x), .s_valid({name}_xv),
        .s_ready({name}_xr), .m_data({name}_w), .m_valid({name}_wv), .m_ready({name}_wr));
    fp_scatter #(.WIDTH(8), .BEATS(2)) {name}_scatter (.clk(clk), .rst(rst),
        .s_data({{{name}_w[23:16] - {name}_w[31:24], {name}_w[7:0] + {name}_w[39:32]}}), .s_valid({name}_wv),
        .s_ready({name}_wr), .m_data({name}_g), .m_valid({name}_gv), .m_ready({name}_gr));
"""


def bench(sequences: bool) -> Bench:
    """All outputs, or those of the last step."""

    def expected(x):
        outputs, states, found = np.zeros(UNITS, np.int64), np.zeros(UNITS, np.int64), []
        for step in x.reshape(STEPS, INPUTS):
            sums = np.array([step[0] + outputs[1], step[2] - outputs[0]])
            states = states + sums
            outputs = (states + sums + 128) % 256 - 128
            found.append(outputs)
        return [np.concatenate(found if sequences else found[-1:])[:, None]]

    text = TEXT.replace("SEQUENCED", str(int(sequences)))
    leaves = (STEPS if sequences else 1) * UNITS
    return Bench(text, [(STEPS * INPUTS, 1)], [(leaves, 1)], expected, out_width=8, paced=True)


RECURRENT = {"fp_recurrent": bench(True), "fp_recurrent_last": bench(False)}
