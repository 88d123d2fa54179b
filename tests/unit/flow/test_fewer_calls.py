"""What makes a run of a small network cheap changes no bit of it: traces, steps and batches are only taken together."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from fpgaprune.flow.engine import parse_config
from fpgaprune.flow.task import check_data, predict, read_task, shuffled_batches, start_session, steps_together

RNG = np.random.default_rng(7)
X = RNG.random((24, 6, 6, 1)).astype("float32")
Y = (X.mean(axis=(1, 2, 3)) > 0.5).astype("int64")
DATA = check_data("d", {"x_train": X, "y_train": Y, "x_test": X, "y_test": Y})
TASK = parse_config({"train": {"loss": "sparse_categorical_crossentropy", "metric": "accuracy"}}, "flow").train


def network():
    start_session(3)
    layers = keras.layers
    return keras.Sequential(
        [
            keras.Input((6, 6, 1)),
            layers.Conv2D(4, 3, activation="relu"),
            layers.BatchNormalization(),
            layers.Flatten(),
            layers.Dropout(0.3),
            layers.Dense(2, activation="softmax"),
        ]
    )


class Calls(keras.callbacks.Callback):
    def __init__(self):
        super().__init__()
        self.batches = []

    def on_train_batch_end(self, batch, logs=None):
        self.batches.append(batch)


def trained(together, prepared=False):
    """Every variable after two epochs of six steps, the ends of calls, and how often a step was traced."""
    model, calls, traces = network(), Calls(), []
    task = read_task(TASK, model, DATA)
    task.compile(model, None, 0.01, 12)
    # A lock builds the optimizer before the first step, too.
    model.optimizer.build(model.trainable_variables)
    if prepared:
        task.prepare(model, Y)
    step = model.train_step
    model.train_step = lambda data: (traces.append(1), step(data))[1]
    batches = shuffled_batches(X, Y, 4, 3)
    how = {"epochs": 2, "steps_per_epoch": 6, "shuffle": False, "verbose": 0, "callbacks": [calls]}
    if together:
        with steps_together(model, 6):
            model.fit(batches, **how)
        assert model.steps_per_execution == 1
    else:
        model.fit(batches, **how)
    return [np.asarray(variable) for variable in model.variables], calls.batches, len(traces)


def test_steps_taken_together_leave_the_same_bits():
    one, single, _ = trained(together=False)
    many, grouped, _ = trained(together=True)
    assert single == [*range(6)] * 2
    assert grouped == [5, 5]
    assert all(np.array_equal(a, b) for a, b in zip(one, many, strict=True))


def test_a_prepared_training_is_traced_once_and_leaves_the_same_bits():
    plain, _, twice = trained(together=False)
    ready, _, once = trained(together=False, prepared=True)
    assert (twice, once) == (2, 1)
    assert all(np.array_equal(a, b) for a, b in zip(plain, ready, strict=True))


@pytest.mark.parametrize(("steps", "wanted"), [(1, 1), (34, 34), (202, 2), (300, 100), (211, 1)])
def test_a_group_divides_the_steps_of_an_epoch_and_is_not_long(steps, wanted):
    model = network()
    with steps_together(model, steps):
        assert model.steps_per_execution == wanted


def test_samples_are_predicted_in_one_trace_to_the_bits_of_keras(monkeypatch):
    model = network()
    x = RNG.random((600, 6, 6, 1)).astype("float32")
    wanted = model.predict(x, batch_size=256, verbose=0)
    traces, call = [], model.call
    monkeypatch.setattr(model, "call", lambda *given, **how: (traces.append(1), call(*given, **how))[1])
    found = predict(model, x.astype("float64"))
    assert len(traces) == 1
    assert found.dtype == wanted.dtype
    assert np.array_equal(found, wanted)


def test_several_inputs_and_outputs_are_predicted_in_their_order():
    start_session(3)
    first, second = keras.Input((3,), name="one"), keras.Input((3,), name="two")
    model = keras.Model({"one": first, "two": second}, [keras.layers.Rescaling(2.0)(first), second])
    x = tuple(RNG.random((5, 3)).astype("float32") for _ in range(2))
    doubled, same = predict(model, x)
    assert np.array_equal(doubled, 2 * x[0])
    assert np.array_equal(same, x[1])
    assert not isinstance(doubled, tf.Tensor)


def test_no_thread_of_tensorflow_tunes_buffers_because_the_end_of_fit_would_wait_for_it():
    assert shuffled_batches(X, Y, 4, 3).options().autotune.enabled is False
