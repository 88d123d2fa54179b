"""`import_layers`: networks with layers of HGQ 1, BinaryNet and TernaryNet as networks of Keras's own.

What HGQ 1 saves for hardware rounds by `FixedPointQuantizer`, a type for each channel. `BinaryDense` and `TernaryDense`
are the layers of the example networks of hls4ml.

Source: HGQ 0.2, `proxy/fixed_point_quantizer.py`; DingKe, nn_playground, `binarynet/binary_ops.py` and
`ternarynet/ternary_ops.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import keras
import numpy as np
from numpy.typing import NDArray

from fpgaprune.errors import ModelImportError, RemovalError, UnsupportedLayerError
from fpgaprune.files import layer_configs, read_configuration, read_weights
from fpgaprune.network import copied, graph_of, trained_bits
from fpgaprune.quantise.channels import RoundedChannels
from fpgaprune.quantise.keras2_file import float_model, stored_arrays
from fpgaprune.quantise.rebuild import ImportedBits, Rebuild
from fpgaprune.values import OVERFLOW_MODES, ROUNDING_MODES, Array, FixedType

Floats = NDArray[np.float32]
_QUANTIZER = "FixedPointQuantizer"
_DENSE = ("BinaryDense", "TernaryDense")
_FUNCTIONS = ("binary_tanh", "ternary_tanh", "relu1")
_OWN = "OwnActivation"
_KINDS = {_QUANTIZER: "Activation", _OWN: "Activation", **dict.fromkeys(_DENSE, "Dense")}
# 0 and 1; -1, 0 and 1, where both middles go down.
_BIT = FixedType(1, 1, False, "RND_CONV", "SAT")
_TERNARY = FixedType(2, 2, True, "RND_MIN_INF", "SAT_SYM")


def import_layers(path: Path, library: str) -> ImportedBits:
    """Import the network in the `.h5` file at `path`, with its weights as their layers round them.

    Raises:
        ModelImportError: the file cannot be read.
        UnsupportedLayerError: a layer has settings for which there is no counterpart.
    """
    document = read_configuration(path, ModelImportError).document
    if trained_bits(path) != library:
        raise ModelImportError(f"{path} names no layer of {library}'s")
    read_weights(path, ModelImportError)
    for one in layer_configs(document.get("config")):
        if one["class_name"] == "Activation" and one["config"].get("activation") in _FUNCTIONS:
            one["class_name"] = _OWN
    written = {str(one["config"].get("name")): one for one in layer_configs(document.get("config"))}
    silent = {name for name, one in written.items() if one["class_name"] == _QUANTIZER}
    try:
        graph = graph_of(float_model(document, path, path, _KINDS, silent))
    except RemovalError as error:
        raise ModelImportError(f"the model cannot be read: {error}") from error
    rebuild = _Written(library, written=written, values=stored_arrays(path))
    return ImportedBits.of(rebuild.build(graph, graph.name), library)


@dataclass
class _Written(Rebuild):
    """The rebuilding of a network whose file says what each layer computes.

    Attributes:
        written: layer name to its class and settings in the file.
        values: layer name to the weights in the file.
    """

    written: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    values: Mapping[str, Mapping[str, Array]] = field(default_factory=dict)

    def converted(self, layer: keras.Layer, given: list[keras.KerasTensor]) -> keras.KerasTensor:
        """Compute `layer` as it is written."""
        one = self.written.get(layer.name, {})
        kind, config = one.get("class_name"), one.get("config", {})
        if kind == _QUANTIZER:
            return self._quantised(layer.name, config, given[0])
        if kind == _OWN:
            return self._activated(layer.name, str(config["activation"]), given[0])
        plain = copied(layer)
        result = plain(given if isinstance(layer.input, list) else given[0])
        weights = layer.get_weights()
        if kind in _DENSE:
            if config.get("activation") in _FUNCTIONS:
                raise UnsupportedLayerError(
                    f"layer {layer.name!r} has activation {config['activation']!r}; give it a layer of its own"
                )
            plain.activation = keras.activations.get(config.get("activation", "linear"))
            result = plain(given[0])
            weights[0] = _few_values(layer.name, str(kind), config.get("H", 1.0), weights[0])
        if weights:
            self.weights.append((plain, weights))
        return result

    def _quantised(self, name: str, config: Mapping[str, Any], given: keras.KerasTensor) -> keras.KerasTensor:
        rounding, overflow = config.get("RND"), config.get("SAT")
        if rounding not in ROUNDING_MODES or overflow not in OVERFLOW_MODES:
            raise UnsupportedLayerError(
                f"layer {name!r} rounds by {rounding!r} and overflows by {overflow!r}; wanted one of "
                f"{', '.join(ROUNDING_MODES)}, and one of {', '.join(OVERFLOW_MODES)}"
            )
        stored, shape = self.values.get(name, {}), tuple(given.shape[1:])
        try:
            bits, integers, signed = (
                np.asarray(stored[key], np.float32) for key in ("bits", "integers", "keep_negative")
            )
        except KeyError as error:
            raise ModelImportError(f"layer {name!r} has no {error} in the file; save the whole model again") from error
        # Without bits neither a sign nor a place of the point is left.
        parts = [np.where(bits > 0, part, 0).astype(np.float32) for part in (bits, integers, signed)]
        each = bits.ndim > 1 and any(size > 1 for size in bits.shape[1:-1])
        layer = RoundedChannels(rounding, overflow, each_value=each, name=name, dtype="float32")
        result = layer(given)
        try:
            whole = [np.broadcast_to(part, (1, *shape))[0] for part in parts]
        except ValueError as error:
            raise ModelImportError(f"layer {name!r} has types of shape {bits.shape} for data of {shape}") from error
        kept = [part if each else part[(0,) * (len(shape) - 1)] for part in whole]
        self.weights.append((layer, [part.reshape(-1) for part in kept]))
        return result

    def _activated(self, name: str, function: str, given: keras.KerasTensor) -> keras.KerasTensor:
        if function == "relu1":
            return keras.layers.ReLU(max_value=1.0, name=name)(given)
        if function == "ternary_tanh":
            return self.rounded(name, _TERNARY, given)
        half = keras.layers.Rescaling(0.5, 0.5, name=f"{name}_half", dtype="float32")(given)
        bit = self.rounded(f"{name}_bit", _BIT, half)
        return keras.layers.Rescaling(2.0, -1.0, name=name, dtype="float32")(bit)


def _few_values(name: str, kind: str, scale: object, kernel: Floats) -> Floats:
    """Return what the layer leaves of its kernel: -H and H, or 0 too."""
    if not isinstance(scale, int | float) or not 0 < scale < 1e6:
        raise UnsupportedLayerError(f"layer {name!r} has H={scale!r}; wanted a number above 0")
    h = np.float32(scale)
    x = kernel.astype(np.float32) / h
    if kind == "BinaryDense":
        half = np.clip(np.float32(0.5) * x + np.float32(0.5), 0, 1)
        return np.asarray(h * (2 * np.round(half) - 1), np.float32)
    return np.asarray(h * np.where(x > 0.5, 1.0, np.where(x <= -0.5, -1.0, 0.0)), np.float32)
