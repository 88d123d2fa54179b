"""A design with fewer bits still computes what it computed, up to its rounding."""

from dataclasses import replace

import keras
import numpy as np
import pytest

import fpgaprune as fp
from fpgaprune.advice import widths_of, with_widths


@pytest.fixture(scope="module")
def wide():
    keras.utils.set_random_seed(3)
    stack = [keras.layers.Dense(6, activation="relu", bias_initializer="normal", name=f"d{n}") for n in (1, 2)]
    model = keras.Sequential([keras.Input((8,)), *stack, keras.layers.Dense(3, bias_initializer="ones", name="out")])
    x = np.random.default_rng(0).random((64, 8), dtype=np.float32)
    target = fp.Target.of("xc7z020clg400-1", io_type="io_parallel")
    return fp.make_design(model, target, x, fp.Precision(16, 16), "mine"), x


@pytest.mark.parametrize("clips", [False, True])
@pytest.mark.parametrize("bits", [14, 12, 10])
def test_fewer_bits_move_the_results_by_their_rounding_only(wide, bits, clips):
    design, x = wide
    narrow = with_widths(design, bits, bits, clips)
    assert all(layer.types["weight"].width <= bits for layer in narrow.layers if "weight" in layer.types)
    # Each bias keeps its value when its type gets fewer bits behind the point.
    for layer in narrow.layers:
        if "bias" in layer.weights:
            before = design[layer.name].types["bias"].to_float(design[layer.name].weights["bias"])
            after = layer.types["bias"].to_float(layer.weights["bias"])
            assert np.abs(after - before).max() <= layer.types["bias"].lsb / 2
    moved = np.abs(np.asarray(fp.emulate(narrow, x)) - np.asarray(fp.emulate(design, x))).max()
    assert moved < 64 * 2.0**-bits


def test_a_bias_with_a_type_of_its_own_has_no_bit_below_the_narrower_sum(wide):
    """Where products are added in an unknown order, the emulation refuses a sum that loses bits of the bias."""
    design, x = wide
    layers = []
    for layer in design.layers:
        if "bias" in layer.types:
            bias = layer.types["bias"]
            own = replace(bias, width=bias.width - 1, integer=bias.integer - 1)
            layer = replace(layer, types={**layer.types, "bias": own}, strategy="resource_unrolled", reuse_factor=2)
        layers.append(layer)
    design = replace(design, layers=tuple(layers))
    before = np.asarray(fp.emulate(design, x))
    for name, role, bits in widths_of(design):
        narrow = with_widths(design, 64, 64, of_layers={name: {role: bits - 1}})
        assert np.abs(np.asarray(fp.emulate(narrow, x)) - before).max() < 2.0**-8


@pytest.mark.parametrize("activation", ["silu", "gelu", "sigmoid", "tanh", "elu"])
def test_a_table_has_the_entries_that_the_flow_gives_it_with_so_few_bits(activation):
    keras.utils.set_random_seed(4)
    layers = [keras.layers.Dense(4, activation=activation, name="d"), keras.layers.Dense(2, name="out")]
    model = keras.Sequential([keras.Input((6,)), *layers])
    x = np.random.default_rng(0).normal(size=(64, 6)).astype(np.float32)
    target = fp.Target.of("xc7z020clg400-1", io_type="io_parallel", backend="Verilog")
    sizes = {}
    for bits in (6, 8, 10, 16):
        made = fp.make_design(model, target, x, fp.Precision(bits, bits), "mine")
        sizes[bits] = next(layer.operation.table_size for layer in made.layers if layer.name == f"d_{activation}")
    wide = fp.make_design(model, target, x, fp.Precision(16, 16), "mine")
    narrow = {bits: with_widths(wide, bits, bits)[f"d_{activation}"].operation.table_size for bits in sizes}
    assert narrow == sizes
    assert len(set(sizes.values())) > 1


@pytest.mark.parametrize("cell", [keras.layers.GRU, keras.layers.LSTM])
@pytest.mark.parametrize("bits", [6, 8])
def test_a_recurrent_layer_has_the_types_that_the_flow_gives_it_with_so_few_bits(cell, bits):
    """With the last places of its first product alone, its sums would round, and no schedule could make them."""
    keras.utils.set_random_seed(4)
    layers = [cell(6, name="r", bias_initializer="normal"), keras.layers.Dense(3, name="out")]
    model = keras.Sequential([keras.Input((12, 5)), *layers])
    x = np.random.default_rng(0).normal(size=(64, 12, 5)).astype(np.float32)
    target = fp.Target.of("xc7z020clg400-1", backend="Verilog")
    wide, direct = (fp.make_design(model, target, x, fp.Precision(width, width), "mine") for width in (16, bits))
    narrow = with_widths(wide, bits, bits)
    assert narrow["r"].types == direct["r"].types
    moved = np.abs(np.asarray(fp.emulate(narrow, x)) - np.asarray(fp.emulate(direct, x))).max()
    assert moved < 2.0 ** (2 - bits)
