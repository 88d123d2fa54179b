"""`import_qkeras`: a network of QKeras's layers as one of Keras's own, which computes the same bits.

QKeras mostly runs on Keras 2, so its file is read here: the configuration of each layer names its quantisers, and the
weights stand beside. A weight here is the number that its quantiser leaves of it; data go through a `RoundedChannels`
layer where QKeras rounds them.

Source: QKeras 0.9.0, `qlayers.py`, `qconvolutional.py`, `qconv2d_batchnorm.py`, `qdense_batchnorm.py` and
`quantizers.py`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import keras
import numpy as np
from numpy.typing import NDArray

from fpgaprune.errors import ModelImportError, RemovalError, UnsupportedLayerError
from fpgaprune.files import layer_configs, read_configuration, read_weights
from fpgaprune.network import graph_of, producer, scale_and_shift, trained_bits
from fpgaprune.quantise.keras2_file import as_hdf5, float_model, stored_arrays
from fpgaprune.quantise.qkeras_quantizers import QkerasQuantizer, read_quantizer
from fpgaprune.quantise.rebuild import ImportedBits, Rebuild, as_float32
from fpgaprune.values import Array, FixedType

# What an input that the network does not round itself is rounded to, as hls4ml does unless told otherwise.
INPUT_TYPE = "fixed<16,6,RND,SAT>"
_LIBRARY = "QKeras"
# A layer of QKeras's and the layer of Keras's that computes the same with floats.
_FLOAT = {
    "QDense": "Dense",
    "QConv1D": "Conv1D",
    "QConv2D": "Conv2D",
    "QDepthwiseConv2D": "DepthwiseConv2D",
    "QConv2DBatchnorm": "Conv2D",
    "QDenseBatchnorm": "Dense",
    "QActivation": "Activation",
    "QBatchNormalization": "BatchNormalization",
}
# Layers with a batch normalisation in their weights.
_NORMALISED = ("QConv2DBatchnorm", "QDenseBatchnorm")
# A weight of QBatchNormalization and the setting that holds its quantiser.
_NORMALISED_PARTS = {
    "gamma": "gamma_quantizer",
    "beta": "beta_quantizer",
    "moving_mean": "mean_quantizer",
    "moving_variance": "variance_quantizer",
}
# The setting that holds the quantiser of the kernel.
_KERNEL = {"QDepthwiseConv2D": "depthwise_quantizer"}
# A bias is kept to this many places behind the point: below, a sum in float32 loses it.
_BIAS_PLACES = 30
# A batch normalisation's scales, which QKeras leaves as floats, keep so many bits; the largest decides which.
_SCALE_BITS = 16


def import_qkeras(source: str | os.PathLike[str], input_type: str = INPUT_TYPE) -> ImportedBits:
    """Import the network of QKeras's layers in the file `source` as one of Keras's own layers with the same outputs.

    QKeras computes in float32: a sum of more than 24 bits is rounded there, and exact here. A softmax at the end is
    left out, because the largest output stays the largest; scales of a batch normalisation are rounded to 16 bits.
    `notes` of the answer say so where it is so.

    Args:
        source: an `.h5` or `.keras` file that `model.save` of QKeras wrote, without pruning wrappers.
        input_type: the type to which an input is rounded if the network does not round it itself.

    Raises:
        ModelImportError: the file cannot be read, or holds no layer of QKeras's.
        UnsupportedLayerError: a layer, a quantiser or an activation has no exact counterpart; the message names it.
        DesignError: `input_type` is no type.
    """
    path = Path(source)
    document = read_configuration(path, ModelImportError).document
    if trained_bits(path) != "QKeras":
        raise ModelImportError(f"{path} names no layer of QKeras's; every other Keras model is used as it is")
    entering = FixedType.parse(input_type)
    read_weights(path, ModelImportError)
    written = {str(one["config"].get("name")): one for one in layer_configs(document.get("config"))}
    with as_hdf5(path, document) as file:
        try:
            graph = graph_of(float_model(document, file, path, _FLOAT))
        except RemovalError as error:
            raise ModelImportError(f"the model cannot be read: {error}") from error
        values = stored_arrays(file)
    rebuild = _QkerasRebuild(_LIBRARY, written=written, values=values, entering=entering, graph=graph)
    made = rebuild.build(graph, graph.name)
    return ImportedBits.of(made, _LIBRARY, tuple(rebuild.notes))


@dataclass
class _QkerasRebuild(Rebuild):
    """The rebuilding of a network of QKeras's.

    Attributes:
        written: layer name to its class and settings in the file.
        values: layer name to the weights in the file.
        entering: the type of an input that is not rounded.
        graph: the network with floats.
        notes: what the new network does not compute as QKeras does.
    """

    written: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    values: Mapping[str, Mapping[str, NDArray[np.float32]]] = field(default_factory=dict)
    entering: FixedType = field(default_factory=lambda: FixedType.parse(INPUT_TYPE))
    graph: Any = None
    notes: list[str] = field(default_factory=list)

    def entered(self, tensor: keras.KerasTensor) -> keras.KerasTensor:
        """Round the input, unless a layer of the network does so."""
        name = producer(tensor).name
        readers = [
            layer
            for layer in self.graph.layers
            for read in keras.tree.flatten(layer.input)
            if not isinstance(layer, keras.layers.InputLayer) and producer(read).name == name
        ]
        if readers and all(self._only_rounds(layer.name) for layer in readers):
            return tensor
        self.notes.append(f"input {name!r} is rounded to {self.entering}, because the network does not round it")
        return self.rounded(f"{name}_type", self.entering, tensor)

    def _only_rounds(self, name: str) -> bool:
        one = self.written.get(name, {})
        activation = one.get("config", {}).get("activation") if one.get("class_name") == "QActivation" else None
        return activation is not None and activation not in ("linear", "relu")

    def converted(self, layer: keras.Layer, given: list[keras.KerasTensor]) -> keras.KerasTensor:
        """Compute `layer` as QKeras does, its quantisers included."""
        one = self.written.get(layer.name, {})
        kind, config = str(one.get("class_name")), one.get("config", {})
        if kind not in _FLOAT and kind.startswith("Q"):
            raise UnsupportedLayerError(
                f"layer {layer.name!r} is a {kind} of QKeras's, which is not taken over; wanted one of "
                f"{', '.join(_FLOAT)}"
            )
        if self._last_softmax(layer, config):
            self.notes.append(f"softmax {layer.name!r} at the end is left out: the largest output stays the largest")
            if kind in ("Activation", "QActivation", "Softmax"):
                return given[0]
            config = {**config, "activation": "linear"}
        if kind in ("BatchNormalization", "QBatchNormalization"):
            return self._activated(
                f"{layer.name}_type", config.get("activation"), self._normalization(layer, config, given[0])
            )
        if kind == "QActivation":
            return self._activated(layer.name, config.get("activation"), given[0])
        if kind not in _FLOAT:
            return self.copied(layer)(given if isinstance(layer.input, list) else given[0])
        plain = type(layer).from_config({**layer.get_config(), "use_bias": bool(config.get("use_bias", True))})
        if kind in _NORMALISED:
            plain = type(layer).from_config({**layer.get_config(), "use_bias": True})
        result = plain(given[0])
        self.weights.append((plain, as_float32(list(self._weights(kind, config)))))
        return self._activated(f"{layer.name}_type", config.get("activation"), result)

    def _last_softmax(self, layer: keras.Layer, config: Mapping[str, object]) -> bool:
        ends = {producer(tensor).name for tensor in self.graph.outputs}
        is_softmax = isinstance(layer, keras.layers.Softmax) or config.get("activation") == "softmax"
        return is_softmax and layer.name in ends

    def _weights(self, kind: str, config: Mapping[str, object]) -> Iterator[Array]:
        """Yield kernel and bias of a layer as its quantisers leave them."""
        name = str(config["name"])
        stored = self.values.get(name, {})
        try:
            kernel = stored["depthwise_kernel" if kind == "QDepthwiseConv2D" else "kernel"]
            bias = stored["bias"] if config.get("use_bias", True) else None
            if kind in _NORMALISED:
                kernel, bias = _with_normalization(kernel, bias, stored, config)
        except KeyError as error:
            raise ModelImportError(f"layer {name!r} has no {error} in the file; save the whole model again") from error
        quantizer = self._quantizer(config, _KERNEL.get(kind, "kernel_quantizer"), name)
        if quantizer is None:
            raise UnsupportedLayerError(f"layer {name!r} has no quantiser for its kernel; give it a kernel_quantizer")
        yield quantizer.weights(kernel)
        if bias is not None:
            own = self._quantizer(config, "bias_quantizer", name)
            yield _to_places(bias, _BIAS_PLACES) if own is None else own.weights(bias)

    def _quantizer(self, config: Mapping[str, object], setting: str, name: str) -> QkerasQuantizer | None:
        try:
            return read_quantizer(config.get(setting))
        except UnsupportedLayerError as error:
            raise UnsupportedLayerError(f"layer {name!r}, {setting}: {error}") from error

    def _activated(self, name: str, written: object, given: keras.KerasTensor) -> keras.KerasTensor:
        """Return `given` behind an activation: none, ReLU, or a quantiser."""
        if written in (None, "linear"):
            return given
        if written == "relu":
            return keras.layers.ReLU(name=name)(given)
        try:
            quantizer = read_quantizer(written)
            kind = None if quantizer is None else quantizer.data_type()
        except UnsupportedLayerError as error:
            raise UnsupportedLayerError(f"layer {name.removesuffix('_type')!r}, activation: {error}") from error
        if quantizer is None or kind is None:
            return given
        if quantizer.kind == "quantized_sigmoid":
            given = keras.layers.Rescaling(0.5, 0.5, name=f"{name}_line")(given)
        return self.rounded(name, kind, given)

    def _normalization(
        self, layer: keras.Layer, config: Mapping[str, object], given: keras.KerasTensor
    ) -> keras.KerasTensor:
        """Return `given` behind a batch normalisation, whose four parts a layer of QKeras quantises."""
        name = layer.name
        for part, setting in _NORMALISED_PARTS.items():
            quantizer = self._quantizer(config, setting, name)
            variable = getattr(layer, part, None)
            if quantizer is not None and variable is not None:
                variable.assign(quantizer.weights(np.asarray(variable)))
        scale, shift = scale_and_shift(layer)
        places = _SCALE_BITS - 1 - int(np.ceil(np.log2(max(float(np.abs(scale).max()), 2.0**-_BIAS_PLACES))))
        rounded = _to_places(scale, min(places, _BIAS_PLACES))
        if (rounded != scale).any():
            self.notes.append(f"scales of batch normalisation {name!r} are rounded to {_SCALE_BITS} bits")
        plain = keras.layers.BatchNormalization(axis=layer.axis, epsilon=0.0, name=name)
        values = [rounded, _to_places(shift, _BIAS_PLACES), np.zeros_like(scale), np.ones_like(scale)]
        result = plain(given)
        self.weights.append((plain, as_float32(values)))
        return result


def _with_normalization(
    kernel: NDArray[np.float32],
    bias: NDArray[np.float32] | None,
    stored: Mapping[str, NDArray[np.float32]],
    config: Mapping[str, Any],
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return kernel and bias with the batch normalisation in them, before they are quantised, in QKeras's float32."""
    mean, variance = stored["moving_mean"], stored["moving_variance"]
    factor = np.float32(1) / np.sqrt(variance + np.float32(config.get("epsilon", 1e-3)))
    if config.get("scale", True):
        factor = factor * stored["gamma"]
    beta = stored["beta"] if config.get("center", True) else np.float32(0)
    return factor * kernel, factor * ((0 if bias is None else bias) - mean) + beta


def _to_places(values: object, places: int) -> NDArray[np.float64]:
    """Round `values` to multiples of 2^-places."""
    return np.ldexp(np.rint(np.ldexp(np.asarray(values, np.float64), places)), -places)
