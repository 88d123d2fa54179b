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
from pathlib import Path
from typing import Any

import keras
import numpy as np

from fpgaprune.errors import MaskError, ModelImportError, RemovalError, UnsupportedLayerError
from fpgaprune.files import check_names, in_a_line, read_configuration, read_weights
from fpgaprune.network import graph_of, trained_bits
from fpgaprune.quantise.channels import RoundedChannels
from fpgaprune.quantise.rebuild import ImportedBits, Rebuild, as_float32, exact_activation
from fpgaprune.values import Mask, MaskSet, named_weights

INSTALL = "pip install 'fpgaprune[hgq]'"
_PACKAGE = "hgq"


def import_hgq(source: Any) -> ImportedBits:
    """Import the network `source` of HGQ2's layers as one of Keras's own, whose outputs are HGQ2's bit for bit.

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
    if not any(is_hgq(layer) for layer in graph.layers):
        raise ModelImportError(f"model {model.name!r} has no layer of HGQ2's; every other Keras model is used as it is")
    return ImportedBits.of(_HgqRebuild("HGQ2").build(graph, model.name), "HGQ2")


def _loaded(path: Path) -> keras.Model:
    document = read_configuration(path, ModelImportError).document
    if trained_bits(path) != "HGQ2":
        raise ModelImportError(f"{path} names no layer of HGQ2's; every other Keras model is used as it is")
    read_weights(path, ModelImportError)
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


def is_hgq(layer: keras.Layer) -> bool:
    """Return whether `layer` is of a class of HGQ2's."""
    return type(layer).__module__.split(".")[0] == _PACKAGE


class _HgqRebuild(Rebuild):
    """The rebuilding of a network of HGQ2's."""

    def converted(self, layer: keras.Layer, given: list[keras.KerasTensor]) -> keras.KerasTensor:
        """Compute `layer` as HGQ2 does, its quantisers included."""
        kind = type(layer).__name__
        if not is_hgq(layer):
            return self.copied(layer)(given if isinstance(layer.input, list) else given[0])
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
            self.weights.append((plain, as_float32(values)))
        return self._rounded(layer.oq, f"{layer.name}_oq", result) if layer.enable_oq else result

    def _rounded(self, quantizer: Any, name: str, given: keras.KerasTensor) -> keras.KerasTensor:
        """Return `given`, each channel as `quantizer` leaves it at inference."""
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


_Made = tuple[Any, list[Any]]


def _weights(layer: keras.Layer) -> list[Any]:
    return [layer.qkernel] if layer.bq is None else [layer.qkernel, layer.qbias]


def _dense(layer: keras.Layer) -> _Made:
    own = {"use_bias": layer.bq is not None, "activation": exact_activation(layer, "HGQ2"), "name": layer.name}
    return keras.layers.Dense(layer.units, **own), _weights(layer)


def _convolution(kind: Any) -> Callable[[Any], _Made]:
    def made(layer: keras.Layer) -> _Made:
        if layer.padding == "causal":
            raise UnsupportedLayerError(f"layer {layer.name!r} has padding 'causal'; wanted 'valid' or 'same'")
        same = ("filters", "kernel_size", "strides", "padding", "data_format", "dilation_rate", "groups", "name")
        own = {"use_bias": layer.bq is not None, "activation": exact_activation(layer, "HGQ2")}
        return kind(**{key: getattr(layer, key) for key in same}, **own), _weights(layer)

    return made


def _normalization(layer: keras.Layer) -> _Made:
    scale, offset = (np.asarray(part).reshape(-1) for part in layer.qscaler_and_qoffset)
    plain = keras.layers.BatchNormalization(axis=layer.axis, epsilon=0.0, name=layer.name)
    return plain, [scale, offset, np.zeros_like(scale), np.ones_like(scale)]


def _pooling(kind: Any) -> Callable[[Any], _Made]:
    def made(layer: keras.Layer) -> _Made:
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


def with_bits(model: keras.Model, masks: MaskSet) -> MaskSet:
    """Add masks for the bits of every kernel that `masks` lock: a locked weight then has no bits and no price.

    HGQ2's price counts the bits of a weight and not its value: a weight that is locked at zero costs as much as before,
    until its bits are zero too.

    Source: Sun, Que, Årrestad and others, "HGQ: High Granularity Quantization for Real-time Neural Networks on FPGAs",
    2024, section III (EBOPs); HGQ2 0.2.0, `hgq/quantizer/internal/fixed_point_quantizer.py`.

    Lock the result as any masks: `fp.finetune(model, with_bits(model, masks), ...)`. Where several weights share
    their bits, the bits are locked if all of these weights are.

    Args:
        model: a built Keras model with layers of HGQ2's.
        masks: by weight path; masks of other weights than HGQ2's kernels stay as they are.

    Raises:
        MaskError: the masks do not fit the model, lock no kernel of a layer of HGQ2's, or lock one whose quantiser has
            no number of bits that can be zero.
    """
    fitted = masks.fitted(model)
    weights = named_weights(model)
    paths = {id(variable): path for path, variable in weights.items()}
    kernels = {paths[id(layer.kernel)]: layer for layer in model.layers if is_hgq(layer) and hasattr(layer, "kq")}
    locked = [path for path in kernels if path in fitted and not fitted[path].all()]
    if not locked:
        known = f"its kernels are {', '.join(kernels)}" if kernels else "it has no layer of HGQ2's with a kernel"
        raise MaskError(f"the masks lock no kernel of HGQ2's in model {model.name!r}; {known}")
    bits: dict[str, Mask] = {}
    for path in locked:
        variable = _bits_of(kernels[path].kq, path)
        bits[paths[id(variable)]] = _shared(fitted[path], tuple(variable.shape))
    return fitted & MaskSet(bits)


def _bits_of(quantizer: Any, path: str) -> Any:
    """Return the variable with the number of bits of each weight in `path`."""
    inner = quantizer.quantizer
    if quantizer.q_type != "kbi" or inner.overflow_mode == "SAT":
        found = f"{quantizer.q_type!r} with {getattr(inner, 'overflow_mode', 'no overflow')}"
        raise MaskError(
            f"the quantiser of {path!r} is {found}, which has a price even without bits; wanted 'kbi' with SAT_SYM or "
            "WRAP: train with QuantizerConfigScope(place='weight', default_q_type='kbi', overflow_mode='SAT_SYM')"
        )
    return next(variable for variable in inner.weights if variable.name == "b")


def _shared(mask: Mask, shape: tuple[int, ...]) -> Mask:
    """Return whether bits of `shape` stay free: where a weight that has them is."""
    axes = tuple(axis for axis, size in enumerate(shape) if size == 1)
    return np.asarray(mask.any(axis=axes, keepdims=True))
