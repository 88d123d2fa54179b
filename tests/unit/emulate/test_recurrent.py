"""Recurrent layers: which variants are emulated."""

from dataclasses import replace

import numpy as np
import pytest

from fpgaprune.backends import as_built
from fpgaprune.design import Design
from fpgaprune.emulate import emulate
from fpgaprune.errors import UnsupportedLayerError
from fpgaprune.hls import layer_of
from fpgaprune.values import FixedType

KIND = FixedType(16, 4, True, "RND", "SAT")
ROLES = ("result", "weight", "recurrent_weight", "bias", "recurrent_bias")


def design(**attributes):
    """A GRU of one unit over three steps of one feature, which begins at 0 and tends to tanh(x / 2)."""
    half = int(KIND.to_raw(0.5))
    weights = {
        "weight": np.array([[0, 0, half]]),
        "recurrent_weight": np.zeros((1, 3), np.int64),
        "bias": np.zeros(3, np.int64),
        "recurrent_bias": np.zeros(3, np.int64),
    }
    types = {**dict.fromkeys(ROLES, KIND), "accum": FixedType(32, 8), "table": FixedType(24, 4, True, "RND", "SAT")}
    given = {"n_out": 1, "activation": "tanh", "recurrent_activation": "sigmoid", "return_sequences": True}
    given |= {"table_size": 4096, "static": True, "apply_reset_gate": "after"}
    layer = layer_of("g", "GRU", ("in",), (3, 1), types, weights, attributes=given | attributes, strategy="latency")
    first = layer_of("in", "Input", (), (3, 1), {"result": KIND})
    return as_built(Design("d", (first, layer), ("g",)))


def test_a_state_moves_half_way_where_its_gate_is_open_by_half():
    goal = np.tanh(1.0)
    found = emulate(design(), np.full((2, 3, 1), 2.0))
    assert found.shape == (2, 3, 1)
    np.testing.assert_allclose(found[0, :, 0], [goal / 2, goal * 3 / 4, goal * 7 / 8], atol=2e-3)


def test_only_the_last_state_is_handed_on_where_no_sequence_is_wanted():
    whole = emulate(design(), np.full((2, 3, 1), 2.0))
    one = design(return_sequences=False)
    one = replace(one, layers=(one.layers[0], replace(one.layers[1], output_shape=(1,))))
    assert np.array_equal(emulate(one, np.full((2, 3, 1), 2.0)), whole[:, -1])


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"activation": "elu"}, "layer 'g': activation 'elu' of a recurrent layer has no emulation"),
        ({"recurrent_activation": "hard_sigmoid"}, "layer 'g': recurrent_activation 'hard_sigmoid' of a recurrent"),
        ({"static": False}, r"layer 'g' \(GRU\): static is False; a recurrent layer is emulated with True only"),
        ({"apply_reset_gate": "before"}, "apply_reset_gate is 'before'; a recurrent layer is emulated with 'after'"),
        ({"pytorch": True}, "pytorch is True; a recurrent layer is emulated with False only"),
    ],
)
def test_other_variants_are_refused(attributes, message):
    with pytest.raises(UnsupportedLayerError, match=message):
        emulate(design(**attributes), np.zeros((1, 3, 1)))
