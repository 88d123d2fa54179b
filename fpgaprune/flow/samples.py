"""`Samples` of a network: an array (N, ...), or a tuple of such arrays for several inputs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

_BATCH = 256
# Tracing a model takes as long as running so many batches without tracing.
_DIRECT = 8
Samples = NDArray[Any] | tuple[NDArray[Any], ...]


def arrays_of(samples: Samples) -> tuple[NDArray[Any], ...]:
    """One array for each input or output."""
    return samples if isinstance(samples, tuple) else (samples,)


def count_of(samples: Samples) -> int:
    """The number of samples."""
    return len(arrays_of(samples)[0])


def at(samples: Samples, index: Any) -> Samples:
    """The samples at `index`: a slice, an array of numbers, or an array of flags."""
    return tuple(array[index] for array in samples) if isinstance(samples, tuple) else samples[index]


def for_keras(samples: Samples) -> Any:
    """`samples` in the form that Keras takes: an array or a list of arrays."""
    return list(samples) if isinstance(samples, tuple) else samples


def samples_of(outputs: Any) -> Samples:
    """`Samples` from what Keras returns: an array or a list of arrays."""
    return tuple(outputs) if isinstance(outputs, list) else outputs


def in_shape(samples: Samples, wanted: Samples) -> Samples:
    """`samples` in the shapes of `wanted`, because some outputs of hls4ml lack axes of length 1."""
    pairs = zip(arrays_of(samples), arrays_of(wanted), strict=True)
    turned = tuple(np.asarray(array).reshape(like.shape) for array, like in pairs)
    return turned if isinstance(wanted, tuple) else turned[0]


def predict(model: Any, x: Samples) -> Samples:
    """The outputs of `model` for `x`.

    A few batches are computed directly, with the same bits: `model.predict` would trace the model first, which takes
    longer.
    """
    if count_of(x) > _DIRECT * _BATCH:
        return samples_of(model.predict(for_keras(x), batch_size=_BATCH, verbose=0))
    import keras

    from fpgaprune.network import graph_of, structures

    inputs, parts = structures(graph_of(model))[0], []
    for start in range(0, count_of(x), _BATCH):
        batch = keras.tree.pack_sequence_as(inputs, list(arrays_of(at(x, slice(start, start + _BATCH)))))
        parts.append([np.asarray(array) for array in keras.tree.flatten(model(batch, training=False))])
    outputs = tuple(np.concatenate(pieces) for pieces in zip(*parts, strict=True))
    return outputs if len(outputs) > 1 else outputs[0]
