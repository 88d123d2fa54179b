"""`DenseNetwork`: a Keras network of Dense layers one behind another as a `Chain`, and back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import keras
import numpy as np

from fpgaprune.errors import UnsupportedLayerError
from fpgaprune.network import producer
from fpgaprune.quantise import RoundedChannels
from fpgaprune.trim.chain import Chain, ChannelTypes, Floats
from fpgaprune.trim.moves import mean_lost
from fpgaprune.values import FixedType

_WANTED = "wanted Dense layers one behind another with ReLU between them"
# Activations behind the last layer that leave the order of its outputs as it is.
_LAST = ("linear", "softmax", "sigmoid")
# What computes nothing, or is part of a Dense layer once the network rounds.
_NOTHING = (keras.layers.InputLayer, keras.layers.Dropout, keras.layers.BatchNormalization)
_COMPUTES = (keras.layers.Dense, keras.layers.Activation, keras.layers.ReLU, keras.layers.Softmax)


@dataclass(frozen=True)
class DenseNetwork:
    """A network of Dense layers and the numbers of its hardware.

    Attributes:
        model: the layers.
        trained: weights and biases, and for each channel the type of its value.
        chain: the same for trimming: it cuts off bits of the input, which takes no hardware, and does not round.
    """

    model: keras.Model
    trained: Chain
    chain: Chain

    @classmethod
    def read(cls, model: keras.Model, types: Mapping[str, Mapping[str, str]], x: Floats) -> DenseNetwork:
        """Return the network `model`, whose weights and biases are those of the hardware.

        Args:
            model: layers of Keras's own, as the training with the hardware's rounding leaves them.
            types: layer to role to hardware type.
            x: samples (N, inputs), that show what an input loses whose bits are cut off, not rounded.

        Raises:
            UnsupportedLayerError: it is no row of Dense layers, or a type rounds otherwise than half up and saturates.
        """
        for problem in untrimmable(model):
            raise UnsupportedLayerError(f"trim: {problem}")
        kernels: list[Floats] = []
        biases: list[Floats] = []
        found: list[ChannelTypes] = []
        source = producer(model.inputs[0]).name
        for layer in model.layers:
            if isinstance(layer, keras.layers.Dense):
                kernel = np.asarray(layer.kernel, np.float32)
                kind = FixedType.parse(types[source]["result"])
                if (kind.rounding, kind.overflow) != ("RND", "SAT"):
                    raise UnsupportedLayerError(f"trim: {source!r} has the type {kind}; wanted RND and SAT")
                size = len(kernel)
                bias = np.zeros(kernel.shape[1]) if layer.bias is None else np.asarray(layer.bias)
                found.append(ChannelTypes(np.full(size, kind.width), np.full(size, kind.integer), kind.signed))
                kernels.append(kernel)
                biases.append(bias.astype(np.float32))
            if isinstance(layer, _COMPUTES):
                source = layer.name
        trained = Chain(tuple(kernels), tuple(biases), tuple(found))
        cut = replace(found[0], rounds=False)
        shifted = biases[0] + mean_lost(found[0].rounded(x), cut.rounded(x), cut) @ kernels[0]
        return cls(model, trained, trained.with_types(0, cut).with_biases(0, shifted))

    @property
    def last(self) -> str:
        """The activation behind the last Dense layer: `linear`, `softmax` or `sigmoid`."""
        return _activation(self.model.layers[-1])

    def with_chain(self, chain: Chain) -> keras.Model:
        """Return a network of Keras with the numbers of `chain`, which rounds each channel to a type of its own."""
        fills: list[tuple[Any, list[Any]]] = []
        start = keras.Input(self.model.input_shape[1:], name=producer(self.model.inputs[0]).name)
        values, number = start, 0
        if len(start.shape) > 2:
            # What is no row yet gets one type, so that the hardware knows how it comes.
            given, size = self.chain.types[0], start.shape[-1]
            whole = replace(given, width=given.width[:size], integer=given.integer[:size])
            values = self._rounded(values, whole, f"{start.name}_rounded", fills)
        for layer in self.model.layers:
            if isinstance(layer, keras.layers.Dense):
                values = self._rounded(values, chain.types[number], f"{layer.name}_input", fills)
                copy = keras.layers.Dense(layer.units, name=layer.name)
                values = copy(values)
                fills.append((copy, [chain.kernels[number], chain.biases[number]]))
                number += 1
            elif not isinstance(layer, keras.layers.Dropout | keras.layers.InputLayer):
                values = layer.__class__.from_config(layer.get_config())(values)
        model = keras.Model(start, values, name=self.model.name)
        for layer, arrays in fills:
            layer.set_weights(arrays)
        return model

    def _rounded(self, values: Any, types: ChannelTypes, name: str, fills: list[tuple[Any, list[Any]]]) -> Any:
        """Return `values` behind a layer that rounds them to `types`; `fills` gets its weights."""
        layer = RoundedChannels("RND" if types.rounds else "TRN", "SAT", name=name)
        live = types.width > 0
        arrays = (types.width, np.where(live, types.integer, 0), np.where(live, int(types.signed), 0))
        fills.append((layer, [array.astype(np.float32) for array in arrays]))
        return layer(values)


def untrimmable(model: keras.Model) -> Iterator[str]:
    """Yield a line for each layer of `model` that has no place in a row of Dense layers."""
    if len(model.inputs) != 1 or len(model.outputs) != 1:
        yield f"the network has {len(model.inputs)} inputs and {len(model.outputs)} outputs; {_WANTED}"
        return
    layers = [layer for layer in model.layers if not isinstance(layer, _NOTHING)]
    dense = [at for at, layer in enumerate(layers) if isinstance(layer, keras.layers.Dense)]
    if not dense:
        yield f"the network has no Dense layer; {_WANTED}"
        return
    for at, layer in enumerate(layers):
        if isinstance(layer, keras.layers.Flatten) and not at:
            continue
        if not isinstance(layer, _COMPUTES) or at < dense[0] or len(layer.input.shape) != 2:
            yield f"layer {layer.name!r} is {type(layer).__name__}; {_WANTED}"
        elif _activation(layer) not in (("linear", "relu") if at < dense[-1] else _LAST):
            yield f"layer {layer.name!r} has the activation {_activation(layer)!r}; {_WANTED}"
    for first, second in pairwise(dense):
        if "relu" not in map(_activation, layers[first:second]):
            yield f"layer {layers[first].name!r} has no activation; {_WANTED}"


def _activation(layer: keras.Layer) -> str:
    if isinstance(layer, keras.layers.ReLU):
        return "relu" if layer.max_value is None and not layer.negative_slope and not layer.threshold else "ReLU"
    if isinstance(layer, keras.layers.Softmax):
        return "softmax" if layer.axis == -1 else "Softmax"
    return str(getattr(getattr(layer, "activation", None), "__name__", "linear"))
