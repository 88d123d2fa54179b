"""Brings a Keras model into the form of a design: BatchNorm folded, no no-ops, weights on their grid.

What computes the same over the reals is written in one way, of layers that are one operation each.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import keras
import numpy as np

from fpgaprune.errors import HlsError, RemovalError, UnsupportedLayerError
from fpgaprune.lowering.convertible_layers import check_classes, check_layers
from fpgaprune.lowering.flattening import flattened
from fpgaprune.lowering.joined_scales import joined_scales
from fpgaprune.lowering.keras_operations import with_layers
from fpgaprune.lowering.last_axis import on_last_axis
from fpgaprune.lowering.layer_names import free_name
from fpgaprune.lowering.layer_operations import EACH_VALUE
from fpgaprune.lowering.plain_convolutions import plain_convolutions, split_separable
from fpgaprune.lowering.recurrent_layers import RECURRENT, functions_of, gates_of
from fpgaprune.lowering.scales_behind_relu import scales_into_products
from fpgaprune.lowering.transposed_convolutions import TRANSPOSED, with_late_crops, without_transposed
from fpgaprune.network import (
    LINEAR,
    Activation,
    activation_in,
    cloned,
    copied,
    find_folds,
    folded_weights,
    graph_of,
    keras_class,
    producer,
    readers_of,
)
from fpgaprune.quantise import is_rounded, rounds_channels, unrounded
from fpgaprune.values import Array, FixedType

DEPTHWISE = (keras.layers.DepthwiseConv1D, keras.layers.DepthwiseConv2D)
FOLDABLE = (keras.layers.Conv1D, keras.layers.Conv2D, keras.layers.Dense, *DEPTHWISE)
# What a fold leaves without an activation.
_LINEAR = (*FOLDABLE, *TRANSPOSED)
_GLOBAL = {
    keras.layers.AveragePooling1D: keras.layers.GlobalAveragePooling1D,
    keras.layers.AveragePooling2D: keras.layers.GlobalAveragePooling2D,
}
# A Dense layer takes tensors of at most this many axes, the batch axis included.
_MOST_AXES = 4
_WITH_PARAMETER = {
    "leaky_relu": keras.layers.LeakyReLU,
    "elu": keras.layers.ELU,
    "thresholded_relu": lambda threshold, **options: keras.layers.ReLU(threshold=threshold, **options),
}
# Layers that multiply by weights of several axes.
PRODUCTS = (*FOLDABLE, *RECURRENT)


def fold(model: keras.Model) -> keras.Model:
    """Return a new model of layers that are one operation each, which computes the same over the reals at inference.

    A BatchNorm that is the only reader of a linear convolution or Dense layer is folded into it (float64, then cast),
    and one behind an activation into the layers around it, as far as that is exact, unless the network rounds its data
    itself.
    Models inside the model are unfolded, and Dropout and augmentations left out. `ReLU()` becomes `Activation("relu")`.
    The activation of a convolution or Dense layer becomes a layer of its own, `NAME_relu`, so that both get a type. A
    separable convolution becomes two layers, a dilated, grouped or transposed one a plain one, the last between layers
    that move values. What works along another axis than the last stands between layers that move that axis. An average
    pooling over the whole map becomes a global one, because an hls4ml project would hold all its inputs at once.
    Operations, `Rescaling` and `Normalization` become layers that compute the same, and each activation one that names
    its function. Layer names stay, and layers compute in float32.

    Raises:
        HlsError: a weight is NaN or infinite.
        UnsupportedLayerError: a layer has no operation, or is used twice; the message names it.
    """
    try:
        graph_of(model)
    except RemovalError as error:
        raise UnsupportedLayerError(str(error)) from error
    for variable in model.variables:
        if np.issubdtype(np.dtype(variable.dtype), np.floating) and not np.isfinite(variable.numpy()).all():
            raise HlsError(f"weight {variable.path!r} holds NaN or infinity, which no fixed-point number is: retrain")
    model = unrounded(model) if is_rounded(model) else model
    functional = flattened(model)
    check_classes(functional)
    functional = with_layers(functional)
    check_layers(functional)
    functional = with_late_crops(on_last_axis(in_classes_of_keras(functional)))
    functional = plain_convolutions(split_separable(functional))
    # Where the bits of the weights are trained, a product with a scale would have far more of them.
    rounds = rounds_channels(functional)
    functional = joined_scales(functional) if rounds else functional
    functional = functional if rounds else scales_into_products(functional)
    folds = {} if rounds else find_folds(functional)
    folded_names = {bn.name for bn in folds.values()}
    originals = {layer.name: layer for layer in functional.layers}
    activations = {
        name: known
        for name, layer in originals.items()
        if isinstance(layer, _LINEAR) and (known := _known(layer)) != LINEAR
    }
    # The shape is restored if a layer other than Flatten reads it.
    mapped = {
        layer.name: layer.output.shape[1:]
        for layer in functional.layers
        if _loses_axes(layer) and not _only_flattened(functional, layer)
    }
    taken = set(originals)

    def added(name: str) -> str:
        taken.add(found := free_name(name, taken))
        return found

    def clone(layer: keras.Layer) -> keras.Layer:
        if isinstance(layer, EACH_VALUE):
            return activation_layer(_known(layer), layer.name, len(layer.output.shape))
        if averages_all(layer):
            return _GLOBAL[type(layer)](name=layer.name)
        changes: dict[str, Any] = {"dtype": "float32"}
        if layer.name in folds:
            changes["use_bias"] = True
        if isinstance(layer, _LINEAR):
            changes["activation"] = "linear"
        if isinstance(layer, RECURRENT):
            changes |= functions_of(layer)
        if isinstance(layer, keras.layers.Softmax):
            # The axis is the last one, but may be given as a list.
            changes["axis"] = -1
        if hasattr(layer, "keepdims"):
            changes["keepdims"] = False
        return copied(layer, **changes)

    def call(layer: keras.Layer, *args: Any, **kwargs: Any) -> keras.KerasTensor:
        if layer.name in folded_names:
            return args[0]
        if isinstance(layer, keras.layers.Dense) and len(args[0].shape) > _MOST_AXES:
            args = (keras.layers.Reshape((-1, args[0].shape[-1]), name=added(f"{layer.name}_rows"))(args[0]),)
        output = layer(*args, **kwargs)
        if layer.name in mapped:
            output = keras.layers.Reshape(mapped[layer.name], name=added(f"{layer.name}_map"))(output)
        if layer.name not in activations:
            return output
        activation = activations[layer.name]
        name = added(f"{layer.name}_{activation.name}")
        return activation_layer(activation, name, len(output.shape))(output)

    weights = {name: folded_weights(originals[name], bn) for name, bn in folds.items()}
    return without_transposed(cloned(functional, clone, call, weights))


def activation_layer(activation: Activation, name: str, axes: int) -> keras.Layer:
    """Return the layer of `activation` for tensors of `axes` axes, the batch axis included."""
    options = {"name": name, "dtype": "float32"}
    if activation.name == "softmax" and axes > 2:
        # An hls4ml project would apply an `Activation` of softmax over all axes at once.
        return keras.layers.Softmax(**options)
    if activation.parameter is not None:
        return _WITH_PARAMETER[activation.name](activation.parameter, **options)
    return keras.layers.Activation(activation.name, **options)


def in_classes_of_keras(functional: keras.Model) -> keras.Model:
    """Put a layer of Keras's own in place of each of a subclass that computes the same.

    Raises:
        UnsupportedLayerError: such a layer holds other weights than that of Keras.
    """
    own = [layer for layer in functional.layers if type(layer) is not (keras_class(layer) or type(layer))]
    if not own:
        return functional
    try:
        return cloned(functional, copied)
    except ValueError as error:
        raise UnsupportedLayerError(
            f"layers {', '.join(repr(layer.name) for layer in own)} are of classes of your own, and one of them holds "
            "other weights than the class of Keras from which it inherits: use the layers of Keras"
        ) from error


def _known(layer: keras.Layer) -> Activation:
    """Return the function of an activation layer, or the one that another layer applies."""
    known = activation_in(layer)
    if known is None:
        raise UnsupportedLayerError(f"layer {layer.name!r} has an activation that is not known")
    return known


def _loses_axes(layer: keras.Layer) -> bool:
    """Return whether the output of the layer that replaces `layer` has fewer axes."""
    rows = isinstance(layer, keras.layers.Dense) and len(layer.output.shape) > _MOST_AXES
    return rows or averages_all(layer) or bool(getattr(layer, "keepdims", False))


def averages_all(layer: keras.Layer) -> bool:
    """Return whether `layer` is an average pooling whose only window covers every position of its input."""
    if type(layer) not in _GLOBAL or layer.data_format != "channels_last":
        return False
    sizes, positions = layer.input.shape[1:-1], layer.output.shape[1:-1]
    # An average does not count the zeros of the padding.
    return all(size is not None and size <= pool for size, pool in zip(sizes, layer.pool_size, strict=True)) and all(
        position == 1 for position in positions
    )


def _only_flattened(functional: keras.Model, layer: keras.Layer) -> bool:
    if any(producer(tensor) is layer for tensor in functional.outputs):
        return False
    readers = readers_of(functional).get(id(layer), [])
    return all(isinstance(reader, keras.layers.Flatten) for reader in readers)


def quantise_weights(folded: keras.Model, types: Mapping[str, Mapping[str, FixedType]]) -> dict[str, dict[str, Array]]:
    """Round the weights of `folded` to `types`, and return the raw integers by layer and role.

    Args:
        folded: a model from `fold`; it is changed in place.
        types: layer name to role (`weight`, `bias`, `recurrent_weight`, `recurrent_bias`, `scale`) to type.
    """
    raws: dict[str, dict[str, Array]] = {}
    for layer in folded.layers:
        roles = types.get(layer.name, {})
        if not isinstance(layer, PRODUCTS) or "weight" not in roles:
            continue
        raws[layer.name] = {role: roles[role].to_raw(value) for role, value in role_weights(layer).items()}
        values = [roles[role].to_float(raw).astype("float32") for role, raw in raws[layer.name].items()]
        if isinstance(layer, RECURRENT):
            values = [*values[:2], *_joined(layer, values[2:])]
        layer.set_weights(values)
    return raws


def role_weights(layer: keras.Layer) -> dict[str, Array]:
    """Map role to weight of a layer of `PRODUCTS`, in the order in which Keras holds them.

    A GRU's bias (2, 3 units) is two biases: one for the product of the inputs, one for the product of the state.
    """
    weights = layer.get_weights()
    if not isinstance(layer, RECURRENT):
        return dict(zip(("weight", "bias"), weights, strict=False))
    biases = [row for bias in weights[2:] for row in bias.reshape(-1, gates_of(layer) * layer.units)]
    return dict(zip(("weight", "recurrent_weight", "bias", "recurrent_bias"), (*weights[:2], *biases), strict=False))


def _joined(layer: keras.Layer, biases: list[Array]) -> list[Array]:
    """Return the biases of a recurrent layer as the one weight that Keras holds; none if it has no bias."""
    return [np.stack(biases).reshape(layer.cell.bias.shape)] if biases else []
