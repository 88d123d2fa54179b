"""What an ONNX file may differ by: the rounding of float32 in a network that needs it, and no wrong weight."""

import keras
import numpy as np
import pytest

from fpgaprune.errors import ExportError
from fpgaprune.flow.onnx_error import TOLERANCE, onnx_error


@pytest.fixture(scope="module")
def cancelling():
    """A network whose float32 sums lose digits: large terms that cancel; samples and what Keras gives."""
    rng = np.random.default_rng(0)
    model = keras.Sequential([keras.Input((40,)), keras.layers.Dense(3, name="dense")])
    kernel = rng.normal(size=(20, 3)).astype("float32") * 60
    model.get_layer("dense").set_weights([np.concatenate([kernel, -kernel * 0.9999]), np.zeros(3)])
    half = rng.normal(size=(50, 20)).astype("float32")
    x = np.concatenate([half, half], axis=1)
    return model, x, model.predict(x, verbose=0)


def test_what_float32_loses_in_keras_is_allowed_in_onnx(cancelling):
    model, x, wanted = cancelling
    assert onnx_error(model, x, wanted, wanted) == (0.0, TOLERANCE)
    # Added up the other way round, as another library may.
    kernel, _ = model.get_layer("dense").get_weights()
    found = np.zeros_like(wanted)
    for column in reversed(range(x.shape[1])):
        found += x[:, column, None] * kernel[column]
    error, allowed = onnx_error(model, x, wanted, found)
    assert TOLERANCE < error <= allowed < 2e-3


def test_a_wrong_weight_is_an_error(cancelling):
    model, x, wanted = cancelling
    kernel, _ = model.get_layer("dense").get_weights()
    kernel[7, 1] *= 1.01
    with pytest.raises(ExportError, match=r"model\.onnx differs from Keras by .*; wanted .* at most"):
        onnx_error(model, x, wanted, x @ kernel)
    with pytest.raises(ExportError, match="differs from Keras by nan"):
        onnx_error(model, x, wanted, np.full_like(wanted, np.nan))
