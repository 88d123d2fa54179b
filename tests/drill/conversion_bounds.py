"""How far a design may be from Keras: a bound for each output that follows from types, tables and weights alone.

Each layer hands on the error of what it reads, multiplied by what its function can do to it, and adds what its own
types round or cut off and what the steps of its tables leave out. No figure here was fitted to what the emulator gives.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import keras
import numpy as np

from fpgaprune.design import Design
from fpgaprune.lowering import BOUND, FOLDABLE, RECURRENT, role_weights
from fpgaprune.network import producer, scale_and_shift
from fpgaprune.values import FixedType

_ENTRIES = 1024
# Of a table of so many entries: steps between entries, largest slope, and what lies beyond both ends.
_TABLES = {
    "sigmoid": (1 / 64, 0.25, 4e-4),
    "tanh": (1 / 128, 1.0, 7e-4),
    "softplus": (1 / 64, 1.0, 4e-4),
    "softsign": (1 / 64, 1.0, 0.0),
    "elu": (1 / 128, 1.0, math.exp(-7.99)),
    "selu": (1 / 128, 1.76, 1.76 * math.exp(-7.99)),
    # Their tables hold f(-|x|), whose slope is at most a half; beyond the end stands gelu(-3.99), silu(-7.99).
    "gelu": (0.5 / 256, 1.13, 1.4e-4),
    "silu": (0.5 / 128, 1.1, 2.8e-3),
    "mish": (1 / 64, 1.1, 2.7e-3),
    "exponential": (1 / 64, math.inf, 4e-4),
}


class Bounds:
    """Layer by layer, how far the hardware may be from `folded`."""

    def __init__(self, folded: Any, design: Design, seen: Mapping[str, np.ndarray]) -> None:
        """Bounds of `folded` as `design` computes it; `seen` is what each of its layers gives in floating point."""
        self.types = {layer.name: layer.types for layer in design.layers}
        self.entries = {layer.name: getattr(layer.operation, "table_size", None) for layer in design.layers}
        self.seen = seen
        self.found: dict[str, float] = {}
        for layer in folded.layers:
            self.found[layer.name] = self._of(layer) + self._lost(layer.name)

    def _lost(self, name: str) -> float:
        """What rounding to the result's type, and saturating there, can cost."""
        kind = self.types.get(name, {}).get("result")
        if kind is None:
            return 0.0
        values = self.seen[name]
        beyond = max(values.max() - kind.raw_max * kind.lsb, kind.raw_min * kind.lsb - values.min(), 0.0)
        return kind.lsb + (beyond if kind.overflow.startswith("SAT") else 0.0) + 1e-5 * self.size(name)

    def size(self, name: str) -> float:
        return float(np.abs(self.seen[name]).max())

    def table(self, name: str, function: str) -> tuple[float, float, float]:
        """Step, slope and tail of the table of `function` in layer `name`."""
        step, slope, tail = _TABLES[function]
        # Its slope is its value, here that of the largest that the samples give.
        slope = 1.1 * self.size(name) if function == "exponential" else slope
        return step * _ENTRIES / (self.entries.get(name) or _ENTRIES), slope, tail

    def _kind(self, name: str, role: str) -> FixedType | None:
        return self.types.get(name, {}).get(role)

    def _unit(self, name: str, role: str) -> float:
        kind = self._kind(name, role)
        return kind.lsb if kind is not None else 0.0

    def _of(self, layer: Any) -> float:
        if isinstance(layer, keras.layers.InputLayer):
            return 0.0
        read = layer.input if isinstance(layer.input, list) else [layer.input]
        names = [producer(tensor).name for tensor in read]
        errors, sizes = [self.found[name] for name in names], [self.size(name) for name in names]
        if isinstance(layer, FOLDABLE):
            return self._product(layer, errors[0], sizes[0])
        if isinstance(layer, RECURRENT):
            return self._recurrent(layer, errors[0])
        rule = _RULES.get(type(layer).__name__)
        if rule is not None:
            return rule(self, layer, errors, sizes)
        # Layers that choose among what comes in.
        return max(errors)

    def _product(self, layer: Any, error: float, size: float) -> float:
        kernel = np.abs(role_weights(layer)["weight"])
        outputs = -2 if type(layer).__name__.startswith("Depthwise") else -1
        columns = np.moveaxis(kernel, outputs, -1).reshape(-1, kernel.shape[outputs])
        unit = self._unit(layer.name, "weight")
        moved = np.count_nonzero(columns, axis=0) * unit
        bias = self._unit(layer.name, "bias") if layer.use_bias else 0.0
        return float((columns.sum(axis=0) * error + moved * (size + error)).max()) + bias

    def _recurrent(self, layer: Any, error: float) -> float:
        """Step by step with the numbers that the samples give, and an error for each of them."""
        weights = {role: value.astype(np.float64) for role, value in role_weights(layer).items()}
        x = self.seen[producer(layer.input).name].astype(np.float64)
        sums = np.zeros(weights["weight"].shape[-1])
        zero, units = sums, {role: self._unit(layer.name, role) for role in weights}
        lsb = self._lost(layer.name)
        state, off = np.zeros((len(x), layer.units)), np.zeros((len(x), layer.units))
        cell, cell_off = state, off
        for step in range(x.shape[1]):
            into = x[:, step] @ weights["weight"] + weights.get("bias", zero)
            into_off = error * np.abs(weights["weight"]).sum(axis=0) + units.get("bias", 0.0)
            into_off = into_off + units["weight"] * (np.abs(x[:, step]) + error).sum(axis=1, keepdims=True)
            back = state @ weights["recurrent_weight"] + weights.get("recurrent_bias", zero)
            back_off = off @ np.abs(weights["recurrent_weight"]) + units.get("recurrent_bias", 0.0)
            back_off = back_off + units["recurrent_weight"] * (np.abs(state) + off).sum(axis=1, keepdims=True)
            gates = np.split(into + back, weights["weight"].shape[-1] // layer.units, axis=1)
            offs = np.split(into_off + back_off, len(gates), axis=1)
            if isinstance(layer, keras.layers.LSTM):
                (i, f, o), (di, df, do) = zip(
                    *(self._through(layer, layer.recurrent_activation, gates[k], offs[k]) for k in (0, 1, 3)),
                    strict=True,
                )
                g, dg = self._through(layer, layer.activation, gates[2], offs[2])
                cell_off = f * cell_off + (np.abs(cell) + cell_off) * df + i * dg + (np.abs(g) + dg) * di + 2 * lsb
                cell = f * cell + i * g
                out, out_off = self._through(layer, layer.activation, cell, cell_off)
                state, off = o * out, o * out_off + (np.abs(out) + out_off) * do + lsb
            elif isinstance(layer, keras.layers.SimpleRNN):
                state, off = self._through(layer, layer.activation, gates[0], offs[0])
                off = off + lsb
            else:
                (z, r), (dz, dr) = zip(
                    *(self._through(layer, layer.recurrent_activation, gates[k], offs[k]) for k in (0, 1)),
                    strict=True,
                )
                inner, inner_off = back[:, 2 * layer.units :], back_off[:, 2 * layer.units :]
                new, new_off = self._through(
                    layer,
                    layer.activation,
                    into[:, 2 * layer.units :] + r * inner,
                    into_off[:, 2 * layer.units :] + r * inner_off + (np.abs(inner) + inner_off) * dr,
                )
                off = z * off + (1 - z) * new_off + (np.abs(state - new) + off + new_off) * dz + 2 * lsb
                state = z * state + (1 - z) * new
        return float(off.max())

    def _through(self, layer: Any, activation: Any, x: np.ndarray, off: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """What `activation` makes of `x`, and of its error."""
        name = activation.__name__
        if name not in _TABLES:
            return np.maximum(x, 0), off
        step, slope, tail = self.table(layer.name, name)
        table = self._unit(layer.name, "table")
        function = np.tanh if name == "tanh" else _sigmoid
        # Both functions reach from one end to the other at most.
        return function(x), np.minimum(slope * (off + step) + tail, 2.0 if name == "tanh" else 1.0) + table


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


Rule = Callable[[Bounds, Any, list[float], list[float]], float]


def _activation(bounds: Bounds, layer: Any, errors: list[float], sizes: list[float]) -> float:
    name = layer.activation.__name__ if hasattr(layer, "activation") else type(layer).__name__.lower()
    error = errors[0]
    if name == "softmax":
        return BOUND + error / 2
    if name == "leaky_relu":
        return error + 2.0**-14 * sizes[0]
    if name not in _TABLES:
        return error
    step, slope, tail = bounds.table(layer.name, name)
    scale = abs(float(getattr(layer, "alpha", 1.0)))
    more = 2 * bounds._unit(producer(layer.input).name, "result") + 2.0**-14
    table = bounds._unit(layer.name, "table")
    slope = max(slope * max(scale, 1.0), 1.0)
    return slope * (error + step) + tail + 2 * table + more * sizes[0]


def _relu(bounds: Bounds, layer: Any, errors: list[float], sizes: list[float]) -> float:
    if not layer.threshold:
        return errors[0] + 2.0**-13 * sizes[0]
    # It jumps at its threshold, which is rounded, too.
    values = bounds.seen[producer(layer.input).name]
    near = np.abs(values - layer.threshold).min() <= errors[0] + 2.0**-13
    return errors[0] + (abs(layer.threshold) if near else 0.0)


def _sloped(bounds: Bounds, layer: Any, errors: list[float], sizes: list[float]) -> float:
    slopes = layer.alpha if hasattr(layer, "alpha") else layer.negative_slope
    largest = max(1.0, float(np.abs(np.asarray(slopes)).max()))
    return largest * errors[0] + bounds._unit(layer.name, "param") * sizes[0]


def _norm(bounds: Bounds, layer: Any, errors: list[float], sizes: list[float]) -> float:
    scale, _ = scale_and_shift(layer)
    units = [bounds._unit(layer.name, role) for role in ("scale", "bias")]
    return float(np.abs(scale).max()) * errors[0] + units[0] * sizes[0] + units[1]


def _times(_: Bounds, __: Any, errors: list[float], sizes: list[float]) -> float:
    return sizes[0] * errors[1] + sizes[1] * errors[0] + errors[0] * errors[1]


_AVERAGES = ("AveragePooling1D", "AveragePooling2D", "GlobalAveragePooling1D", "GlobalAveragePooling2D")
_RULES: Mapping[str, Rule] = {
    "Activation": _activation,
    "Softmax": _activation,
    "ELU": _activation,
    "ReLU": _relu,
    "LeakyReLU": _sloped,
    "PReLU": _sloped,
    "BatchNormalization": _norm,
    "Add": lambda _, __, errors, ___: sum(errors),
    "Subtract": lambda _, __, errors, ___: sum(errors),
    "Average": lambda _, __, errors, ___: sum(errors) / 2,
    "Multiply": _times,
    # Sums are exact; a quotient is cut off, before it is assigned.
    **dict.fromkeys(_AVERAGES, lambda bounds, layer, errors, _: errors[0] + bounds._unit(layer.name, "result")),
}
