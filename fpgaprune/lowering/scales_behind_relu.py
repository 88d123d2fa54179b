"""Moves the factors and the shifts of a BatchNorm that stands behind an activation into layers with kernels.

`conv -> relu -> BatchNorm -> conv` needs no BatchNorm in hardware. `a * relu(x)` is `relu(a * x)` for `a` above 0, so
the first convolution multiplies by the factors: what the ReLU gives is then normalised, and fits few bits. The second
takes their signs, and its bias the shifts; where it pads zeros, the shifts stay.
"""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
from numpy.typing import NDArray

from fpgaprune.network import LINEAR, Activation, activation_in, cloned, copied, producer, readers_of, scale_and_shift

_DEPTHWISE = (keras.layers.DepthwiseConv1D, keras.layers.DepthwiseConv2D)
_PRODUCTS = (keras.layers.Dense, keras.layers.Conv1D, keras.layers.Conv2D, *_DEPTHWISE)
_LARGEST = (
    *(keras.layers.MaxPooling1D, keras.layers.MaxPooling2D),
    *(keras.layers.GlobalMaxPooling1D, keras.layers.GlobalMaxPooling2D),
)
_AVERAGES = (
    *(keras.layers.AveragePooling1D, keras.layers.AveragePooling2D),
    *(keras.layers.GlobalAveragePooling1D, keras.layers.GlobalAveragePooling2D),
)
_BENT = (keras.layers.Activation, keras.layers.ReLU)
_Reals = NDArray[np.float64]


def scales_into_products(functional: keras.Model) -> keras.Model:
    """Move BatchNorms behind activations into the layers with kernels around them, where that is exact.

    It computes the same over the reals. A BatchNorm directly behind a linear layer, or at an input, is left alone.

    Args:
        functional: a functional model of layers, channels last; it is not changed.
    """
    moves = _Moves(functional)
    for layer in reversed(functional.layers):
        if isinstance(layer, keras.layers.BatchNormalization) and layer.axis in (-1, len(layer.output.shape) - 1):
            _ = moves.forwards(layer) or moves.backwards(layer)
    if not moves.weights and not moves.gone:
        return functional

    def clone(layer: keras.Layer) -> keras.Layer:
        if layer.name in moves.shifts:
            return copied(layer, epsilon=0.0, scale=True, center=True)
        return copied(layer, use_bias=True) if layer.name in moves.weights else copied(layer)

    def call(layer: keras.Layer, *args: Any, **kwargs: Any) -> keras.KerasTensor:
        return args[0] if layer.name in moves.gone else layer(*args, **kwargs)

    every = {**moves.weights, **moves.shifts}
    # + 0.0 turns -0.0, which a negative factor makes, into 0.0.
    weights = {name: [array.astype("float32") + 0.0 for array in arrays] for name, arrays in every.items()}
    return cloned(functional, clone, call, weights)


class _Moves:
    """Which BatchNorms are gone, and the weights of the layers that compute what they did.

    Attributes:
        weights: name of a layer with a kernel to its new kernel and bias, in float64.
        shifts: name of a BatchNorm that only adds to its new weights.
        gone: names of the BatchNorms that nothing is left of.
    """

    def __init__(self, functional: keras.Model) -> None:
        self.readers = readers_of(functional)
        self.leaving = {id(producer(tensor)) for tensor in functional.outputs}
        self.weights: dict[str, tuple[_Reals, _Reals]] = {}
        self.shifts: dict[str, list[_Reals]] = {}
        self.gone: set[str] = set()

    def forwards(self, norm: keras.layers.BatchNormalization) -> bool:
        """Move `norm` into every product that reads it, if only such do and none pads zeros."""
        scale, shift = scale_and_shift(norm)
        source = self._source(norm)
        if isinstance(source, keras.layers.InputLayer) or _is_linear(source):
            return False
        products = self._products(norm, bool((scale >= 0).all()))
        if not products or not all(_pads_nothing(layer) for layer in products):
            return False
        before = self._before(norm)
        own = np.ones_like(scale) if before is None else np.where(scale == 0, 1, np.abs(scale))
        if before is not None:
            self._multiply(before, own)
        for layer in products:
            self._take(layer, scale / own, shift)
        self.gone.add(norm.name)
        return True

    def backwards(self, norm: keras.layers.BatchNormalization) -> bool:
        """Move the factors of `norm` into the product before the ReLU before it; its shifts stay.

        Signs go into the products behind it.
        """
        scale, shift = scale_and_shift(norm)
        before = self._before(norm)
        if before is None or _is_linear(self._source(norm)) or (scale == 0).any() or (scale == 1).all():
            return False
        signs = np.sign(scale)
        products = self._products(norm, False) if (signs < 0).any() else []
        if products is None:
            return False
        self._multiply(before, np.abs(scale))
        for layer in products:
            self._take(layer, signs, np.zeros_like(scale))
        ones = np.ones(scale.size)
        self.shifts[norm.name] = [ones, shift * signs, 0 * ones, ones]
        return True

    def _before(self, norm: keras.layers.BatchNormalization) -> Any:
        """Return the product whose factors reach `norm`, through a ReLU and pooling; None if there is none."""
        source = self._source(norm)
        while isinstance(source, (*_LARGEST, *_AVERAGES)) and self._is_alone(source):
            source = self._source(source)
        if isinstance(source, _BENT) and self._passes_factors(source):
            source = self._source(source)
        return source if isinstance(source, _PRODUCTS) and self._passes_factors(source) else None

    def _multiply(self, layer: Any, factors: _Reals) -> None:
        """Multiply what `layer` computes, each channel by its factor."""
        kernel, bias = self._weights(layer)
        outputs = kernel.shape[-2:] if isinstance(layer, _DEPTHWISE) else kernel.shape[-1:]
        self.weights[layer.name] = (kernel * factors.reshape(outputs), bias * factors)

    def _take(self, layer: Any, factors: _Reals, shifts: _Reals) -> None:
        """Let `layer` compute what it did of `factors * x + shifts`."""
        kernel, bias = self._weights(layer)
        # A flattened map repeats the channels for each of its positions.
        times = kernel.shape[-2] // factors.size
        factors, shifts = (np.tile(array, times)[:, None] for array in (factors, shifts))
        added = (kernel * shifts).sum(axis=tuple(range(kernel.ndim - (2 if isinstance(layer, _DEPTHWISE) else 1))))
        self.weights[layer.name] = (kernel * factors, bias + added.reshape(-1))

    def _products(self, layer: keras.Layer, grows: bool) -> list[Any] | None:
        """Return the products that read `layer`, through layers that a line passes; None if anything else reads it."""
        found: list[Any] = []
        if id(layer) in self.leaving:
            return None
        for reader in self.readers.get(id(layer), []):
            passed = (keras.layers.Flatten, *_AVERAGES, *(_LARGEST if grows else ()))
            if reader.name in self.gone or isinstance(reader, passed):
                own = self._products(reader, grows)
            else:
                own = [reader] if isinstance(reader, _PRODUCTS) else None
            if own is None:
                return None
            found += own
        return found

    def _source(self, layer: keras.Layer) -> Any:
        source = producer(layer.input)
        return self._source(source) if source.name in self.gone else source

    def _is_alone(self, layer: keras.Layer) -> bool:
        """Return whether one layer reads `layer`, and no output of the network is its own."""
        return len(self.readers.get(id(layer), [])) == 1 and id(layer) not in self.leaving

    def _passes_factors(self, layer: keras.Layer) -> bool:
        known = activation_in(layer)
        return known in (Activation("relu"), LINEAR) and self._is_alone(layer)

    def _weights(self, layer: Any) -> tuple[_Reals, _Reals]:
        if layer.name in self.weights:
            return self.weights[layer.name]
        kernel = np.asarray(layer.kernel, np.float64)
        outputs = kernel.shape[-2] * kernel.shape[-1] if isinstance(layer, _DEPTHWISE) else kernel.shape[-1]
        return kernel, np.asarray(layer.bias, np.float64) if layer.use_bias else np.zeros(outputs)


def _is_linear(layer: keras.Layer) -> bool:
    """Return whether `layer` is a product without an activation: a BatchNorm behind it is folded into it whole."""
    return isinstance(layer, _PRODUCTS) and activation_in(layer) == LINEAR


def _pads_nothing(layer: keras.Layer) -> bool:
    return isinstance(layer, keras.layers.Dense) or layer.padding == "valid"
