"""Layers that no single operation computes become several that compute the same."""

import keras
import numpy as np
import pytest

import fpgaprune as fp
from fpgaprune.lowering import flattened, fold
from tests.called import called

kl = keras.layers
MERGES = ("Add", "Multiply", "Maximum", "Minimum", "Average", "Concatenate")


def branches(merge: str, number: int) -> keras.Model:
    keras.utils.set_random_seed(2)
    given = keras.Input((4, 3), name="given")
    paths = [kl.Conv1D(3, 1, name=f"path_{place}")(given) for place in range(number)]
    return keras.Model(given, getattr(kl, merge)(name="merged")(paths))


@pytest.mark.parametrize("number", [3, 4, 7])
@pytest.mark.parametrize("merge", MERGES)
def test_a_merge_of_many_is_one_of_two_at_a_time(merge, number):
    model = branches(merge, number)
    flat = flattened(model)
    assert flat.layers[-1].name == "merged"
    for layer in flat.layers[1:]:
        assert not isinstance(layer.input, list) or len(layer.input) == 2
    x = np.random.default_rng(1).normal(size=(16, 4, 3)).astype("float32")
    np.testing.assert_allclose(called(flat, x), called(model, x), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("merge", MERGES)
def test_what_a_merge_becomes_takes_no_other_layer_s_name(merge):
    # Keras itself names the second merge so.
    model = branches(merge, 4)
    more = [kl.Conv1D(model.output.shape[-1], 1, name=name)(model.output) for name in ("merged_1", "merged_sum")]
    model = keras.Model(model.input, getattr(kl, merge)(name="merged_2")(more))
    flat = flattened(model)
    assert {layer.name for layer in model.layers} <= {layer.name for layer in flat.layers}
    x = np.random.default_rng(1).normal(size=(16, 4, 3)).astype("float32")
    np.testing.assert_allclose(called(flat, x), called(model, x), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", [kl.Activation("hard_silu"), kl.ReLU(3.0, negative_slope=0.5, threshold=0.25)])
def test_a_function_that_is_called_twice_is_made_twice(kind):
    given = keras.Input((5,), name="given")
    path = kind(kl.Dense(6, name=f"{kind.name}_negative")(given))
    model = keras.Model(given, kind(kl.Dense(2, name=f"{kind.name}_relu6")(path)))
    x = 4 * np.random.default_rng(1).normal(size=(64, 5)).astype("float32")
    wanted = called(model, x)
    np.testing.assert_allclose(called(fold(model), x), wanted, atol=2e-5 * np.abs(wanted).max())


def test_a_merge_of_two_stays_as_it_is():
    assert [layer.name for layer in flattened(branches("Add", 2)).layers] == ["given", "path_0", "path_1", "merged"]


@pytest.mark.parametrize("kind", ["hard_sigmoid", "hard_silu", "hard_tanh", kl.ReLU(0.5), kl.ReLU(20.0)])
@pytest.mark.parametrize("inside", [True, False])
def test_a_bounded_function_is_scaled_to_relu6(kind, inside):
    keras.utils.set_random_seed(2)
    given = keras.Input((5,), name="given")
    if inside:
        path = kl.Dense(6, activation=kind, name="fc")(given)
    else:
        path = (kl.Activation(kind, name="bent") if isinstance(kind, str) else kind)(kl.Dense(6, name="fc")(given))
    model = keras.Model(given, kl.Dense(2, name="end")(path))
    folded = fold(model)
    assert {layer.activation.__name__ for layer in folded.layers if isinstance(layer, kl.Activation)} <= {"relu6"}
    x = 8 * np.random.default_rng(1).normal(size=(64, 5)).astype("float32")
    wanted = called(model, x)
    np.testing.assert_allclose(called(folded, x), wanted, atol=2e-5 * np.abs(wanted).max())
    assert folded.get_layer("fc").get_weights()[0].shape == (5, 6)


def test_a_function_of_hers_with_that_name_is_not_taken_for_keras_s():
    def hard_sigmoid(x):
        return 0.3 * x

    model = keras.Sequential([keras.Input((3,)), kl.Dense(2, activation=hard_sigmoid, name="fc")])
    assert [layer.name for layer in flattened(model).layers][-1] == "fc"


def test_slopes_that_pixels_share_are_one_for_each_value():
    """As those of PyTorch's PReLU, one for each channel."""
    model = keras.Sequential([keras.Input((3, 4, 5)), kl.PReLU(shared_axes=[1, 2])])
    model.set_weights([np.arange(-2, 3).reshape(1, 1, 5) / 4])
    x = np.random.default_rng(1).integers(-8, 8, (20, 3, 4, 5)).astype("float32")
    design = fp.make_design(model, fp.Target.of("xc7z020clg400-1"), x)
    assert design.layers[-1].weights["param"].shape == (3, 4, 5)
    assert np.array_equal(fp.emulate(design, x), called(model, x))
