"""`import_hgq`: a network of HGQ2's layers as one of Keras's own, which computes the same bits.

HGQ2 trains the bits of every weight and of every channel of what a layer reads. A weight here is the number that its
bits leave of it; what a layer reads goes through a `RoundedChannels` layer. HGQ2's own package is needed only to load a
file that it saved.

Source: Sun, Que, Årrestad and others, "HGQ: High Granularity Quantization for Real-time Neural Networks on FPGAs",
2024, section III; HGQ2 0.2.0, `hgq/layers` and `hgq/quantizer`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import keras
import numpy as np
from numpy.typing import NDArray

from fpgaprune.errors import DesignError, HlsError, ModelImportError, RemovalError, UnsupportedLayerError
from fpgaprune.keras_file import holds_hgq
from fpgaprune.masks import MaskSet
from fpgaprune.network import calls_of, count_uses, graph_of, producer, structures
from fpgaprune.parser_errors import in_a_line
from fpgaprune.quantise.channels import RoundedChannels
from fpgaprune.saved_model import check_arrays, read_configuration
from fpgaprune.saved_names import check_names
from fpgaprune.weights import named_weights

INSTALL = "pip install 'fpgaprune[hgq]'"
_PACKAGE = "hgq"
# Layers of Keras that HGQ2's networks hold between its own: none has weights, and each is exact in fixed point.
_PLAIN = frozenset(
    {
        *("MaxPooling1D", "MaxPooling2D", "GlobalMaxPooling1D", "GlobalMaxPooling2D", "Flatten", "Reshape", "Permute"),
        *("ZeroPadding1D", "ZeroPadding2D", "Cropping1D", "Cropping2D", "UpSampling1D", "UpSampling2D", "ReLU"),
        *("Activation", "Concatenate", "Add", "Subtract", "Multiply", "Maximum", "Minimum"),
        *("Dropout", "SpatialDropout1D", "SpatialDropout2D", "GaussianNoise", "GaussianDropout"),
    }
)
_ACTIVATIONS = ("linear", "relu")


@dataclass(frozen=True)
class ImportedHgq:
    """A network of HGQ2's, taken over.

    Attributes:
        model: Keras's own layers with the weights that HGQ2's bits leave, and `RoundedChannels` before each that HGQ2
            has quantised. Not compiled.
        masks: False at each weight of a kernel that is zero, as each without bits is.
    """

    model: Any
    masks: MaskSet

    def to_json(self) -> dict[str, Any]:
        """How many weights are zero, as JSON data."""
        return {"from": "HGQ2", "zeros": self.masks.locked_count, "weights": self.masks.size}


def import_hgq(source: Any) -> ImportedHgq:
    """The network `source` of HGQ2's layers as a network of Keras's own, whose outputs are those of HGQ2 bit for bit.

    HGQ2 computes in float32: a sum of more than 24 bits is rounded there, and exact here.

    Args:
        source: a model, functional or Sequential, or the file in which it was saved.

    Raises:
        ModelImportError: the file cannot be loaded (HGQ2 is not installed, or it holds no such model), or the model has
            no input shape yet.
        UnsupportedLayerError: a layer, a quantiser or an activation has no exact counterpart; the message names it.
    """
    model = _loaded(Path(source)) if isinstance(source, str | os.PathLike) else source
    try:
        graph = graph_of(model)
    except RemovalError as error:
        raise ModelImportError(f"the model cannot be read: {error}") from error
    if not any(_is_hgq(layer) for layer in graph.layers):
        raise ModelImportError(f"model {model.name!r} has no layer of HGQ2's; every other Keras model is used as it is")
    made = _Builder().build(graph, model.name)
    kernels = {path: weight for path, weight in named_weights(made).items() if path.endswith("/kernel")}
    return ImportedHgq(made, MaskSet({path: weight.numpy() != 0 for path, weight in kernels.items()}))


def _loaded(path: Path) -> Any:
    document = read_configuration(path, ModelImportError).document
    if not holds_hgq(path):
        raise ModelImportError(f"{path} names no layer of HGQ2's; every other Keras model is used as it is")
    check_arrays(path, ModelImportError)
    try:
        import hgq.layers  # noqa: F401
    except ImportError as error:
        raise ModelImportError(f"{path} holds layers of HGQ2's, which is not installed: {INSTALL}") from error
    try:
        # Its compilation is not read.
        check_names({**document, "compile_config": None}, keras.saving.get_custom_objects().keys())
        return keras.saving.load_model(path, compile=False)
    except Exception as error:
        # A layer may raise anything over settings that Keras never wrote.
        said = in_a_line(error, after="Exception encountered: ")
        raise ModelImportError(f"{path} cannot be loaded with this HGQ2: {said}") from error


def _is_hgq(layer: Any) -> bool:
    return type(layer).__module__.split(".")[0] == _PACKAGE


@dataclass
class _Builder:
    """The new network as it grows.

    Attributes:
        found: the new tensor for each old one, by `id`.
        weights: layers and the values that they get once the network is whole.
    """

    found: dict[int, Any] = field(default_factory=dict)
    weights: list[tuple[Any, list[NDArray[Any]]]] = field(default_factory=list)

    def build(self, graph: Any, name: str) -> Any:
        """The network of `graph`."""
        calls = calls_of(graph)
        uses = count_uses(calls)
        for tensor in graph.inputs:
            entry = producer(tensor)
            self.found[id(tensor)] = keras.Input(batch_shape=tensor.shape, dtype="float32", name=entry.name)
        for call in calls:
            layer = call.operation
            if uses[id(layer)] > 1 or not isinstance(layer, keras.layers.Layer):
                raise UnsupportedLayerError(
                    f"{call.key!r} is an operation of keras.ops, or a layer that is called twice; wanted layers, each "
                    "called once"
                )
            given = [self.found[id(tensor)] for tensor in call.inputs]
            try:
                result = self._converted(layer, given)
            except (DesignError, HlsError) as error:
                raise UnsupportedLayerError(f"layer {layer.name!r}: {error}") from error
            self.found[id(call.outputs[0])] = result
        inputs, outputs = structures(graph)
        pick = self._pick
        made = keras.Model(keras.tree.map_structure(pick, inputs), keras.tree.map_structure(pick, outputs), name=name)
        for layer, values in self.weights:
            layer.set_weights(values)
        return made

    def _pick(self, tensor: Any) -> Any:
        return self.found.get(id(tensor), tensor)

    def _converted(self, layer: Any, given: list[Any]) -> Any:
        kind = type(layer).__name__
        if not _is_hgq(layer):
            return _plain(layer, kind)(given if isinstance(layer.input, list) else given[0])
        if kind == "Quantizer":
            return self._rounded(layer, layer.name, given[0])
        if kind not in _KINDS:
            raise UnsupportedLayerError(
                f"layer {layer.name!r} is a {kind} of HGQ2's, which is not taken over; wanted one of "
                f"{', '.join(_KINDS)}"
            )
        if layer.enable_iq:
            quantizers = list(layer.iq) if len(given) > 1 else [layer.iq]
            names = [f"{layer.name}_iq{number if len(given) > 1 else ''}" for number in range(len(given))]
            given = [self._rounded(*parts) for parts in zip(quantizers, names, given, strict=True)]
        plain, values = _KINDS[kind](layer)
        result = plain(given if len(given) > 1 else given[0])
        if values:
            self.weights.append((plain, [np.asarray(value, np.float32) for value in values]))
        return self._rounded(layer.oq, f"{layer.name}_oq", result) if layer.enable_oq else result

    def _rounded(self, quantizer: Any, name: str, given: Any) -> Any:
        """`given`, each channel as `quantizer` leaves it at inference."""
        inner = quantizer.quantizer
        if quantizer.q_type == "dummy":
            return given
        if quantizer.q_type not in ("kif", "kbi") or quantizer.scaler is not None or quantizer.affine is not None:
            raise UnsupportedLayerError(
                f"quantiser {name!r} is of type {quantizer.q_type!r}, or scales; wanted 'kif' or 'kbi' without a "
                "scaler or affine"
            )
        if not inner.built:
            raise ModelImportError(f"quantiser {name!r} has no shape yet; call the model once before it is imported")
        shape = tuple(given.shape[1:])
        signed, integer, fraction = (np.asarray(part, np.float64) for part in inner.kif)
        bits = signed + integer + fraction
        # A type without bits has no place of its point either.
        width, whole = np.where(bits > 0, bits, 0), np.where(bits > 0, signed + integer, 0)
        each = bits.ndim > 1 and any(size > 1 for size in bits.shape[1:-1])
        layer = RoundedChannels(
            inner.round_mode.removeprefix("S_"), inner.overflow_mode, each_value=each, name=name, dtype="float32"
        )
        result = layer(given)
        parts = [np.broadcast_to(part.reshape(part.shape[1:]), shape) for part in (width, whole, signed * (bits > 0))]
        kept = [part if each else part[(0,) * (len(shape) - 1)] for part in parts]
        self.weights.append((layer, [part.reshape(-1).astype(np.float32) for part in kept]))
        return result


def _plain(layer: Any, kind: str) -> Any:
    """A copy of a layer of Keras's own."""
    if kind not in _PLAIN or layer.weights:
        raise UnsupportedLayerError(
            f"layer {layer.name!r} is a {kind} whose bits HGQ2 does not know; use its layer of HGQ2's, or one of "
            f"{', '.join(sorted(_PLAIN))}"
        )
    _activation(layer)
    return type(layer).from_config(layer.get_config())


def _activation(layer: Any) -> Any:
    """The activation of `layer`, which fixed point computes exactly."""
    activation = getattr(layer, "activation", None)
    name = getattr(activation, "__name__", "linear")
    if name not in _ACTIVATIONS:
        raise UnsupportedLayerError(
            f"layer {layer.name!r} has activation {name!r}, of which HGQ2 trains no exact bits; wanted one of "
            f"{', '.join(_ACTIVATIONS)}"
        )
    return activation


_Made = tuple[Any, list[Any]]


def _weights(layer: Any) -> list[Any]:
    return [layer.qkernel] if layer.bq is None else [layer.qkernel, layer.qbias]


def _dense(layer: Any) -> _Made:
    own = {"use_bias": layer.bq is not None, "activation": _activation(layer), "name": layer.name}
    return keras.layers.Dense(layer.units, **own), _weights(layer)


def _convolution(kind: Any) -> Callable[[Any], _Made]:
    def made(layer: Any) -> _Made:
        if layer.padding == "causal":
            raise UnsupportedLayerError(f"layer {layer.name!r} has padding 'causal'; wanted 'valid' or 'same'")
        same = ("filters", "kernel_size", "strides", "padding", "data_format", "dilation_rate", "groups", "name")
        own = {"use_bias": layer.bq is not None, "activation": _activation(layer)}
        return kind(**{key: getattr(layer, key) for key in same}, **own), _weights(layer)

    return made


def _normalization(layer: Any) -> _Made:
    scale, offset = (np.asarray(part).reshape(-1) for part in layer.qscaler_and_qoffset)
    plain = keras.layers.BatchNormalization(axis=layer.axis, epsilon=0.0, name=layer.name)
    return plain, [scale, offset, np.zeros_like(scale), np.ones_like(scale)]


def _pooling(kind: Any) -> Callable[[Any], _Made]:
    def made(layer: Any) -> _Made:
        same = [key for key in ("pool_size", "strides", "padding", "data_format", "keepdims") if hasattr(layer, key)]
        return kind(**{key: getattr(layer, key) for key in same}, name=layer.name), []

    return made


def _merge(kind: Any) -> Callable[[Any], _Made]:
    return lambda layer: (kind(name=layer.name), [])


_KINDS: Mapping[str, Callable[[Any], _Made]] = {
    "QDense": _dense,
    "QBatchNormDense": _dense,
    "QConv1D": _convolution(keras.layers.Conv1D),
    "QConv2D": _convolution(keras.layers.Conv2D),
    "QBatchNormalization": _normalization,
    "QMaxPooling1D": _pooling(keras.layers.MaxPooling1D),
    "QMaxPooling2D": _pooling(keras.layers.MaxPooling2D),
    "QGlobalMaxPooling1D": _pooling(keras.layers.GlobalMaxPooling1D),
    "QGlobalMaxPooling2D": _pooling(keras.layers.GlobalMaxPooling2D),
    "QAdd": _merge(keras.layers.Add),
    "QSubtract": _merge(keras.layers.Subtract),
    "QMultiply": _merge(keras.layers.Multiply),
    "QMaximum": _merge(keras.layers.Maximum),
    "QMinimum": _merge(keras.layers.Minimum),
}
