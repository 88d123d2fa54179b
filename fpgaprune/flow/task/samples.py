"""`Samples` of a network: an array (N, ...), or a tuple of such arrays for several inputs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fpgaprune.values import Array

if TYPE_CHECKING:
    import keras

_BATCH = 256

Samples = Array | tuple[Array, ...]


def arrays_of(samples: Samples) -> tuple[Array, ...]:
    """Return one array for each input or output."""
    return samples if isinstance(samples, tuple) else (samples,)


def count_of(samples: Samples) -> int:
    """Return the number of samples."""
    return len(arrays_of(samples)[0])


def at(samples: Samples, index: Any) -> Samples:
    """Return the samples at `index`: a slice, an array of numbers, or an array of flags."""
    return tuple(array[index] for array in samples) if isinstance(samples, tuple) else samples[index]


def for_keras(samples: Samples) -> Any:
    """Return `samples` in the form that Keras takes: an array or a list of arrays."""
    return list(samples) if isinstance(samples, tuple) else samples


def samples_of(outputs: Any) -> Samples:
    """Make `Samples` from what Keras returns: an array or a list of arrays."""
    return tuple(outputs) if isinstance(outputs, list) else outputs


def in_shape(samples: Samples, wanted: Samples) -> Samples:
    """Return `samples` in the shapes of `wanted`, because some outputs of hls4ml lack axes of length 1."""
    pairs = zip(arrays_of(samples), arrays_of(wanted), strict=True)
    turned = tuple(np.asarray(array).reshape(like.shape) for array, like in pairs)
    return turned if isinstance(wanted, tuple) else turned[0]


def predict(model: keras.Model, x: Samples) -> Samples:
    """Return the outputs of `model` for `x`.

    `model.predict` computes the same bits, but it traces a model twice where the last batch is smaller, and makes a
    pipeline of the samples each time: a second of processor time in the run of a small network.
    """
    import keras
    import tensorflow as tf

    from fpgaprune.network import graph_of, structures

    inputs = structures(graph_of(model))[0]
    given = [np.asarray(array, one.dtype) for array, one in zip(arrays_of(x), keras.tree.flatten(inputs), strict=True)]

    @tf.function(input_signature=[tf.TensorSpec((None, *array.shape[1:]), array.dtype) for array in given])  # type: ignore[untyped-decorator, unused-ignore]
    def forward(*batch: object) -> Any:
        return keras.tree.flatten(model(keras.tree.pack_sequence_as(inputs, list(batch)), training=False))

    starts = range(0, count_of(x), _BATCH)
    parts = [forward(*(array[start : start + _BATCH] for array in given)) for start in starts]
    outputs = tuple(np.concatenate(pieces) for pieces in zip(*parts, strict=True))
    return outputs if len(outputs) > 1 else outputs[0]
