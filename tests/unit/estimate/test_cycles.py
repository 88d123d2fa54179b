"""Clocks of streams and of stages as published reports have them; each figure is one layer's or one design's."""

import pytest

from fpgaprune.estimate import build, row_features

from .test_rows import dense, number, row


def stream(*layers, tool="Vivado HLS", clock=5.0, part="xc7z020clg400-1", **more):
    described = row(*layers, tool=tool, clock_ns=clock, part=part, io_type="io_stream", **more)
    return build(row_features(described))


def conv(n_in, n_out, positions, *, zeros=0, many=0, reuse=1, strategy="latency", kernel=(3, 3), side=None):
    channels = n_in // (kernel[0] * kernel[1])
    counts = {"n": n_in * n_out, "zeros_q": zeros, "pow2_q": 0, "n_csd_ge3": many, "max_abs_bits": 9}
    return {
        "class": "Conv2D", "in": [1, positions, channels], "out": [1, side or positions, n_out], "kernel": list(kernel),
        "mult_n_in": n_in, "mult_n_out": n_out, "reuse_factor": reuse, "strategy": strategy, "weights": {"w2": counts},
        "weight_t": number(16, 6), "accum_t": number(16, 6), "input_t": number(16, 6), "output_t": number(16, 6),
    }  # fmt: skip


def pooling(positions, bits=6):
    shape = {"in": [1, positions, 16], "out": [1, positions // 4, 16], "kernel": [2, 2], "pool_op": "Max"}
    return {"class": "Pooling", "input_t": number(bits, 3), "output_t": number(bits, 3)} | shape


@pytest.mark.parametrize(
    ("zeros", "many", "true"),
    [(27, 8, 4706), (0, 33, 10194)],
)
def test_a_pixel_takes_the_turns_of_its_multipliers(zeros, many, true):
    made = stream(conv(9, 4, 784, zeros=zeros, many=many, reuse=16), clock=25.0)
    assert made.layers[0].latency_cycles == true


def test_turns_beyond_the_reuse_factor_do_not_count():
    made = stream(conv(16, 4, 784, many=61, reuse=3, kernel=(4, 4)), clock=10.0, part="xcu280")
    assert made.layers[0].latency_cycles == pytest.approx(2354, abs=2)


@pytest.mark.parametrize("strategy", ["latency", "resource"])
def test_vitis_calls_a_convolution_for_every_pixel(strategy):
    layer = conv(9, 8, 150, many=39, strategy=strategy)
    made = stream(layer, tool="Vitis HLS", clock=25.0, part="xcku040", clock_uncertainty_ns=6.75)
    assert made.layers[0].latency_cycles == 302


def test_a_folded_convolution_of_vitis():
    layer = conv(36, 7, 48, reuse=252, strategy="resource", many=111)
    made = stream(layer, tool="Vitis HLS", clock=25.0, part="xcvu13p", clock_uncertainty_ns=6.75)
    assert made.layers[0].latency_cycles == pytest.approx(12337, rel=0.01)


@pytest.mark.parametrize(
    ("part", "clock", "true"),
    [("xc7z020clg400-1", 5.0, 1804), ("xczu5ev", 5.0, 903), ("xc7z020clg400-1", 10.0, 904)],
)
def test_pooling_takes_two_clocks_a_pixel_where_an_addition_fills_half_a_period(part, clock, true):
    assert stream(pooling(900), part=part, clock=clock).layers[0].latency_cycles == pytest.approx(true, abs=3)


@pytest.mark.parametrize(
    ("classes", "reuse", "dsp", "blocks"), [(10, 1, 10, 4), (10, 4, 3, 3), (12, 3, 4, 3), (8, 64, 1, 2)]
)
def test_the_classes_of_a_softmax_in_a_stream_share_its_multipliers(classes, reuse, dsp, blocks):
    layer = {
        "class": "Softmax",
        "n_in": classes,
        "reuse_factor": reuse,
        "input_t": number(16, 6),
        "activation": "softmax",
    }
    made = stream(layer).layers[0]
    assert (made.dsp, made.bram18) == (dsp, blocks)


def test_stages_overlap_only_under_a_pragma():
    layers = [dense(16, 16, strategy="resource", reuse_factor=reuse) for reuse in (64, 16)]
    described = {"tool": "Vitis HLS", "strategy": "resource"}
    alone = build(row_features(row(*layers, **described)))
    overlapping = build(row_features(row(*layers, **described, top_pragma="DATAFLOW")))
    assert alone.interval_cycles == alone.latency_cycles == overlapping.latency_cycles
    assert overlapping.interval_cycles == max(hardware.interval_cycles for hardware in overlapping.layers)


def test_the_first_layer_of_a_stream_knows_its_pixels_from_the_fifo_behind_it():
    first = {
        "class": "Activation",
        "activation": "linear",
        "n_in": 4096,
        "input_t": number(8, 0),
        "output_t": number(8, 0),
    }
    layers = row_features(row(first | {"fifo_depth": {"layer2_out": 4096}}, io_type="io_stream")).layers
    assert (layers[0].positions_in, layers[0].channels_in) == (4096, 1)


def test_wide_operands_take_a_slow_part_several_periods():
    """One dense layer of 16 inputs and 4 outputs at 5 ns: 5,741 flip-flops, of which its 50 multipliers hold most."""
    counts = {"w2": {"n": 64, "zeros_q": 0, "pow2_q": 2, "n_csd_ge3": 50, "max_abs_bits": 9}}
    layer = dense(16, 4, weight_t=number(16, 6), accum_t=number(16, 6), weights=counts)
    slow, fast = (build(row_features(row(layer, part=part))).layers[0] for part in ("xc7z020clg400-1", "xcu250"))
    assert slow.ff["product_bit"] > 2000
    assert fast.ff["product_bit"] == 0


@pytest.mark.parametrize("tool", ["Vivado HLS", "Vitis HLS"])
def test_the_unrolled_form_takes_the_turns_of_the_folded_one(tool):
    """A free reuse factor was the first advice once."""
    plain, unrolled = (
        stream(conv(80, 32, 64, reuse=80, strategy=strategy, kernel=(1, 5)), tool=tool).layers[0]
        for strategy in ("resource", "resource_unrolled")
    )
    assert unrolled.latency_cycles == plain.latency_cycles > 64 * 80


def test_a_pixel_of_vitis_takes_its_reuse_factor_at_least():
    made = stream(conv(80, 32, 64, reuse=40, many=2000, kernel=(1, 5)), tool="Vitis HLS")
    assert made.layers[0].latency_cycles >= 64 * 40
