"""What is read of a network: its steps, which channel is made of which, and what is refused."""

import keras
import numpy as np
import pytest
from keras import layers

from fpgaprune.errors import RemovalError
from fpgaprune.network import RULES, Role, graph_of, network_of, role_of
from fpgaprune.select import close
from fpgaprune.values import MaskSet


def routes(model, name):
    network = network_of(model)
    (step,) = (step for step in network.steps if step.path == name)
    return [None if route is None else route.tolist() for route in network.routes(step)]


@pytest.mark.parametrize(
    ("axis", "found"),
    [
        (-1, [[0, 1, -1, -1, -1], [-1, -1, 0, 1, 2]]),
        (3, [[0, 1, -1, -1, -1], [-1, -1, 0, 1, 2]]),
        (1, [None, None]),
        (-2, [None, None]),
    ],
)
def test_the_last_axis_is_counted_from_either_end(axis, found):
    shapes = [(4, 4, 2), (4, 4, 3)] if axis in (-1, 3) else [(4, 4, 2), (4, 4, 2)]
    one, two = (keras.Input(shape, name=f"in{at}") for at, shape in enumerate(shapes))
    model = keras.Model([one, two], layers.Concatenate(axis=axis, name="join")([one, two]))
    assert routes(model, "join") == found


def test_a_flat_vector_holds_each_channel_once_for_each_position():
    x = keras.Input((2, 1, 3))
    assert routes(keras.Model(x, layers.Flatten(name="flat")(x)), "flat") == [[0, 1, 2, 0, 1, 2]]


def test_a_sum_of_unlike_widths_has_a_route_from_the_wide_one_only():
    one, two = keras.Input((4, 4, 3)), keras.Input((4, 4, 1))
    assert routes(keras.Model([one, two], layers.Add(name="add")([one, two])), "add") == [[0, 1, 2], None]


def test_models_inside_are_written_out_once_for_each_call():
    inner = keras.Sequential([keras.Input((3,)), layers.Dense(3, name="d")], name="inner")
    x = keras.Input((3,))
    network = network_of(keras.Model(x, inner(inner(x))))
    assert [step.path for step in network.steps] == ["inner/d", "inner/d"]
    first, second = network.steps
    assert (network.inputs, first.outputs, network.outputs) == (first.inputs, second.inputs, second.outputs)


class Doubled(keras.Model):
    def call(self, inputs):
        return 2 * super().call(inputs)


class Heir(Doubled):
    """Its `call` stands in the class above."""


@pytest.mark.parametrize("kind", [Doubled, Heir])
def test_a_model_with_a_call_of_its_own_is_not_read(kind):
    x = keras.Input((3,))
    model = kind(x, layers.Dense(2)(x))
    assert network_of(model) is None
    with pytest.raises(RemovalError, match=f"is a {kind.__name__}; wanted a functional or Sequential"):
        graph_of(model)


def test_a_rule_is_that_of_the_class_that_computes_with_its_channels_last():
    class Mine(layers.Conv2D):
        pass

    class Doubled(layers.Conv2D):
        def call(self, inputs):
            return 2 * super().call(inputs)

    assert role_of(layers.Conv2D(2, 3)) is role_of(Mine(2, 3)) is Role.CONVOLUTION
    assert role_of(Doubled(2, 3)) is None
    x = keras.Input((2, 4, 4))
    model = keras.Model(x, layers.MaxPooling2D(data_format="channels_first", name="pool")(x))
    assert network_of(model).steps[0].role is None


def test_each_class_with_a_role_is_a_class_of_keras():
    assert all(kind.__module__.startswith("keras.") for kind in RULES)
    assert {rule.role for rule in RULES.values()} == {None, *Role}


def test_a_channel_is_not_taken_for_zero_past_a_number_that_is_added():
    x = keras.Input((3,))
    y = layers.Dense(2, use_bias=False, name="make")(x)
    model = keras.Model(x, layers.Dense(2, name="read")(y + 0.5))
    masks = MaskSet({"make/kernel": np.array([[False, True]] * 3)})
    assert "read/kernel" not in close(masks, model).masks
