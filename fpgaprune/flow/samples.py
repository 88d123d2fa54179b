"""Samples of a network with one input or several: an array (N, ...), or a tuple of such arrays."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

Samples = NDArray[Any] | tuple[NDArray[Any], ...]


def arrays_of(samples: Samples) -> tuple[NDArray[Any], ...]:
    """One array for each input or output."""
    return samples if isinstance(samples, tuple) else (samples,)


def count_of(samples: Samples) -> int:
    """How many samples there are."""
    return len(arrays_of(samples)[0])


def at(samples: Samples, index: Any) -> Samples:
    """The samples at `index`: a slice, an array of numbers, or an array of flags."""
    return tuple(array[index] for array in samples) if isinstance(samples, tuple) else samples[index]


def for_keras(samples: Samples) -> Any:
    """The same in the form that Keras takes: an array, or a list of arrays."""
    return list(samples) if isinstance(samples, tuple) else samples
