"""LUTs, flip-flops and DSPs of single layers as published reports have them; each figure is one layer's."""

import pytest

from fpgaprune.estimate import build, calibration, predict_row, row_features, stage_figures

from .test_rows import dense, number, row


def first(layer, **more):
    """The hardware of the first layer, and its figures in the HLS report."""
    made = build(row_features(row(layer, **more)))
    return made, stage_figures(made.layers[0], calibration().rates)["csynth"]


def folded(n_in, n_out, reuse, inp, weight, accum):
    ports = {"input_t": number(*inp), "weight_t": number(*weight), "accum_t": number(*accum)}
    return dense(n_in, n_out, reuse_factor=reuse, strategy="resource", **ports)


@pytest.mark.parametrize(
    ("layer", "tool", "dsps"),
    [
        # Of two products that are added in one turn, one is a multiply-add of a DSP slice.
        (folded(100, 5, 50, (6, 0), (6, 2), (20, 10)), "Vitis HLS", 5),
        (folded(125, 1, 25, (6, 0), (6, 2), (20, 10)), "Vitis HLS", 3),
        (folded(45, 6, 45, (6, 0), (6, 2), (19, 9)), "Vitis HLS", 6),
        (folded(288, 32, 72, (4, 0), (4, 1), (18, 8)), "Vivado HLS", 64),
        (folded(32, 32, 16, (6, 1), (6, 1), (16, 6)), "Vivado HLS", 32),
        # A product that loses bits on its way into the sum is none.
        (folded(72, 10, 8, (8, 2), (8, 3), (16, 6)), "Vivado HLS", 0),
        (folded(1352, 10, 104, (6, 2), (6, 2), (6, 2)), "Vitis HLS", 0),
        (folded(7, 1, 7, (10, 0), (10, 3), (15, 5)), "Vitis HLS", 0),
        # One wide operand is enough.
        (folded(9, 32, 72, (16, 6), (4, 1), (25, 15)), "Vivado HLS", 4),
        (folded(384, 5, 16, (14, 6), (6, 1), (14, 6)), "Vivado HLS", 120),
    ],
)
def test_dsps_of_a_folded_layer(layer, tool, dsps):
    assert first(layer, tool=tool)[0].layers[0].dsp == dsps


def constants(n, zeros, pow2, many, largest, mean):
    counts = {
        "n": n,
        "zeros_q": zeros,
        "pow2_q": pow2,
        "n_csd_ge3": many,
        "max_abs_bits": largest,
        "mean_bits_nz": mean,
    }
    return {"weights": {"w2": counts}}


@pytest.mark.parametrize(
    ("inp", "weight", "counts", "dsps"),
    [
        # An input of twelve bits takes a DSP for every constant of three digits; one of nine for wide constants only.
        ((12, 5), (8, 3), constants(1272, 48, 347, 285, 7, 3.7), 252),
        ((9, 3), (16, 6), constants(256, 0, 6, 224, 12, 8.2), 73),
        ((10, 0), (10, 1), constants(1272, 384, 30, 699, 9, 7.4), 0),
    ],
)
def test_dsps_of_an_unrolled_layer(inp, weight, counts, dsps):
    n_in, n_out = (32, 8) if dsps == 73 else (53, 24)
    layer = dense(n_in, n_out, input_t=number(*inp), weight_t=number(*weight), **counts)
    made, _ = first(layer, tool="Vitis HLS", part="xcvu13p")
    assert made.layers[0].dsp == pytest.approx(dsps, rel=0.4)


@pytest.mark.parametrize(
    ("mean", "zeros", "pow2", "many", "true"),
    # 274 inputs, 8 outputs, 8 bits: most constants are small, so that sums are narrow.
    [(2.73, 924, 667, 122, 26560)],
)
def test_sums_are_as_wide_as_their_constants(mean, zeros, pow2, many, true):
    layer = dense(
        274, 8, weight_t=number(8, 2), input_t=number(8, 2), **constants(2192, zeros, pow2, many, 7, mean)
    )  # fmt: skip
    _, figures = first(layer, tool="Vitis HLS", clock_ns=3.33, part="xc7z007s-clg225-2", mul_impl_forced="dsp")
    assert figures["lut"] == pytest.approx(true, rel=0.12)


def test_a_batch_normalisation_does_not_saturate_as_its_input_does():
    layer = {
        "class": "BatchNormalization", "n_in": 72, "input_t": number(15, 0, "ap_ufixed<15,0,AP_RND_CONV,AP_SAT>"),
        "scale_t": number(16, 6), "output_t": number(16, 6), **constants(72, 0, 0, 71, 9, 8.0),
    }  # fmt: skip
    _, figures = first(layer, tool="Vitis HLS", part="xcvu13p")
    assert figures["lut"] == pytest.approx(2637, rel=0.5)


def test_processes_without_a_stream_hold_their_numbers_in_registers():
    """128 x 16 numbers of 16 bits behind a ReLU of Vitis HLS: 30,722 flip-flops, and 36 for the FIFO of a number."""
    relu = {"class": "Activation", "activation": "relu", "in": [128, 16], "out": [128, 16], "n_in": 2048}
    ports = {"input_t": number(16, 6), "output_t": number(16, 6)}
    made, figures = first(
        relu | ports, tool="Vitis HLS", part="xcu250-figd2104-2L-e", top_pragma="DATAFLOW", layers=[relu | ports] * 2
    )
    assert figures["ff"] == pytest.approx(30722, rel=0.1)
    between = stage_figures(made.between, calibration().rates)["csynth"]
    assert between["ff"] / 2048 == pytest.approx(36, rel=0.1)
    # A FIFO's own 23 LUTs, and 13 for the start and the end of its hand-over.
    assert between["lut"] / 2048 == pytest.approx(36, rel=0.15)


def test_results_of_early_turns_wait():
    """32 x 10 products on 20 multipliers at 25 ns: 4,950 flip-flops where as many multipliers as products have 524."""
    counts = constants(320, 0, 5, 268, 11, 8.0)
    turns, figures = first(dense(32, 10, reuse_factor=16, weight_t=number(16, 6), **counts), clock_ns=25.0)
    _, others = first(dense(32, 10, weight_t=number(16, 6), **counts), clock_ns=25.0)
    assert turns.layers[0].dsp == 20
    assert figures["ff"] - others["ff"] == pytest.approx(4950 - 524, rel=0.35)


def pruned(n_in, n_out, nonzero):
    return dense(n_in, n_out, **constants(n_in * n_out, n_in * n_out - nonzero, 0, nonzero, 10, 8.7))


RELU = {"class": "Activation", "activation": "relu", "n_in": 128}


@pytest.mark.parametrize("pipelined", [True, False])
def test_numbers_that_nobody_reads_are_not_built(pipelined):
    """4 x 128 x 3 with a quarter of the weights left: 81 of 128 products, 65 of 128 numbers of the ReLU are built."""
    network = [pruned(4, 128, 128), RELU, pruned(128, 3, 96)]
    pragma = "PIPELINE" if pipelined else "DATAFLOW"
    first_layer, relu, last = build(
        row_features(row({}, layers=network, clock_ns=25.0, part="xc7z020clg400-1", top_pragma=pragma))
    ).layers
    assert first_layer.dsp == pytest.approx(81 if pipelined else 128, rel=0.1)
    assert relu.lut["compare_bit"] / 16 == pytest.approx(65 if pipelined else 128, rel=0.25)
    assert last.dsp == pytest.approx(78 if pipelined else 96, rel=0.12)


def test_a_layer_that_is_hardly_pruned_is_built_whole():
    network = [pruned(16, 64, 512), RELU | {"n_in": 64}, pruned(64, 32, 1024)]
    assert all(layer.live == layer.live_out == 1 for layer in row_features(row({}, layers=network)).layers)


def test_hgq_leaves_numbers_without_a_weight():
    """16 x 64 x 32 with 94 and 72 weights left: 252 of 1,792 look-up tables of the ReLU in the report."""
    network = [pruned(16, 64, 94), RELU | {"n_in": 64}, pruned(64, 32, 72)]
    even = row_features(row({}, layers=network)).layers[1].live
    quantised = [{"class": "h_quantize_8", "n_in": 16}, *network]
    assert even == 1
    assert row_features(row({}, layers=quantised)).layers[2].live == pytest.approx(0.54, abs=0.01)


def test_products_beyond_the_dsps_of_the_part_are_look_up_tables():
    """4 x 128 x 3 of 16 bits on a part of 220 DSPs: 664 in the HLS report, 220 and 47,682 LUTs after synthesis."""
    network = [pruned(4, 128, 500), RELU, pruned(128, 3, 380)]
    asked = row({}, layers=network, clock_ns=25.0)
    small = predict_row(asked | {"part": "xc7z020clg400-1"})
    large = predict_row(asked | {"part": "xc7vx690tffg1761-2"})
    unknown = predict_row(asked | {"part": "my-own-part"})
    wanted = large["csynth"]["DSP"]
    assert 860 <= wanted <= 880
    assert (small["synth"]["DSP"], large["synth"]["DSP"], unknown["synth"]["DSP"]) == (220, wanted, wanted)
    assert small["synth"]["LUT"] - large["synth"]["LUT"] == pytest.approx((wanted - 220) * 70, rel=0.01)


@pytest.mark.parametrize(("n_in", "reuse", "each"), [(32, 8, 145), (64, 8, 280), (128, 32, 268), (256, 32, 272)])
def test_lanes_choose_among_64_inputs_at_most(n_in, reuse, each):
    made, _ = first(folded(n_in, 16, reuse, (16, 6), (16, 6), (16, 6)), tool="Vivado HLS")
    rate = calibration().rates.lut["lane_select"][0]
    assert made.layers[0].lut["lane_select"] * rate / (n_in * 16 / reuse) == pytest.approx(each, rel=0.1)


def test_pruning_leaves_the_constants_of_many_digits():
    """A row without counts, half of 4,032 weights left: 1,592 DSPs, where a share of 0.72 would give 1,452."""
    layer = dense(96, 42, n_nonzero_est=2016, weight_t=number(16, 6))
    made, _ = first(layer, part="xcu250-figd2104-2L-e", tool="Vivado HLS")
    assert made.layers[0].dsp == pytest.approx(1592, rel=0.1)


@pytest.mark.parametrize("pragma", ["DATAFLOW", None])
def test_between_two_layers_of_a_parallel_design_passes_a_cycle(pragma):
    layers = [folded(16, 8, 16, (16, 6), (16, 6), (16, 6)), folded(8, 4, 8, (16, 6), (16, 6), (16, 6))]
    made = build(row_features(row({}, layers=layers, tool="Vitis HLS", strategy="resource", top_pragma=pragma)))
    assert made.latency_cycles == sum(round(layer.latency_cycles) for layer in made.layers) + 1
    # Without a pragma the first layer waits for the last one.
    assert made.interval_cycles == (made.latency_cycles if pragma is None else made.layers[0].interval_cycles)


@pytest.mark.parametrize(
    ("n_in", "n_out", "reuse", "bits", "more", "cycles"),
    [
        (9, 4, 36, (16, 6), {"tool": "Vitis HLS", "clock_ns": 25.0, "part": "xcvu13p-flga2577-2-e"}, 41),
        (50, 4, 50, (6, 0), {"tool": "Vitis HLS", "clock_ns": 30.0, "part": "xc7a35tcpg236-1"}, 55),
        (27, 4, 108, (16, 6), {"clock_ns": 5.0, "part": "xczu5ev-sfvc784-1-i"}, 113),
        (3, 16, 48, (16, 6), {"clock_ns": 3.33, "part": "xc7vx690tffg1761-2"}, 57),
        (72, 10, 8, (8, 2), {"clock_ns": 5.0, "part": "xc7vx690tffg1761-2"}, 16),
    ],
)
def test_cycles_of_a_pixel_of_a_folded_convolution(n_in, n_out, reuse, bits, more, cycles):
    layer = {
        "class": "Conv1D", "in": [100, 1], "out": [100, n_out], "kernel": [n_in], "reuse_factor": reuse,
        "mult_n_in": n_in, "mult_n_out": n_out, "strategy": "resource", "input_t": number(*bits),
        "weight_t": number(6, 1), "accum_t": number(16, 6), "output_t": number(16, 6),
    }  # fmt: skip
    made = build(row_features(row(layer, io_type="io_stream", strategy="resource", **more)))
    assert made.layers[0].latency_cycles / 100 == cycles


@pytest.mark.parametrize(("clock", "true"), [(25.0, 918), (5.0, 1883)])
def test_registers_between_the_stages_of_one_pipeline(clock, true):
    """53 x 24 x 12 x 1 of 15 bits: nearly the input alone where one period holds all layers."""
    ports = {"input_t": number(15, 2), "weight_t": number(10, 3), "accum_t": number(16, 6), "output_t": number(15, 2)}
    scale = {
        "class": "BatchNormalization",
        "input_t": number(15, 2),
        "scale_t": number(10, 3),
        "output_t": number(15, 2),
    }
    relu = {"class": "Activation", "activation": "relu", "input_t": number(15, 2), "output_t": number(15, 2)}
    layers = [
        dense(53, 24, **ports), scale | {"n_in": 24}, relu | {"n_in": 24},
        dense(24, 12, **ports), scale | {"n_in": 12}, relu | {"n_in": 12}, dense(12, 1, **ports),
    ]  # fmt: skip
    made = build(row_features(row({}, layers=layers, tool="Vitis HLS", clock_ns=clock, part="xcvu13p-flga2577-2-e")))
    assert stage_figures(made.between, calibration().rates)["csynth"]["ff"] == pytest.approx(true, rel=0.25)
