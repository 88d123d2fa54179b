"""The writes of common optimizers cost one `Select` a variable; what is written past them is seen and mended."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from fpgaprune.train import Destination, FusedWrites

ko = keras.optimizers
MASK = np.array([True, False])


def trained(optimizer, write_past=None):
    """The weight and its slots after one traced step, how many selects it took, and what was not fused."""
    weight = keras.Variable(np.array([1.0, 2.0], "float32"), name="w")
    optimizer.build([weight])
    slots = [v for v in optimizer._variables if v.shape == weight.shape]
    held, unsettled = [v.value for v in (weight, *slots)], []

    @tf.function(autograph=False)
    def step():
        writes = FusedWrites([Destination(v, tf.constant(MASK), tf.constant([0.0, 8.0])) for v in held])
        with writes.of([optimizer]):
            optimizer.apply([tf.constant([1.0, 1.0])], [weight])
            if write_past is not None:
                write_past(held[0])
        unsettled.extend(target.variable is held[0] for target in writes.unsettled())

    graph = step.get_concrete_function().graph
    step()
    selects = sum(operation.type == "Select" for operation in graph.get_operations())
    return [v.numpy() for v in held], selects, unsettled


@pytest.mark.parametrize(
    ("optimizer", "written"), [(ko.SGD(0.5), 1), (ko.Adam(0.5), 3), (ko.RMSprop(0.5), 2)], ids=lambda x: str(x)[:20]
)
def test_every_write_of_a_common_optimizer_is_one_select_and_leaves_nothing_to_do(optimizer, written):
    arrays, selects, unsettled = trained(optimizer)
    assert (len(arrays), selects, unsettled) == (written, written, [])
    assert [array[1] for array in arrays] == [8.0] * written
    assert all(array[0] not in (0.0, 1.0) for array in arrays)


def test_a_write_past_the_optimizer_leaves_that_variable_to_do():
    _, selects, unsettled = trained(ko.Adam(0.5), lambda variable: variable.assign([3.0, 3.0]))
    assert (selects, unsettled) == (3, [True])


def test_a_variable_that_nothing_wrote_is_left_to_do_and_the_optimizer_is_as_before():
    optimizer = ko.SGD(0.5)
    weight = tf.Variable([1.0, 2.0])

    @tf.function(autograph=False)
    def step():
        writes = FusedWrites([Destination(weight, tf.constant(MASK), None)])
        with writes.of([optimizer]):
            assert set(optimizer.__dict__) >= {"assign", "assign_add", "assign_sub"}
        assert not {"assign", "assign_add", "assign_sub"} & set(optimizer.__dict__)
        assert [target.variable is weight for target in writes.unsettled()] == [True]

    step()
