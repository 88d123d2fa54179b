"""`shuffled_batches`: training samples in an order that depends only on the seed and the epoch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from fpgaprune.flow.file import FinetuneConfig, Flow
from fpgaprune.flow.task.data import Dataset
from fpgaprune.flow.task.samples import Samples, arrays_of, count_of

if TYPE_CHECKING:
    import keras

# Keras is called back after so many steps at most, because a user may want to stop a training.
MOST_STEPS_TOGETHER = 100
# Batches that are prepared while a step runs.
_AHEAD = 4


def shuffled_batches(
    x: Samples, y: Samples, batch_size: int, seed: int, epoch: int = 0, weights: Samples | None = None
) -> Any:
    """Return an endless `tf.data.Dataset` of batches (x, y) or (x, y, sample_weight), shuffled anew in each epoch.

    Keras draws its own order from a state that no file keeps. With this order, a training that was stopped continues
    with the batches that it would have seen. Give `steps_in_epoch` to `model.fit` as `steps_per_epoch`.

    Args:
        x: samples (N, ...), or a tuple of such arrays for several inputs.
        y: labels in the same form.
        batch_size: samples in a batch; the last batch of an epoch may be smaller.
        seed: seed of the order.
        epoch: number of the first epoch.
        weights: the weights of the samples, in the form of the labels; None if all are 1.
    """
    import tensorflow as tf

    samples = (x, y) if weights is None else (x, y, weights)
    parts = [[tf.constant(array) for array in arrays_of(part)] for part in samples]

    def batches(number: object) -> Any:
        order = tf.random.experimental.stateless_shuffle(tf.range(count_of(x)), seed=tf.stack([seed, number]))
        return tf.data.Dataset.from_tensor_slices(order).batch(batch_size)

    def gathered(rows: object) -> Any:
        found = [tuple(tf.gather(array, rows) for array in part) for part in parts]
        return tuple(
            arrays if isinstance(part, tuple) else arrays[0] for part, arrays in zip(samples, found, strict=True)
        )

    numbers = tf.data.Dataset.counter(epoch, dtype=tf.int32)
    options = tf.data.Options()
    # The thread that tunes buffers sleeps ever longer, and the end of `fit` often waits for it: 40 s after a minute.
    options.autotune.enabled = False
    # Neither has a branch that a tensor decides, and converting both takes as long as an epoch of a small network.
    plain = tf.autograph.experimental.do_not_convert
    return numbers.flat_map(plain(batches)).map(plain(gathered)).prefetch(_AHEAD).with_options(options)


def steps_in_epoch(x: Samples, batch_size: int) -> int:
    """Count the batches in an epoch."""
    return -(-count_of(x) // batch_size)


def steps_of(config: Flow, data: Dataset) -> int:
    """Count the training steps of one fine-tuning, or of one round if there are rounds."""
    settings = config[FinetuneConfig]
    return settings.epochs * steps_in_epoch(data.x_train, settings.batch_size)


@contextmanager
def steps_together(model: keras.Model, steps: int) -> Iterator[None]:
    """Make `fit` take many of an epoch's `steps` in one call of TensorFlow within the block, with the same bits.

    A step of a small network takes less time than its call. A callback may act at a batch only if its number is a
    multiple of `steps`, because Keras calls back only after such a group. The number in a group divides `steps`: an
    endless dataset would go on past the epoch.
    """
    model.steps_per_execution = max(n for n in range(1, min(steps, MOST_STEPS_TOGETHER) + 1) if steps % n == 0)
    try:
        yield
    finally:
        model.steps_per_execution = 1
