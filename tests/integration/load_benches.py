"""Benches of the modules of `hw/rtl` that load weights."""

from __future__ import annotations

import numpy as np

from tests.integration.module_bench import Bench

BIASED = """\
    reg [5:0] {name}_bias;
    wire [1:0] {name}_at;
    always @(posedge clk) {name}_bias <= {{3'd5, {name}_at, 1'b1}};
    fp_biased #(.WIDTH(6), .OUTPUTS(3), .B_WIDTH(6), .BIAS(2)) {name} (.clk(clk), .rst(rst), .at({name}_at),
        .bias({name}_bias), .s_data({0}_data), .s_valid({0}_valid), .s_ready({0}_ready), .m_data({1}_data),
        .m_valid({1}_valid), .m_ready({1}_ready));
"""

# Of 16 values, ten are weights of five kernels, three are biases, and three are handed on.
LOAD = """\
    wire {name}_enters, {name}_last, {name}_taken, {name}_valid, {name}_end, {name}_biases;
    wire [5:0] {name}_on, {name}_bias;
    wire [1:0] {name}_groups, {name}_step, {name}_number;
    wire [11:0] {name}_kernel;
    reg {name}_came;
    always @(posedge clk) {name}_came <= {name}_enters & ~rst;
    wire {name}_writes = |{name}_groups;
    wire {name}_leaves = {name}_writes | {name}_biases | {name}_valid;
    wire [17:0] {name}_made = {name}_writes ? {{{name}_groups, {name}_step, 2'd0, {name}_kernel}}
        : {name}_biases ? {{4'd8, {name}_number, 6'd1, {name}_bias}} : {{6'd0, 6'd2, {name}_on}};
    fp_credit #(.ROOM(16)) {name}_credit (.clk(clk), .rst(rst), .s_valid({0}_valid), .s_ready({0}_ready),
        .enters({name}_enters), .freed({1}_valid & {1}_ready), .skipped({name}_came & ~{name}_leaves));
    fp_last #(.BEATS(16)) {name}_counted (.clk(clk), .rst(rst), .valid({name}_enters), .ready(1'b1),
        .last({name}_last));
    fp_load #(.WIDTH(6), .TAPS(2), .W_WIDTH(6), .GROUPS(2), .STEPS(3), .STEP(2), .KERNELS(5), .BIASES(3),
        .B_WIDTH(6), .BIAS(2)) {name} (.clk(clk), .rst(rst), .l_data({0}_data), .l_valid({name}_enters),
        .l_end({name}_enters & {name}_last), .n_data({name}_on), .n_valid({name}_valid), .n_end({name}_end),
        .writes({name}_groups), .write_at({name}_step), .kernel({name}_kernel), .bias_writes({name}_biases),
        .bias_at({name}_number), .bias({name}_bias));
    fp_fifo #(.WIDTH(18), .DEPTH(16)) {name}_queue (.clk(clk), .rst(rst), .s_data({name}_made),
        .s_valid({name}_leaves), .s_ready({name}_taken), .m_data({1}_data), .m_valid({1}_valid),
        .m_ready({1}_ready));
"""

# Loads and samples pass the gate and nothing else; which of them waits is a matter of whole designs.
GATE = """\
    wire {name}_open, {name}_last, {name}_ready, {name}_end, {name}_arrived;
    fp_last #(.BEATS(4)) {name}_in (.clk(clk), .rst(rst), .valid({0}_valid & {0}_ready), .ready(1'b1),
        .last({name}_last));
    fp_last #(.BEATS(3)) {name}_load (.clk(clk), .rst(rst), .valid({1}_valid & {1}_ready), .ready(1'b1),
        .last({name}_end));
    fp_delay #(.DEPTH(3)) {name}_layers (.clk(clk), .rst(rst), .in({1}_valid & {1}_ready & {name}_end),
        .out({name}_arrived));
    fp_gate #(.INPUTS(1), .OUTPUTS(1)) {name} (.clk(clk), .rst(rst), .beats({0}_valid & {0}_ready),
        .lasts({name}_last), .open({name}_open), .ends({0}_valid & {0}_ready & {name}_last),
        .valid({1}_valid & {3}_ready), .last({name}_end), .ready({name}_ready), .arrived({name}_arrived));
    assign {2}_data = {0}_data;
    assign {2}_valid = {0}_valid & {name}_open;
    assign {0}_ready = {2}_ready & {name}_open;
    assign {3}_data = {1}_data;
    assign {3}_valid = {1}_valid & {name}_ready;
    assign {1}_ready = {3}_ready & {name}_ready;
"""


def _signed(value):
    return (value & 63) - ((value & 32) << 1)


def biased(x):
    number = np.arange(len(x)) % 3
    return [np.stack([x[:, 0], _signed(40 | number << 1 | 1)], axis=1)]


def loaded(x):
    values = x[:, 0]
    kernels = [(values[2 * n], values[2 * n + 1], 1 << n // 3 << 4 | n % 3 << 2) for n in range(5)]
    biases = [(values[10 + n], 1, 32 | n) for n in range(3)]
    passed = [(value, 2, 0) for value in values[13:]]
    return [np.array([(_signed(a), _signed(b), _signed(c)) for a, b, c in (*kernels, *biases, *passed)])]


LOADS = {
    "fp_biased": Bench(BIASED, [(7 * 3, 1)], [(7 * 3, 2)], biased),
    "fp_load": Bench(LOAD, [(16, 1)], [(11, 3)], loaded),
    "fp_gate": Bench(GATE, [(4, 1), (3, 1)], [(4, 1), (3, 1)], lambda x, y: [x, y], clocks=6),
}
