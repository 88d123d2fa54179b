"""Tables of activations are as fine as the bits around them, and say what they cost where they are not."""

from dataclasses import replace

import keras
import numpy as np
import pytest

import fpgaprune as fp
from fpgaprune.design import FUNCTIONS, LookUp, Recurrent
from fpgaprune.errors import HlsError
from fpgaprune.hls import check_model
from fpgaprune.lowering import entry_type, lower
from fpgaprune.values import FixedType
from tests.called import called

TARGET = fp.Target.of("xc7z020clg400-1")
PARALLEL = fp.Target.of("xc7z020clg400-1", io_type="io_parallel")
LOOKED_UP = [name for name, row in FUNCTIONS.items() if row.table is not None and row.values is not None]


def network(activation, units=6, depth=1):
    keras.utils.set_random_seed(3)
    hidden = [keras.layers.Dense(units, activation=activation, name=f"hidden{place}") for place in range(depth)]
    return keras.Sequential([keras.Input((5,), name="x"), *hidden])


def samples():
    return np.random.default_rng(1).normal(size=(200, 5)).astype("float32")


def made(model, bits, tmp_path, target=TARGET, **options):
    return lower(model, target, samples(), fp.Precision(bits, bits, 20), "net", **options)


@pytest.mark.parametrize("name", LOOKED_UP)
@pytest.mark.parametrize("bits", [6, 10, 12])
def test_a_table_costs_no_more_than_rounding_its_result_does_or_says_so(name, bits, tmp_path):
    """The whole error of the layer alone: a step of the table, and rounding of entry and result."""
    found = made(network(name), bits, tmp_path)
    design = found.design
    layer = design[design.outputs[0]]
    before = fp.emulate(cut_after(design, layer.inputs[0]), samples()).astype(np.float64)
    off = np.abs(fp.emulate(design, samples()) - FUNCTIONS[name].values(before)).max()
    assert isinstance(layer.operation, LookUp)
    result = layer.types["result"]
    step, place = FUNCTIONS[name].table.error(layer.operation.table_size, result), result.lsb
    assert off <= step + 1.01 * place / 2 + layer.types["table"].lsb
    assert bool(found.table_notes) == (step > place / 2)
    # The steps of an exponential grow with its value; mish is steeper than 1 over a table of 16.
    assert bits > (6 if name in ("exponential", "mish") else 10) or not found.table_notes


def cut_after(design, name):
    names = [layer.name for layer in design.layers]
    return replace(design, layers=design.layers[: names.index(name) + 1], outputs=(name,))


def test_more_bits_bring_three_layers_of_tanh_nearer_to_keras(tmp_path):
    model = network("tanh", 8, 3)
    wanted = called(model, samples())
    off = [np.abs(fp.emulate(made(model, bits, tmp_path).design, samples()) - wanted).max() for bits in (8, 10, 12)]
    assert off[1] < 0.4 * off[0]
    assert off[2] < 0.4 * off[1]
    assert off[2] < 0.003


def test_a_usual_layer_takes_one_block_memory(tmp_path):
    design = made(network("tanh"), 8, tmp_path).design
    layer = design[design.outputs[0]]
    assert layer.operation.table_size * layer.types["result"].width <= 18 * 1024


def test_a_size_that_the_user_gives_is_taken_and_its_error_is_said(tmp_path):
    found = made(network("tanh"), 10, tmp_path, layers={"hidden0_tanh": {"table_size": 512}})
    assert found.design["hidden0_tanh"].operation.table_size == 512
    (note,) = found.table_notes
    assert "layer 'hidden0_tanh': its table of tanh has 512 entries" in note
    assert "off by 0.016" in note
    assert "table_size = 8192 would be as fine" in note
    again = made(network("tanh"), 10, tmp_path, layers={"hidden0_tanh": {"table_size": 8192}})
    assert not again.table_notes


def test_many_copies_share_the_memory_and_their_error_is_said(tmp_path):
    found = made(network("tanh", units=64), 14, tmp_path, PARALLEL)
    assert found.design["hidden0_tanh"].operation.table_size == 4096
    assert "4,096 entries" in found.table_notes[0]
    assert made(network("tanh", units=4), 14, tmp_path, PARALLEL).design["hidden0_tanh"].operation.table_size == 16384


def test_a_recurrent_layer_says_what_its_table_costs_and_takes_another_size(tmp_path):
    keras.utils.set_random_seed(2)
    model = keras.Sequential([keras.Input((4, 3), name="x"), keras.layers.GRU(3, name="gru")])
    x = np.random.default_rng(0).normal(size=(50, 4, 3)).astype("float32")
    wanted = called(model, x)
    found = {
        size: lower(model, TARGET, x, fp.Precision(12, 12, 16), "net", layers={"gru": {"table_size": size}})
        for size in (1024, 16384)
    }
    off = {size: np.abs(fp.emulate(one.design, x) - wanted).max() for size, one in found.items()}
    assert isinstance(found[16384].design["gru"].operation, Recurrent)
    assert off[16384] < off[1024] / 3
    assert "its table of tanh has 1,024 entries" in found[1024].table_notes[0]


def test_layers_of_one_template_share_the_largest_size(tmp_path):
    model = network("silu", 4, 2)
    found = made(model, 12, tmp_path, layers={"hidden0_silu": {"table_size": 1024}})
    sizes = {layer.operation.table_size for layer in found.design.layers if isinstance(layer.operation, LookUp)}
    assert len(sizes) == 1
    assert max(sizes) > 1024


def test_a_backend_with_tables_of_one_size_refuses_another(tmp_path):
    oneapi = fp.Target.of("10ax115", backend="oneAPI", strategy="resource")
    with pytest.raises(HlsError, match="table_size 512; the tables of backend oneAPI have 1,024 entries"):
        made(network("tanh"), 8, tmp_path, oneapi, layers={"hidden0_tanh": {"table_size": 512}})


def test_a_layer_without_a_table_takes_no_size_by_its_name_and_is_passed_over_by_a_glob(tmp_path):
    with pytest.raises(HlsError, match="layer 'hidden0' has table_size 512 and no table; these layers have one"):
        made(network("tanh"), 8, tmp_path, layers={"hidden0": {"table_size": 512}})
    found = made(network("tanh"), 8, tmp_path, layers={"hidden*": {"table_size": 512}})
    assert found.design["hidden0_tanh"].operation.table_size == 512


def test_a_flow_is_told_before_it_trains():
    found = check_model(network("relu"), TARGET, layers={"hidden0": {"table_size": 512}})
    assert found.problems == ("layer 'hidden0' has table_size 512 and no table; no layer of the network has one",)


@pytest.mark.parametrize("size", [0, 1, True, 2**20 + 1, "many"])
def test_a_size_that_no_table_has_is_refused(size, tmp_path):
    with pytest.raises(HlsError, match=r"table_size .*; wanted a whole number, 2 to 1,048,576"):
        made(network("tanh"), 8, tmp_path, layers={"hidden0_tanh": {"table_size": size}})


def test_entries_have_the_places_that_the_result_has():
    kind = FixedType(18, 8, True, "RND", "SAT")
    layer = keras.layers.Activation("tanh")
    assert entry_type(layer, FixedType(8, 1), kind) == kind
    assert entry_type(layer, FixedType(16, 1), kind).fraction == 17
    assert entry_type(keras.layers.Activation("softplus"), FixedType(16, 1), kind).integer == 4
