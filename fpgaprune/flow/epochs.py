"""`shuffled_batches`: training samples in an order that depends only on the seed and the epoch."""

from __future__ import annotations

from typing import Any

from fpgaprune.flow.data import Dataset
from fpgaprune.flow.samples import Samples, arrays_of, count_of
from fpgaprune.flow.section import Flow
from fpgaprune.flow.sections import FinetuneConfig


def shuffled_batches(x: Samples, y: Samples, batch_size: int, seed: int, epoch: int = 0) -> Any:
    """An endless `tf.data.Dataset` of batches (x, y), shuffled anew in each epoch.

    Keras draws its own order from a state that no file keeps. With this order, a training that was stopped continues
    with the batches that it would have seen. Give `steps_in_epoch` to `model.fit` as `steps_per_epoch`.

    Args:
        x: samples (N, ...), or a tuple of such arrays for several inputs.
        y: labels in the same form.
        batch_size: samples in a batch; the last batch of an epoch may be smaller.
        seed: seed of the order.
        epoch: number of the first epoch.
    """
    import tensorflow as tf

    arrays = [tf.constant(array) for array in (*arrays_of(x), *arrays_of(y))]
    inputs = len(arrays_of(x))

    def batches(number: Any) -> Any:
        order = tf.random.experimental.stateless_shuffle(tf.range(count_of(x)), seed=tf.stack([seed, number]))
        return tf.data.Dataset.from_tensor_slices(order).batch(batch_size)

    def gathered(rows: Any) -> Any:
        found = [tf.gather(array, rows) for array in arrays]
        samples, labels = tuple(found[:inputs]), tuple(found[inputs:])
        return samples if isinstance(x, tuple) else samples[0], labels if isinstance(y, tuple) else labels[0]

    numbers = tf.data.Dataset.counter(epoch, dtype=tf.int32)
    return numbers.flat_map(batches).map(gathered).prefetch(tf.data.AUTOTUNE)


def steps_in_epoch(x: Samples, batch_size: int) -> int:
    """Batches in an epoch."""
    return -(-count_of(x) // batch_size)


def steps_of(config: Flow, data: Dataset) -> int:
    """Training steps of one fine-tuning, or of one round if there are rounds."""
    settings = config[FinetuneConfig]
    return settings.epochs * steps_in_epoch(data.x_train, settings.batch_size)
