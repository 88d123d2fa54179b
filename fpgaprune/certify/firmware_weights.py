"""Reads the weights in an hls4ml project's files, as the integers that synthesis sees."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fpgaprune.certify.adder_weights import read_adder_weights
from fpgaprune.design import Dense, Design, LayerSpec
from fpgaprune.errors import CertificateError, DesignError, FirmwareError
from fpgaprune.files import (
    WeightArray,
    element_type,
    read_layer_numbers,
    read_layer_sizes,
    read_output_lengths,
    read_scale_numbers,
    read_text,
    read_typedefs,
    read_weight_arrays,
    stored_forms,
)
from fpgaprune.measure import LayerCounts
from fpgaprune.values import Array, FixedType

# hls4ml names the array of a role by these letters and the layer's number.
_LETTERS = {"weight": "w", "bias": "b", "scale": "s", "recurrent_weight": "wr", "recurrent_bias": "br"}
# The roles whose arrays are matrices of multipliers.
_MATRICES = ("weight", "recurrent_weight")


def read_firmware_weights(folder: Path, design: Design) -> dict[str, Array]:
    """Read the raw integers by weight path, in Keras's axis order, from the project's firmware files.

    The files that the C simulation loads (`*.txt`), the files that synthesis reads (`*.h`) and `design` must agree;
    each is read on its own. Where a layer's weights have become adders, the weights are read from the adders.

    Raises:
        CertificateError: a file is missing or malformed, or they do not agree.
    """
    return by_path(read_layer_integers(folder, design), design)


def by_path(weights: Mapping[tuple[str, str], NDArray[np.int64]], design: Design) -> dict[str, Array]:
    """Sort the integers of `weights`, which are listed by layer and role, by weight path."""
    found = {}
    for layer in design.layers:
        for role, path in layer.sources.items():
            if role not in ("bias", "recurrent_bias"):
                found[path] = weights[layer.name, role]
            elif "recurrent_weight" in layer.weights:
                found[path] = _recurrent_bias(layer, weights)
            # Any other bias includes BatchNorm's shift, so its elements are not those of the Keras weight.
    return found


def as_numbers(integers: Mapping[str, Array], design: Design) -> dict[str, NDArray[np.float64]]:
    """Return what the integers of `read_firmware_weights` stand for, by weight path; exact."""
    kinds = {path: layer.types[role] for layer in design.layers for role, path in layer.sources.items()}
    return {path: kinds[path].to_float(raw) for path, raw in integers.items()}


def _recurrent_bias(layer: LayerSpec, weights: Mapping[tuple[str, str], NDArray[np.int64]]) -> NDArray[np.int64]:
    """Return the bias of a recurrent layer as Keras stores it: one row for an LSTM, two (inputs, state) for a GRU."""
    bias = weights[layer.name, "bias"]
    if "recurrent_bias" not in layer.sources:
        return bias
    return np.stack([bias, weights[layer.name, "recurrent_bias"]])


def read_layer_integers(folder: Path, design: Design) -> dict[tuple[str, str], NDArray[np.int64]]:
    """Read the raw integers by layer name and role, for every array that comes from a Keras weight.

    Raises:
        CertificateError: as `read_firmware_weights`.
    """
    firmware = firmware_folder(folder)
    try:
        files = _Files.read(firmware, design)
        return {
            (layer.name, role): files.integers(layer, role)
            for layer in design.layers
            for role in layer.weights
            if role in layer.sources or files.array(layer.project_name, role) is not None
        }
    except FirmwareError as error:
        raise CertificateError(str(error)) from error


def count_firmware(folder: Path, design: Design) -> tuple[LayerCounts, ...]:
    """Count the weights of each layer, after a check that each file declares the layer's sizes as `design` does.

    Raises:
        CertificateError: as `read_firmware_weights`, or a file declares another size.
    """
    integers = read_layer_integers(folder, design)
    firmware = firmware_folder(folder)
    try:
        numbers, sizes = read_layer_numbers(firmware), read_layer_sizes(firmware)
        lengths = read_output_lengths(firmware)
    except FirmwareError as error:
        raise CertificateError(str(error)) from error
    for layer in design.layers:
        _require_lengths(layer, lengths.get(layer.project_name, {}), design.io_type, firmware)
        for role in _MATRICES:
            if (layer.name, role) in integers:
                shape = integers[layer.name, role].shape
                _require_sizes(layer, role, shape, sizes.get(numbers.get(layer.project_name, -1), {}), firmware)
    return count_integers(integers, design)


def count_integers(integers: Mapping[tuple[str, str], NDArray[np.int64]], design: Design) -> tuple[LayerCounts, ...]:
    """Count the weights of each layer of `design`, whose `integers` are listed by layer and role."""
    counts = []
    for layer in design.layers:
        for role in _MATRICES:
            if (layer.name, role) not in integers:
                continue
            raw = integers[layer.name, role]
            magnitudes = np.abs(raw[raw != 0])
            outputs = raw.shape[layer.output_axis]
            counts.append(
                LayerCounts(
                    layer=layer.name,
                    path=layer.sources.get(role, ""),
                    inputs=int(raw.size // outputs),
                    outputs=int(outputs),
                    weights=int(raw.size),
                    zero=int(raw.size - magnitudes.size),
                    power_of_two=int(((magnitudes & (magnitudes - 1)) == 0).sum()),
                    distinct=int(np.unique(magnitudes).size),
                )
            )
    return tuple(counts)


def _require_sizes(
    layer: LayerSpec, role: str, shape: tuple[int, ...], stated: Mapping[str, int], firmware: Path
) -> None:
    """Check that the sizes in the project's configuration are those of the layer's weights."""
    if role == "recurrent_weight":
        wanted = {"n_state": shape[0], "n_out": shape[0]}
    elif "recurrent_weight" in layer.weights:
        wanted = {"n_in": shape[0]}
    elif layer.is_depthwise:
        wanted = {"n_chan": shape[-2], "n_filt": shape[-2]}
    elif isinstance(layer.operation, Dense):
        wanted = {"n_in": shape[0], "n_out": shape[1]}
    else:
        wanted = {"n_chan": shape[-2], "n_filt": shape[-1]}
    for name, size in wanted.items():
        if name in stated and stated[name] != size:
            raise CertificateError(
                f"{firmware / 'parameters.h'}: layer {layer.name!r} has {name} = {stated[name]}; its weights have "
                f"{size}: a channel was removed from one but not from the other"
            )


def _require_lengths(layer: LayerSpec, stated: Mapping[str, int], io_type: str, firmware: Path) -> None:
    """Check that the arrays that hold the output of `layer` are as long as its shape says."""
    whole = math.prod(layer.output_shape)
    wanted = {"array": whole, "type": layer.output_shape[-1] if io_type == "io_stream" else whole}
    for what, length in stated.items():
        if length != wanted[what]:
            raise CertificateError(
                f"{firmware}: the {what} of the output of layer {layer.name!r} is declared with {length} elements; its "
                f"shape {layer.output_shape} needs "
                f"{wanted[what]}: a channel was removed from one but not from the other"
            )


def firmware_folder(project: Path) -> Path:
    """Return the folder of a project's C++; in a oneAPI project it lies one level deeper."""
    deeper = project / "src" / "firmware"
    return deeper if deeper.is_dir() else project / "firmware"


@dataclass(frozen=True)
class _Files:
    """The contents of a project's firmware folder."""

    folder: Path
    arrays: Mapping[str, WeightArray]
    types: Mapping[str, str]
    numbers: Mapping[str, int]

    @classmethod
    def read(cls, folder: Path, design: Design) -> _Files:
        arrays = read_weight_arrays(folder)
        by_type_or_name = {array.name: array for array in arrays} | {array.type: array for array in arrays}
        # Layers without a name in the files go by their order; their integers are compared all the same.
        scaled = [layer.project_name for layer in design.layers if "scale" in layer.weights]
        unnamed = read_scale_numbers(folder)
        by_order = dict(zip(scaled, unnamed, strict=True)) if len(scaled) == len(unnamed) else {}
        return cls(folder, by_type_or_name, read_typedefs(folder), by_order | read_layer_numbers(folder))

    def array(self, layer: str, role: str) -> WeightArray | None:
        """Return the array for `role` of the layer that the project calls `layer`; None if there is none."""
        named = self.arrays.get(f"{layer}_{role}_t")
        if named is not None or layer not in self.numbers:
            return named
        return self.arrays.get(f"{_LETTERS.get(role, role)}{self.numbers[layer]}")

    def integers(self, layer: LayerSpec, role: str) -> NDArray[np.int64]:
        """Return the integers of a layer's role; the files and the design agree on them."""
        array = self.array(layer.project_name, role)
        if array is None and layer.strategy == "distributed_arithmetic":
            return self._from_adders(layer, role)
        if array is None or array.type not in self.types:
            raise CertificateError(f"{self.folder}: no weight file for {role} of layer {layer.name!r}")
        try:
            kind = FixedType.parse(element_type(self.types[array.type]))
        except DesignError as error:
            raise CertificateError(f"{self.folder}: {error}") from error
        exact = _represented(array.values, kind, array.file)
        wanted = layer.weights[role]
        for stored in stored_forms(wanted, layer.reuse_factor):
            if exact.size == stored.size and np.array_equal(exact, stored.ravel()):
                return wanted
        raise CertificateError(f"{array.file} and the design have different integers for {role} of {layer.name!r}")

    def _from_adders(self, layer: LayerSpec, role: str) -> NDArray[np.int64]:
        code = self.folder / "nnet_utils" / "nnet_code_gen.h"
        if layer.project_name not in self.numbers:
            raise CertificateError(f"{self.folder}: its C++ files do not call layer {layer.name!r}")
        matrix, biases = read_adder_weights(read_text(code), f"dense_da_{self.numbers[layer.project_name]}")
        exact = _represented(biases if role == "bias" else matrix.ravel(), layer.types[role], code)
        wanted = layer.weights[role]
        if exact.size != wanted.size or not np.array_equal(exact, wanted.ravel()):
            raise CertificateError(f"{code} and the design have different integers for {role} of {layer.name!r}")
        return wanted


def _represented(values: NDArray[np.float64], kind: FixedType, file: Path) -> NDArray[np.int64]:
    exact = kind.to_raw(values)
    if not np.array_equal(kind.to_float(exact), values):
        raise CertificateError(f"{file} holds values that {kind} cannot represent")
    return exact
