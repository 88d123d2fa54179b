"""How much smaller `fold` makes a kernel."""

import keras
import numpy as np
import pytest
from keras import layers

from fpgaprune.lowering import smaller_kernels


def network(*behind):
    """Layers, of which each BatchNorm has the given variance and a scale of 1."""
    model = keras.Sequential([keras.Input((6, 6, 2)), *behind])
    rng = np.random.default_rng(0)
    for layer in model.layers:
        if hasattr(layer, "kernel"):
            layer.kernel.assign(rng.standard_normal(layer.kernel.shape).astype("float32"))
    return model


def batch_norm(deviation, name="bn"):
    layer = layers.BatchNormalization(name=name, epsilon=0.0)
    layer.deviation = deviation
    return layer


def with_deviations(model):
    for layer in model.layers:
        if isinstance(layer, layers.BatchNormalization):
            layer.moving_variance.assign(np.full(layer.moving_variance.shape, layer.deviation**2, np.float32))
    return model


@pytest.mark.parametrize(
    "layer",
    [
        lambda: layers.Conv2D(4, 3, name="made", use_bias=False),
        lambda: layers.DepthwiseConv2D(3, name="made"),
        lambda: layers.Dense(3, name="made"),
    ],
    ids=["convolution", "depthwise", "dense"],
)
def test_a_kernel_is_smaller_by_the_deviation_of_its_batch_norm(layer):
    model = with_deviations(network(layer(), batch_norm(80.0), layers.ReLU()))
    assert smaller_kernels(model) == {"made": pytest.approx(1 / 80, rel=1e-5)}


def test_a_kernel_that_gets_larger_or_stays_is_left_out():
    behind = [layers.Conv2D(4, 3, name="a"), batch_norm(0.5), layers.ReLU(), layers.Conv2D(4, 3, name="b")]
    assert smaller_kernels(with_deviations(network(*behind))) == {}


def test_zeros_do_not_count():
    model = with_deviations(network(layers.Conv2D(4, 3, name="made"), batch_norm(4.0)))
    kernel = model.get_layer("made").kernel
    kernel.assign(np.where(np.arange(72).reshape(kernel.shape) % 3 == 0, kernel, 0))
    assert smaller_kernels(model) == {"made": pytest.approx(1 / 4, rel=1e-5)}
    kernel.assign(np.zeros(kernel.shape))
    assert smaller_kernels(model) == {}


def test_models_inside_the_model_count_too():
    inner = network(layers.Conv2D(4, 3, name="made"), batch_norm(10.0))
    model = keras.Sequential([keras.Input((6, 6, 2)), with_deviations(inner), layers.Flatten(), layers.Dense(2)])
    assert smaller_kernels(model) == {"made": pytest.approx(1 / 10, rel=1e-5)}
