"""The weights in an hls4ml project's files, as the integers that synthesis will see."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpgaprune.design import Design, LayerSpec
from fpgaprune.errors import CertificateError, DesignError
from fpgaprune.fixed import FixedType

_TYPEDEF = re.compile(r"^typedef (?P<type>[\w<>,: ]+?) (?P<name>\w+);$", re.MULTILINE)
_ARRAY = re.compile(r"^(?P<type>\w+) (?P<name>\w+)\[(?P<size>\d+)\] = \{(?P<values>[^}]*)\};$", re.MULTILINE)


def read_firmware_weights(folder: Path, design: Design) -> dict[str, NDArray[Any]]:
    """Weight path to raw integers, in Keras's axis order, read from `firmware/weights/*.h`.

    What the C simulation loads (`*.txt`) must agree with what synthesis reads (`*.h`), and both with
    `design`; each is read on its own.

    Raises:
        CertificateError: a file is missing or malformed, or they do not agree.
    """
    firmware = folder / "firmware"
    types = {found["name"]: found["type"] for found in _TYPEDEF.finditer(_text(firmware / "defines.h"))}
    arrays: dict[str, tuple[str, NDArray[np.float64]]] = {}
    for header in sorted((firmware / "weights").glob("*.h")):
        found = _ARRAY.search(_text(header))
        if not found:
            raise CertificateError(f"{header} holds no weight array for synthesis")
        values = _numbers(header, found["values"], int(found["size"]))
        simulated = header.with_suffix(".txt")
        if simulated.exists() and not np.array_equal(values, _numbers(simulated, _text(simulated), values.size)):
            raise CertificateError(
                f"{simulated} holds other values than {header.name}: simulation would not be synthesis"
            )
        arrays[found["type"]] = (header.name, values)
    weights: dict[str, NDArray[Any]] = {}
    for layer in design.layers:
        for role, path in layer.sources.items():
            raw = _layer_integers(folder, layer, role, types, arrays)
            if role != "bias":
                # A bias carries BatchNorm's shift: its elements are not those of the Keras weight.
                weights[path] = raw
    return weights


def _layer_integers(
    folder: Path, layer: LayerSpec, role: str, types: dict[str, str], arrays: dict[str, tuple[str, NDArray[np.float64]]]
) -> NDArray[np.int64]:
    type_name = f"{layer.name}_{role}_t"
    if type_name not in types or type_name not in arrays:
        raise CertificateError(f"{folder}: no weight file for {role} of layer {layer.name!r} (type {type_name})")
    file, values = arrays[type_name]
    try:
        kind = FixedType.parse(types[type_name])
    except DesignError as error:
        raise CertificateError(f"{folder}: {error}") from error
    exact = kind.to_raw(values)
    if not np.array_equal(kind.to_float(exact), values):
        raise CertificateError(f"{folder}: {file} holds values that {kind} does not represent")
    raw = layer.weights[role]
    # The resource strategy stores kernels with the outputs first.
    for stored in (raw, np.moveaxis(raw, -1, 0)):
        if exact.size == raw.size and np.array_equal(exact.reshape(stored.shape), stored):
            return raw
    raise CertificateError(f"{folder}: {file} holds other integers than the design has for {role} of {layer.name!r}")


def _numbers(path: Path, text: str, size: int) -> NDArray[np.float64]:
    try:
        values = np.array([float(item) for item in text.split(",")])
    except ValueError as error:
        raise CertificateError(f"{path} holds something that is no number: {error}") from error
    if values.size != size:
        raise CertificateError(f"{path} holds {values.size} values; wanted {size}")
    return values


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except FileNotFoundError as error:
        raise CertificateError(f"{path} does not exist") from error
