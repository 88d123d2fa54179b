"""Slots are found for the weights that they were made for, in optimizers built long ago."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from fpgaprune.train import find_slots

ko = keras.optimizers


def weights_of(*paths_and_shapes):
    made = []
    for path, shape in paths_and_shapes:
        scope, name = path.split("/")
        with keras.name_scope(scope):
            made.append(keras.Variable(np.zeros(shape, "float32"), name=name))
    return made


WEIGHTS = [("a/kernel", (2, 3)), ("a/bias", (3,)), ("b/kernel", (3, 3)), ("b/kernel_momentum", (3, 3))]


@pytest.mark.parametrize(
    ("optimizer", "wanted"),
    [
        (ko.SGD(), 0),
        (ko.SGD(momentum=0.5), 1),
        (ko.Adam(amsgrad=True, use_ema=True, gradient_accumulation_steps=2), 5),
        (ko.RMSprop(momentum=0.5, centered=True), 3),
        (ko.Adafactor(), 1),
        (ko.LossScaleOptimizer(ko.Adam()), 2),
        (ko.MultiOptimizer(ko.OptimizerMap(ko.Adam(), {".*a.*": ko.Nadam()})), 2),
    ],
    ids=lambda value: type(value).__name__,
)
def test_every_slot_is_found_in_its_weights_place(optimizer, wanted):
    weights = weights_of(*WEIGHTS)
    optimizer.build(weights)
    slots = find_slots(optimizer, weights)
    assert [len(found) for found in slots] == [wanted] * 4
    for weight, found in zip(weights, slots, strict=True):
        for slot in found:
            assert tuple(slot.shape) == tuple(weight.shape)
            assert slot.name.startswith(weight.path.replace("/", "_") + "_")
    assert len({id(slot) for found in slots for slot in found}) == 4 * wanted


def test_two_weights_of_one_path_have_a_slot_each():
    weights = weights_of(("twin/kernel", (2, 2)), ("other/kernel", (2, 2)), ("twin/kernel", (2, 2)))
    adam = ko.Adam()
    adam.build(weights)
    slots = find_slots(adam, weights)
    assert slots[0] == [adam._momentums[0], adam._velocities[0]]
    assert slots[2] == [adam._momentums[2], adam._velocities[2]]


def test_a_plain_tensorflow_variable_has_its_slots_too():
    weight = tf.Variable([1.0, 2.0], name="plain")
    adam = ko.Adam()
    adam.build([weight])
    assert find_slots(adam, [weight]) == [[adam._momentums[0], adam._velocities[0]]]
