"""A network that rounds is asked for the sums that it computes itself, not for those of its unrounded weights."""

import keras
import numpy as np
import pytest

import fpgaprune as fp
from fpgaprune.errors import HlsError
from fpgaprune.lowering import settle, settled_types
from fpgaprune.values import FixedType
from tests.called import called

TARGET = fp.Target.of("xc7z020clg400-1")
X = np.random.default_rng(3).uniform(-1, 1, (60, 6)).astype(np.float32)


def cut_off(integer):
    """A rounded network whose eight activations end at 0.25; its second sums have `integer` bits before the point.

    A second sum is 8 * 0.25 * 0.9 at most; without rounding, many would be larger.
    """
    keras.utils.set_random_seed(5)
    stack = [keras.Input((6,)), keras.layers.Dense(8, activation="relu", name="first")]
    model = keras.Sequential([*stack, keras.layers.Dense(4, name="second")])
    model.get_layer("first").kernel.assign(np.random.default_rng(4).uniform(0.2, 0.9, (6, 8)))
    model.get_layer("second").kernel.assign(np.full((8, 4), 0.9))
    found = fp.quantize(model, TARGET, X, fp.Precision(8, 8, 24))
    found.get_layer("first_relu_rounded").types["result"] = FixedType(8, -2, False, "RND", "SAT")
    found.get_layer("second").types["result"] = FixedType(24, integer)
    return found


def test_sums_behind_activations_that_saturate_do_not_overflow():
    found = cut_off(2)
    outputs = called(found, X)
    assert 1 < outputs.max() < 2
    assert np.array_equal(fp.emulate(fp.make_design(found, TARGET, X), X), outputs)
    # A flow hands on the weights and the types apart.
    plain = fp.make_design(settle(found), TARGET, X, layers=settled_types(found, X))
    assert np.array_equal(fp.emulate(plain, X), outputs)


def test_sums_that_training_has_made_larger_get_more_bits():
    """Sums up to 1.8 do not fit fixed<24,1>; the hardware's type grows, and the outputs stay those of Keras."""
    found = cut_off(1)
    design = fp.make_design(found, TARGET, X)
    grown = design["second"].types["result"]
    assert grown.fraction == 23
    assert grown.width > 24
    outputs = called(found, X)
    assert 1 < outputs.max() < 2
    assert np.array_equal(fp.emulate(design, X), outputs)


def test_a_type_of_hers_that_sums_overflow_is_refused():
    found = cut_off(2)
    with pytest.raises(HlsError, match=r"'second': .* overflow its result type fixed<24,1>"):
        fp.make_design(
            settle(found), TARGET, X, layers={**settled_types(found, X), "second": {"result": "fixed<24,1>"}}
        )


@pytest.mark.parametrize("bits", [16, 24])
def test_wide_weights_and_sums_round_too(bits):
    stack = [keras.Input((6,)), keras.layers.Dense(8, activation="relu"), keras.layers.Dense(4, name="last")]
    model, layers = keras.Sequential(stack), {"last": {"result": "fixed<60,30>"}}
    found = fp.quantize(model, TARGET, X, fp.Precision(bits, 8, 32), layers=layers)
    np.testing.assert_allclose(called(found, X), called(model, X), atol=0.1)
