"""A rounded network without its rounding: the layers of Keras again, and the types that they had."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import keras

from fpgaprune.network import cloned, copied, producer
from fpgaprune.quantise import layers, recurrent, softmax, tables
from fpgaprune.quantise.layers import Rounded
from fpgaprune.values import FixedType, named_weights

PLAIN: Mapping[type, Any] = {
    layers.RoundedDense: keras.layers.Dense,
    layers.RoundedConv1D: keras.layers.Conv1D,
    layers.RoundedConv2D: keras.layers.Conv2D,
    layers.RoundedDepthwiseConv1D: keras.layers.DepthwiseConv1D,
    layers.RoundedDepthwiseConv2D: keras.layers.DepthwiseConv2D,
    layers.RoundedBatchNormalization: keras.layers.BatchNormalization,
    layers.RoundedAveragePooling1D: keras.layers.AveragePooling1D,
    layers.RoundedAveragePooling2D: keras.layers.AveragePooling2D,
    layers.RoundedGlobalAveragePooling1D: keras.layers.GlobalAveragePooling1D,
    layers.RoundedGlobalAveragePooling2D: keras.layers.GlobalAveragePooling2D,
    layers.RoundedLeakyReLU: keras.layers.LeakyReLU,
    layers.RoundedPReLU: keras.layers.PReLU,
    tables.RoundedActivation: keras.layers.Activation,
    tables.RoundedELU: keras.layers.ELU,
    softmax.RoundedSoftmax: keras.layers.Softmax,
    recurrent.RoundedGRU: keras.layers.GRU,
    recurrent.RoundedLSTM: keras.layers.LSTM,
    recurrent.RoundedSimpleRNN: keras.layers.SimpleRNN,
    layers.RoundedAdd: keras.layers.Add,
    layers.RoundedSubtract: keras.layers.Subtract,
    layers.RoundedMultiply: keras.layers.Multiply,
    layers.RoundedAverage: keras.layers.Average,
}
ROUNDED: Mapping[type, Any] = {plain: own for own, plain in PLAIN.items()}
# What the layers that round are told besides, and those of Keras are not.
_OWN = ("types", "sum_dtype", "fraction", "accum", "table_size", "factor", "tables", "sizes")


def is_rounded(model: keras.Model) -> bool:
    """Return whether `model` has a layer that rounds as the hardware does."""
    return any(isinstance(layer, (Rounded, *PLAIN)) for layer in model.layers)


def rounded_types(model: keras.Model) -> dict[str, dict[str, FixedType]]:
    """Map layer name to role to type, for every layer of `model` whose weights or results are rounded."""
    found: dict[str, dict[str, FixedType]] = {}
    for layer in model.layers:
        if isinstance(layer, Rounded):
            source = producer(layer.input)
            found.setdefault(source.name, {})["result"] = layer.types["result"]
        elif type(layer) in PLAIN:
            found.setdefault(layer.name, {}).update(layer.types)
    return found


# The role of a kernel, by the name of its variable.
_KERNELS = {"kernel": "weight", "recurrent_kernel": "recurrent_weight"}


def kernel_types(model: keras.Model) -> dict[str, FixedType]:
    """Map weight path to type, of every kernel of `model` that is rounded."""
    types, found = rounded_types(model), {}
    for path in named_weights(model):
        # The weights of a recurrent layer belong to the cell inside it: `gru/gru_cell/kernel`.
        layer, role = path.partition("/")[0], _KERNELS.get(path.rpartition("/")[2])
        if role in types.get(layer, {}):
            found[path] = types[layer][role]
    return found


def with_next_power(kinds: Mapping[str, str]) -> dict[str, str]:
    """Return `kinds` of a layer, by role, as text, where its weights have one more bit on the left.

    The power of two nearest to the largest weight is then a value of the type, as 2.0 for a weight of 1.75.
    """
    read = {role: FixedType.parse(kinds[role]) for role in _KERNELS.values() if role in kinds}
    wider = {role: replace(kind, width=kind.width + 1, integer=kind.integer + 1) for role, kind in read.items()}
    return {**kinds, **{role: str(kind) for role, kind in wider.items()}}


def unrounded(model: keras.Model) -> keras.Model:
    """Return a new model of Keras's own layers with the weights of `model`, as floats; nothing in it is rounded."""

    def call(layer: keras.Layer, *args: object, **kwargs: object) -> keras.KerasTensor:
        return args[0] if isinstance(layer, Rounded) else layer(*args, **kwargs)

    return cloned(keras.Model(model.inputs, model.outputs, name=model.name), _plain, call)


def _plain(layer: keras.Layer) -> keras.Layer:
    """Return a copy of `layer`: Keras's own in place of one that rounds."""
    if type(layer) not in PLAIN:
        return copied(layer)
    return PLAIN[type(layer)].from_config({key: value for key, value in layer.get_config().items() if key not in _OWN})


def without_last_rounding(model: keras.Model) -> keras.Model:
    """Return `model` with the same layers and weights, and the outputs before the last layer rounds them."""

    def before(layer: Any, output: keras.KerasTensor) -> keras.KerasTensor:
        looks_up = isinstance(layer, (tables.LookUp, softmax.RoundedSoftmax))
        if isinstance(layer, Rounded):
            return layer.input
        return _plain(layer)(layer.input) if looks_up else output

    last = map(producer, model.outputs)
    return keras.Model(model.inputs, [before(layer, out) for layer, out in zip(last, model.outputs, strict=True)])
