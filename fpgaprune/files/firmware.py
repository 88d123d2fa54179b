"""Reads the weight headers and type definitions of an hls4ml project as text; nothing is executed.

It understands the files that hls4ml 0.6 to 1.3 writes for Vivado, Vitis, VivadoAccelerator, oneAPI, Catapult
and Libero.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpgaprune.errors import FirmwareError

_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_TYPEDEF = re.compile(r"typedef\s+([^;]+?)\s+(\w+)\s*;")
# `conv1_weight_t w2[36] = {...};`, `static const weight_t w2 [36] = {...};`, `w2 = {{...}}` of a std::array.
_ARRAY = re.compile(r"(?P<type>\w+)\s+(?P<name>\w+)\s*(\[(?P<size>\d+)\])?\s*=\s*\{+(?P<values>[^{}]*)\}+;")
_ELEMENT = re.compile(r"^nnet::array<(?P<type>.+),[^,<>]+>$")
_CONFIG = re.compile(r"struct\s+config(?P<number>\d+)(?:_mult)?\s*:[^{;]*\{(?P<body>.*?)\n\};", re.DOTALL)
_ACCUM = re.compile(r"typedef\s+(?P<layer>\w+)_accum_t\s+accum_t\s*;")
_CALL = re.compile(r"(?:dense_da_|config)(?P<number>\d+)[^\n]*//[ \t]*(?P<layer>\S+)[ \t]*$", re.MULTILINE)
_SCALES = re.compile(r"struct\s+config(\d+)\s*:\s*nnet::batchnorm_config")
# A layer of a oneAPI project's streams is a task, named as the layer.
_TASK = re.compile(r"task_sequence<[^\n;]*config(?P<number>\d+)>>[ \t]+(?P<layer>\w+);")
_SIZE = re.compile(r"static\s+const\s+unsigned\s+(\w+)\s*=\s*(\d+)\s*;")
_WRITES = re.compile(r"layer(?P<number>\d+)_t,[ \t]*\w*config\d+[^\n]*//[ \t]*(?P<layer>\S+)[ \t]*$", re.MULTILINE)
_ARRAY_OF_OUTPUT = re.compile(r"\w+\s+layer(?P<number>\d+)_out\s*\[(?P<length>\d+(?:\s*\*\s*\d+)*)\]")
_TYPE_OF_OUTPUT = re.compile(r"typedef\s+nnet::array<.*,\s*(?P<length>\d+)\*\d+\s*>\s*layer(?P<number>\d+)_t\s*;")
# Above this size, hls4ml's writer for oneAPI pads a Dense layer's rows and columns to powers of two.
_PADDED_FROM = 2048


@dataclass(frozen=True)
class WeightArray:
    """One array of numbers as synthesis reads it.

    Attributes:
        name: for example `w2`.
        type: name of its type, for example `conv1_weight_t`; in a oneAPI project the type of the array, `w2_t`.
        values: the numbers in the file's order, flat.
        file: the file.
    """

    name: str
    type: str
    values: NDArray[np.float64]
    file: Path


def parse_typedefs(text: str) -> dict[str, str]:
    """Map NAME to TYPE for every `typedef TYPE NAME;` in `text`."""
    return {name: " ".join(kind.split()) for kind, name in _TYPEDEF.findall(_COMMENT.sub("", text))}


def read_typedefs(firmware: Path) -> dict[str, str]:
    """Name to type for the types in `defines.h` (in older projects `parameters.h`) of the folder `firmware`."""
    for name in ("defines.h", "parameters.h"):
        if (firmware / name).is_file():
            return parse_typedefs(read_text(firmware / name))
    if not firmware.is_dir():
        raise FirmwareError(f"{firmware} does not exist; wanted the firmware of an hls4ml project")
    raise FirmwareError(
        f"{firmware} holds neither defines.h nor parameters.h; wanted the firmware of an hls4ml project"
    )


def read_weight_array(header: Path) -> WeightArray:
    """Return the array that synthesis reads from `header`.

    The C simulation loads a text file of the same name instead; if there is one, it must hold the same numbers.

    Raises:
        FirmwareError: a file is missing or malformed, or the two differ.
    """
    text = read_text(header)
    found = _ARRAY.search(text)
    if not found:
        raise FirmwareError(f"{header} holds no weight array for synthesis")
    values = parse_numbers(found["values"], header)
    if found["size"] is not None and values.size != int(found["size"]):
        raise FirmwareError(f"{header} holds {values.size} values; wanted {found['size']}")
    simulated = header.with_suffix(".txt")
    if simulated.is_file():
        loaded = parse_numbers(read_text(simulated), simulated)
        if loaded.size != values.size:
            raise FirmwareError(f"{simulated} holds {loaded.size} values; {header.name} has {values.size}")
        if not np.array_equal(values, loaded):
            raise FirmwareError(
                f"{simulated} holds other values than {header.name}: simulation and synthesis would differ"
            )
    return WeightArray(found["name"], found["type"], values, header)


def read_weight_arrays(firmware: Path) -> list[WeightArray]:
    """Return every weight array in the folder `firmware` of a project, in the order of the files' names."""
    return [read_weight_array(header) for header in sorted((firmware / "weights").glob("*.h"))]


def element_type(text: str) -> str:
    """Return TYPE of `nnet::array<TYPE, N>`; any other type is returned as it is."""
    found = _ELEMENT.match(text.strip())
    return found["type"].strip() if found else text


def read_layer_numbers(firmware: Path) -> dict[str, int]:
    """Map layer name to the number in the names of its configuration and its arrays: `config2`, `w2`, `b2`."""
    numbers = {}
    parameters = read_text(firmware / "parameters.h") if (firmware / "parameters.h").is_file() else ""
    for config in _CONFIG.finditer(parameters):
        found = _ACCUM.search(config["body"])
        if found:
            numbers[found["layer"]] = int(config["number"])
    for top in sorted(firmware.glob("*.cpp")):
        text = read_text(top)
        calls = (call for form in (_TASK, _CALL) for call in form.finditer(text))
        numbers |= {call["layer"]: int(call["number"]) for call in calls}
    return numbers


def read_scale_numbers(firmware: Path) -> list[int]:
    """Read the numbers of the scaling layers, in order: a oneAPI project without streams does not say their names."""
    parameters = firmware / "parameters.h"
    return [int(number) for number in _SCALES.findall(read_text(parameters))] if parameters.is_file() else []


def read_layer_sizes(firmware: Path) -> dict[int, dict[str, int]]:
    """Map layer number to the sizes in its configuration (`n_in`, `n_out`, `n_chan`, `n_filt`, ...).

    If a convolution has a second configuration for its multiplications, `n_in` and `n_out` come from that one.
    """
    if not (firmware / "parameters.h").is_file():
        return {}
    sizes: dict[int, dict[str, int]] = {}
    for config in _CONFIG.finditer(read_text(firmware / "parameters.h")):
        found = {name: int(value) for name, value in _SIZE.findall(config["body"])}
        known = sizes.setdefault(int(config["number"]), {})
        sizes[int(config["number"])] = found | known
    return sizes


def read_output_lengths(firmware: Path) -> dict[str, dict[str, int]]:
    """Map layer name to the declared lengths of its output, as far as the files tell the layer's name.

    `array` is the length of a C++ array (`layer4_out[3*3*2]`), `type` that of a `nnet::array` (`layer4_t`); a stream
    carries one `nnet::array` for each pixel.

    Raises:
        FirmwareError: two files declare one output with different lengths.
    """
    lengths: dict[int, dict[str, int]] = {}
    owners = read_layer_numbers(firmware)
    for file in sorted({*firmware.glob("*.cpp"), *firmware.glob("*.h")}):
        text = read_text(file)
        # The configuration and the output of a pointwise convolution have different numbers.
        owners |= {call["layer"]: int(call["number"]) for call in _WRITES.finditer(text)}
        for kind, pattern in (("array", _ARRAY_OF_OUTPUT), ("type", _TYPE_OF_OUTPUT)):
            for found in pattern.finditer(text):
                known = lengths.setdefault(int(found["number"]), {})
                length = math.prod(int(factor) for factor in found["length"].split("*"))
                if known.setdefault(kind, length) != length:
                    raise FirmwareError(
                        f"{file} declares the output of layer number {found['number']} with {length} elements, another "
                        f"file with {known[kind]}"
                    )
    return {layer: lengths[number] for layer, number in owners.items() if number in lengths}


def parse_numbers(text: str, file: Path) -> NDArray[np.float64]:
    """Return the numbers in `text`, separated by commas or line ends."""
    try:
        return np.array([float(item) for item in text.replace("\n", ",").split(",") if item.strip()])
    except ValueError as error:
        raise FirmwareError(f"{file} holds something that is not a number: {error}") from error


def read_text(path: Path) -> str:
    """Return the text of the file at `path`."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError as error:
        raise FirmwareError(f"{path} does not exist") from error
    except OSError as error:
        raise FirmwareError(f"{path} cannot be read: {error.strerror}") from error


def stored_forms(weight: NDArray[Any], reuse: int = 1) -> Iterator[NDArray[Any]]:
    """Yield `weight`, given in Keras's axis order, in each order in which hls4ml's templates may store it.

    These are the same order (latency), outputs first (resource; oneAPI always), and for a large Dense layer
    of oneAPI the transpose in `reuse` columns, padded with zeros.
    """
    yield weight
    turned = np.moveaxis(weight, -1, 0)
    yield turned
    if weight.ndim == 2 and weight.size > _PADDED_FROM and weight.size % reuse == 0:
        blocks = weight.size // reuse
        rows, columns = (1 << math.ceil(math.log2(n)) for n in (blocks, reuse))
        if columns != reuse:
            padded = np.zeros((rows, columns), weight.dtype)
            padded[:blocks, :reuse] = turned.reshape(blocks, reuse)
            yield padded
