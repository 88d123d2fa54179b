"""GRU and LSTM: two products, tables and multipliers of one step, and as many turns as there are steps."""

from dataclasses import replace

import numpy as np
import pytest

from fpgaprune.design import Design
from fpgaprune.errors import EstimateError
from fpgaprune.estimate import estimate, predict_row
from fpgaprune.hls import layer_of
from fpgaprune.target import Target
from fpgaprune.values import FixedType

from .designs import T16

TARGET = Target.of("xcu250-figd2104-2L-e", clock_ns=5.0)
UNITS, FEATURES = 20, 6


def raw(*shape):
    """Weights most of which need a multiplier, of which no two of an input are alike."""
    return np.random.default_rng(1).permutation(np.arange(171, 171 + 2 * np.prod(shape), 2)).reshape(shape)


def design(kind="GRU", steps=20, reuse=1, strategy="latency", io_type="io_parallel", backend="Vivado", zeros=0):
    """A recurrent layer over `steps` steps of 6 features, alone."""
    gates = 3 if kind == "GRU" else 4
    weight, recurrent = raw(FEATURES, gates * UNITS), raw(UNITS, gates * UNITS)
    recurrent[:, :zeros] = 0
    biases = dict.fromkeys(("bias", "recurrent_bias"), np.zeros(gates * UNITS, np.int64))
    roles = ("result", "accum", "weight", "recurrent_weight", "bias", "recurrent_bias")
    layer = layer_of(
        *("it", kind, ("in",), (UNITS,)),
        {**dict.fromkeys(roles, T16), "table": FixedType(18, 8)},
        {"weight": weight, "recurrent_weight": recurrent, **biases},
        attributes={
            "table_size": 1024,
            "activation": "tanh",
            "recurrent_activation": "sigmoid",
            "n_out": UNITS,
            "return_sequences": False,
        },
        reuse_factor=reuse,
        strategy=strategy,
    )
    first = layer_of("in", "Input", (), (steps, FEATURES), {"result": T16})
    return Design("d", (first, layer), ("it",), io_type=io_type, backend=backend)


@pytest.mark.parametrize(("kind", "gates"), [("GRU", 3), ("LSTM", 4)])
def test_both_products_and_the_gates_are_counted(kind, gates):
    made = estimate(design(kind), TARGET)
    layer = made.layers[1]
    assert layer.multiplications.total == gates * UNITS * (FEATURES + UNITS)
    # A multiplier for every weight, three for every unit; a table for every two numbers of each gate.
    assert layer.csynth.dsp.value == pytest.approx(layer.multiplications.many_digits + 3 * UNITS, rel=0.01)
    assert layer.csynth.bram18.value == gates * UNITS // 2
    assert any("priced by the laws of Dense layers" in note for note in made.notes)


@pytest.mark.parametrize("io_type", ["io_parallel", "io_stream"])
@pytest.mark.parametrize(("reuse", "strategy"), [(1, "latency"), (2, "resource"), (2, "resource_unrolled")])
def test_steps_go_in_turn(io_type, reuse, strategy):
    ten, twenty = (
        estimate(design(steps=steps, reuse=reuse, strategy=strategy, io_type=io_type), TARGET).layers[1]
        for steps in (10, 20)
    )
    assert twenty.latency_cycles - 1 == 2 * (ten.latency_cycles - 1)
    assert twenty.interval_cycles == twenty.latency_cycles
    assert twenty.csynth.dsp == ten.csynth.dsp


def test_a_reused_multiplier_takes_turns_in_every_step():
    once, often = (estimate(design(reuse=r, strategy="resource"), TARGET).layers[1] for r in (1, 60))
    assert often.latency_cycles - once.latency_cycles == 20 * 59
    assert often.csynth.dsp.value < once.csynth.dsp.value / 5


def test_zeros_of_the_state_save_and_are_told():
    full, pruned = (estimate(design(zeros=zeros), TARGET) for zeros in (0, 30))
    assert pruned.layers[1].csynth.dsp.value <= full.layers[1].csynth.dsp.value - 30 * UNITS // 2
    assert pruned.notes[0].startswith("it: 600 of 1,560 multiplications are by zero; compared with")
    folded = estimate(design(zeros=30, reuse=2, strategy="resource"), TARGET).notes[0]
    assert "save none of 780 multipliers at reuse 2" in folded
    unrolled = estimate(design(zeros=30, reuse=2, strategy="resource_unrolled"), TARGET).notes[0]
    assert "save 300 of 780 multipliers at reuse 2" in unrolled


def test_its_ranges_reach_further_than_those_of_a_dense_layer():
    dense = layer_of("fc", "Dense", ("it",), (8,), {"result": T16, "accum": T16, "weight": T16}, {"weight": raw(20, 8)})
    dense = replace(dense, strategy="latency")
    whole = design()
    made = estimate(replace(whole, layers=(*whole.layers, dense), outputs=("fc",)), TARGET)
    recurrent, plain = (layer.csynth.lut for layer in made.layers[1:])
    assert recurrent.high / recurrent.value == pytest.approx(2 * plain.high / plain.value, rel=0.01)
    assert recurrent.low / recurrent.value == pytest.approx(plain.low / plain.value / 2, rel=0.01)
    total = made.total["csynth"].lut
    assert total.high / total.value == pytest.approx(recurrent.high / recurrent.value, rel=0.01)


def test_a_reuse_factor_that_fits_one_product_only_is_moved_to_one_that_fits_both():
    moved = estimate(design(reuse=7, strategy="resource"), TARGET)
    assert moved.notes[0].endswith("the nearest to 7 that strategy 'resource' can build")
    reuse = int(moved.notes[0].split("has reuse factor ")[1].split(",")[0])
    assert moved.layers[1] == estimate(design(reuse=reuse, strategy="resource"), TARGET).layers[1]


def test_what_cannot_be_priced_is_refused():
    whole = design()
    lacking = replace(whole.layers[1], weights={"weight": whole.layers[1].weights["weight"]})
    with pytest.raises(EstimateError, match=r"layer 'it' \(GRU\) has no weights of its state"):
        estimate(replace(whole, layers=(whole.layers[0], lacking)), TARGET)
    with pytest.raises(EstimateError, match="whose two products a row does not tell apart"):
        predict_row({"id": "r", "tool": "Vivado HLS", "clock_ns": 5, "layers": [{"class": "GRU", "name": "g"}]})
