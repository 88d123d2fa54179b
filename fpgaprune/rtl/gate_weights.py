"""The weights of a recurrent layer as one matrix: from inputs and state of a step to both sums of every gate."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fpgaprune.design import LayerSpec, Recurrent
from fpgaprune.errors import CertificateError, RtlError

_ROLES = ("weight", "recurrent_weight")


def joined_weights(layer: LayerSpec) -> NDArray[np.int64]:
    """Return the raw matrix (inputs + units, 2 * gates * units) of a recurrent layer.

    Its outputs stand unit by unit and gate by gate; for each gate, the sum of the inputs is followed by that of the
    state.
    """
    units = units_of(layer)
    x, h = (by_unit(layer.weights[role], units) for role in _ROLES)
    found = np.zeros((len(x) + len(h), x.shape[1], 2), np.int64)
    found[: len(x), :, 0], found[len(x) :, :, 1] = x, h
    return found.reshape(len(found), -1)


def parted_weights(matrix: NDArray[np.int64], layer: LayerSpec, role: str) -> NDArray[np.int64]:
    """Return the weights of `role` in a matrix as that of `joined_weights`, in the order of the design.

    Raises:
        CertificateError: a sum of the inputs takes a state, or a sum of the state an input.
    """
    inputs = len(layer.weights["weight"])
    parts = dict(zip(_ROLES, (matrix[:inputs, ::2], matrix[inputs:, 1::2]), strict=True))
    if np.count_nonzero(matrix) != sum(map(np.count_nonzero, parts.values())):
        raise CertificateError(f"layer {layer.name!r}: a sum of the Verilog reads values of another one")
    return by_unit(parts[role], matrix.shape[1] // 2 // units_of(layer))


def by_unit(weights: NDArray[np.int64], units: int) -> NDArray[np.int64]:
    """Order weights or biases (..., gates * units) unit by unit instead of gate by gate."""
    return weights.reshape(*weights.shape[:-1], -1, units).swapaxes(-1, -2).reshape(weights.shape)


def units_of(layer: LayerSpec) -> int:
    """Return the numbers in the state of a recurrent layer.

    Raises:
        RtlError: it is another layer.
    """
    if not isinstance(layer.operation, Recurrent):
        raise RtlError(f"layer {layer.name!r} is a {layer.kind}, which has no state")
    return layer.operation.units
