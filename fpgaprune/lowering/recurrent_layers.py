"""Checks which GRU, LSTM and SimpleRNN layers a design has, and computes their states.

A step of the hardware computes two products, of the inputs and of the state, their sum, the gates from tables, and the
new state. The products, their sum and the gates have one type, `accum`; the state and an LSTM's cell state have the
type `result`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import keras
import numpy as np
from numpy.typing import NDArray

from fpgaprune.design import FUNCTIONS
from fpgaprune.network import activation_of, described, producer
from fpgaprune.values import Array

RECURRENT = (keras.layers.GRU, keras.layers.LSTM, keras.layers.SimpleRNN)
# The functions that a recurrent layer has in hardware, and those of them that keep a gate between -1 and 1.
_ACTIVATIONS = tuple(function.name for function in FUNCTIONS.values() if function.recurrent)
_GATES = tuple(function.name for function in FUNCTIONS.values() if function.gate)


def recurrent_reason(layer: keras.Layer) -> str | None:
    """Say why hardware would not compute the same as the recurrent `layer`; None if it would."""
    if isinstance(layer.input, list):
        return "it reads an initial state, and hardware begins with zeros: let it begin with zeros"
    if layer.return_state:
        return "it returns its state, which hardware keeps to itself: use return_sequences"
    if layer.stateful:
        return "it keeps its state between samples, and hardware begins each with zeros: use stateful=False"
    if layer.input.shape[1] is None:
        return "its number of steps is unknown: give the model's input a fixed one, as in Input((20, 6))"
    if isinstance(layer, keras.layers.GRU) and not layer.reset_after:
        return "its reset gate acts before the product (reset_after=False), in hardware after it: use reset_after=True"
    for what, name in functions_of(layer).items():
        known = _ACTIVATIONS if what == "activation" else _GATES
        if name not in known:
            own = described(getattr(layer, what))
            return f"its {what} is {own}; hardware has {', '.join(known)} in a recurrent layer"
    return None


def functions_of(layer: keras.Layer) -> dict[str, str]:
    """Return the names of a layer's activation and, if it has one, recurrent activation; empty where it is unknown."""
    whats = ("activation", "recurrent_activation")
    found = {what: activation_of(getattr(layer, what)) for what in whats if hasattr(layer, what)}
    return {what: known.name if known is not None else "" for what, known in found.items()}


def gates_of(layer: keras.Layer) -> int:
    """Return the number of gates of a recurrent layer; a product has this many times `units` numbers."""
    width: int = layer.cell.kernel.shape[-1]
    return width // int(layer.units)


def observed_states(layer: keras.Layer, x: Array) -> NDArray[np.float64]:
    """Compute the state of `layer` after every step for `x` (N, T, C): (N, T, units), for an LSTM (N, T, 2 units).

    An LSTM's cell state comes after its output. Computed in float64 with Keras's order of gates.
    """
    kernel, recurrent, *biases = (np.asarray(array, np.float64) for array in layer.get_weights())
    units, gates = layer.units, gates_of(layer)
    bias = biases[0].reshape(-1, gates * units) if biases else np.zeros((2, gates * units))
    products = x.astype(np.float64) @ kernel + bias[0]
    recurrent_bias = bias[1] if len(bias) > 1 else np.zeros(gates * units)
    step = _STEPS[gates]
    state = np.zeros((len(x), 2 * units if step is _lstm else units))
    found = np.empty((*x.shape[:2], state.shape[-1]))
    functions = [FUNCTIONS[name].values for name in functions_of(layer).values()]
    for place in range(x.shape[1]):
        state = step(products[:, place], state[:, :units] @ recurrent + recurrent_bias, state, *functions)
        found[:, place] = state
    return found


def observe_states(folded: keras.Model, observed: Mapping[str, Array]) -> dict[str, NDArray[np.float64]]:
    """Return a dict: name of each recurrent layer to its `observed_states`, (N, T, ...).

    Args:
        folded: the model from `prepare.fold`.
        observed: the outputs of its layers, from `ranges.observe`.
    """
    return {
        layer.name: observed_states(layer, observed[producer(layer.input).name])
        for layer in folded.layers
        if isinstance(layer, RECURRENT)
    }


def _rnn(x: Array, recurrent: Array, _: Array, function: Any) -> Array:
    state: Array = function(x + recurrent)
    return state


def _gru(x: Array, recurrent: Array, state: Array, function: Any, gate: Any) -> Array:
    units = state.shape[-1]
    update = gate(x[:, :units] + recurrent[:, :units])
    reset = gate(x[:, units : 2 * units] + recurrent[:, units : 2 * units])
    proposed = function(x[:, 2 * units :] + reset * recurrent[:, 2 * units :])
    kept: Array = update * state + (1 - update) * proposed
    return kept


def _lstm(x: Array, recurrent: Array, state: Array, function: Any, gate: Any) -> Array:
    units = state.shape[-1] // 2
    into, forget, proposed, out = np.split(x + recurrent, 4, axis=-1)
    cell = gate(forget) * state[:, units:] + gate(into) * function(proposed)
    return np.concatenate([gate(out) * function(cell), cell], axis=-1)


# By the number of gates.
_STEPS: Mapping[int, Callable[..., Array]] = {1: _rnn, 3: _gru, 4: _lstm}
