"""`read_project`: an hls4ml project folder of release 0.6 or later, made by anyone, as a `Design` for estimates."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpgaprune.backends import as_built
from fpgaprune.design import FUNCTIONS, Design, LayerSpec
from fpgaprune.errors import DesignError, EstimateError, FirmwareError
from fpgaprune.estimate import firmware
from fpgaprune.estimate.families import FAMILIES, is_quantizer
from fpgaprune.estimate.firmware import Struct, TemplateCall
from fpgaprune.files import parse_numbers, parse_typedefs, read_weight_array
from fpgaprune.hls import layer_of
from fpgaprune.values import MAX_WIDTH, FixedType


def read_numbers(folder: Path, name: str) -> NDArray[np.float64]:
    """Return the numbers of weight `name`, from its text file or its header file."""
    text = folder / f"{name}.txt"
    try:
        if text.is_file():
            return parse_numbers(read_text(text), text)
        return read_weight_array(folder / f"{name}.h").values
    except FirmwareError as error:
        raise EstimateError(str(error)) from error


def find_top_file(home: Path) -> Path:
    """Return the C++ file that calls the layers."""
    for candidate in sorted(home.glob("*.cpp")):
        if re.search(r"nnet::\w+\s*<", read_text(candidate)) and "_bridge" not in candidate.stem:
            return candidate
    raise EstimateError(f"no top function (a .cpp that calls nnet:: layers) in {home}; wanted an hls4ml project folder")


def read_settings(root: Path) -> dict[str, Any]:
    """Read part, clock period and backend; each hls4ml release states them in other files."""
    texts = [read_text(p) for n in ("project.tcl", "build_prj.tcl", "hls4ml_config.yml") if (p := root / n).is_file()]
    text = "\n".join(texts)

    def first(*patterns: str) -> str | None:
        for pattern in patterns:
            found = re.search(pattern, text, re.MULTILINE)
            if found:
                return found[1]
        return None

    part = first(r'set part "([^"]+)"', r"set_part\s+\{?([\w-]+)", r"^\s*(?:Xilinx)?Part:\s*(\S+)")
    clock = first(r"set clock_period (\d[\d.]*)", r"create_clock -period (\d[\d.]*)", r"^\s*ClockPeriod:\s*(\d[\d.]*)")
    backend = first(r'set backend "(\w+)"', r"^\s*Backend:\s*(\w+)") or "Vivado"
    names = {"vivado": "Vivado", "vitis": "Vitis", "vivadoaccelerator": "VivadoAccelerator"}
    return {"part": part, "clock_ns": float(clock or 5.0), "backend": names.get(backend.lower(), backend)}


def read_text(path: Path) -> str:
    """Return the text of `path`.

    Raises:
        EstimateError: the file cannot be read.
    """
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise EstimateError(f"project file {path} cannot be read: {error.strerror}") from error


_KINDS = {
    **dict.fromkeys(FUNCTIONS, "Activation"),
    "dense": "Dense",
    "conv_1d_cl": "Conv1D",
    "conv_2d_cl": "Conv2D",
    "pointwise_conv_1d_cl": "PointwiseConv1D",
    "pointwise_conv_2d_cl": "PointwiseConv2D",
    "depthwise_conv_1d_cl": "DepthwiseConv1D",
    "depthwise_conv_2d_cl": "DepthwiseConv2D",
    "normalize": "BatchNormalization",
    "softmax": "Softmax",
    "pooling1d_cl": "Pooling1D",
    "pooling2d_cl": "Pooling2D",
    "global_pooling1d_cl": "GlobalPooling1D",
    "global_pooling2d_cl": "GlobalPooling2D",
    "zeropad1d_cl": "ZeroPadding1D",
    "zeropad2d_cl": "ZeroPadding2D",
    "resize_nearest": "Resize",
    "clone_stream": "Clone",
    "repack_stream": "Repack",
    **dict.fromkeys(("add", "subtract", "multiply", "average", "maximum", "minimum"), "Merge"),
    **dict.fromkeys(("concatenate1d", "concatenate2d", "concatenate3d"), "Concatenate"),
    **dict.fromkeys(("transpose", "transpose_2d", "transpose_3d"), "Transpose"),
}  # fmt: skip
_ROLES = {"w": "weight", "b": "bias", "s": "scale", "d": "weight", "p": "weight"}
_TYPE = re.compile(r"(?:ap_|ac_)?(u?)(fixed|int)<(\d+)(?:,(-?\d+))?")


def read_project(path: str | os.PathLike[str]) -> Design:
    """Return the network in the hls4ml project in folder `path`, with its weights quantised as the project declares.

    It reads `firmware/defines.h`, `firmware/parameters.h`, the top function and `firmware/weights`; part, clock and
    backend come from `project.tcl`, `build_prj.tcl` or `hls4ml_config.yml`. The design serves estimates only: a type
    wider than 64 bits counts as 64 bits, and an activation has its name but not its table. A layer of a class that no
    model prices keeps the name of its function as its kind.

    Raises:
        EstimateError: a file is missing or not of hls4ml's form.
    """
    root = Path(path)
    home = root / "firmware" if (root / "firmware").is_dir() else root
    parameters = read_text(home / "parameters.h")
    definitions = read_text(home / "defines.h") if (home / "defines.h").is_file() else parameters
    top = find_top_file(home)
    reader = _Reader(home, parameters, definitions, top)
    return reader.design(top.stem, read_settings(root))


class _Reader:
    """The parsed texts of one project, and the layers read so far."""

    def __init__(self, home: Path, parameters: str, definitions: str, top: Path) -> None:
        self.home = home
        self.source = read_text(top)
        self.macros = {**firmware.parse_macros(definitions), **firmware.parse_macros(parameters)}
        self.typedefs = {**parse_typedefs(definitions), **parse_typedefs(self.source)}
        self.structs = firmware.parse_structs(parameters)
        self.calls, self.aliases = firmware.parse_calls(self.source)
        if not self.calls:
            raise EstimateError(f"{top} calls no hls4ml layer; wanted lines such as 'nnet::dense<...>(...);'")
        self.stream = "hls::stream" in self.source
        self.makers: dict[str, str] = {}
        self.layers: list[LayerSpec] = []

    def design(self, name: str, settings: Mapping[str, Any]) -> Design:
        """Return the whole design; its layers are in the order of the calls."""
        for number, call in enumerate(self.calls):
            self._add(call, number)
        read = {source for layer in self.layers for source in layer.inputs}
        outputs = tuple(layer.name for layer in self.layers if layer.name not in read)
        try:
            return as_built(
                Design(
                    name=name,
                    layers=tuple(self.layers),
                    outputs=outputs or (self.layers[-1].name,),
                    io_type="io_stream" if self.stream else "io_parallel",
                    backend=settings["backend"],
                    clock_ns=settings["clock_ns"],
                    part=settings["part"],
                )
            )
        except DesignError as error:
            raise EstimateError(f"{self.home} holds no whole design: {error}") from error

    def _add(self, call: TemplateCall, number: int) -> None:
        name = call.name or f"layer_{number}"
        # A class that no model prices keeps the name of its function, and the estimate leaves the layer out.
        kind = _KINDS.get(call.function) or ("Activation" if is_quantizer(call.function) else call.function)
        config = next((self.structs[t] for t in reversed(call.types) if t in self.structs), None)
        values = self._numbers(config)
        count = 2 if kind in ("Merge", "Concatenate") else 1
        variables = [self.aliases.get(a, a) for a in call.arguments]
        sources = tuple(self._source(v, call, values) for v in variables[:count])
        shape = self._shape(kind, values, sources)
        types = self._types(call, kind, config)
        weights = self._weights(call, kind, config, values, types)
        mult = self.structs.get(config.types.get("mult_config", "")) if config else None
        spec = layer_of(
            name=name,
            kind=kind,
            inputs=sources,
            output_shape=shape,
            types=types,
            weights=weights,
            attributes=self._attributes(call, kind, config, values),
            reuse_factor=max(self._numbers(mult or config).get("reuse_factor", 1), 1),
            strategy=_strategy(mult or config) if kind in ("Dense",) or "Conv" in kind else None,
        )
        self.layers.append(spec)
        # Some calls have weights, a slope or a threshold between input and output.
        for variable in variables[1:] if kind == "Clone" else [v for v in variables if _is_data(v)][-1:]:
            self.makers[variable] = name

    def _source(self, variable: str, call: TemplateCall, values: Mapping[str, int]) -> str:
        if variable in self.makers:
            return self.makers[variable]
        # A variable that no call has written is an input of the network.
        kind = self._type(call.types[0])
        shape = _first_shape(call, values, self._array_size(call.types[0]))
        self.layers.append(layer_of(variable, "Input", (), shape, {"result": kind}))
        self.makers[variable] = variable
        return variable

    def _array_size(self, name: str) -> int:
        return firmware.split_array(self.typedefs.get(name, name), self.macros)[1]

    def _type(self, name: str) -> FixedType:
        text = name
        for _ in range(5):
            if text not in self.typedefs:
                break
            text = self.typedefs[text]
        text, _size = firmware.split_array(text, self.macros)
        wide = _TYPE.match(text)
        if wide and int(wide[3]) > MAX_WIDTH:
            integer = int(wide[4] or wide[3]) - (int(wide[3]) - MAX_WIDTH)
            return FixedType(MAX_WIDTH, integer, signed=not wide[1])
        try:
            return FixedType.parse(text)
        except DesignError as error:
            raise EstimateError(f"type {name!r} of the project is {text!r}: {error}") from error

    def _types(self, call: TemplateCall, kind: str, config: Struct | None) -> dict[str, FixedType]:
        position = {"Merge": 2, "Concatenate": 2}.get(kind, 1)
        names = [t for t in call.types if t not in self.structs and not t[0].isdigit()]
        types = {"result": self._type(names[-1] if kind == "Activation" else names[min(position, len(names) - 1)])}
        for alias, target in (config.types if config else {}).items():
            role = alias.removesuffix("_t")
            if alias.endswith("_t") and role in ("weight", "bias", "accum", "scale", "table", "exp_table", "inv_table"):
                types[role] = self._type(target)
        return types

    def _numbers(self, config: Struct | None) -> dict[str, int]:
        numbers: dict[str, int] = {}
        if config is None:
            return numbers
        names = {**self.macros, **config.fields}
        for field, text in config.fields.items():
            if "::" in text or text.strip() in ("true", "false") or "{" in text:
                continue
            try:
                numbers[field] = firmware.evaluate(text, names)
            except EstimateError:
                # Some fields, such as index arithmetic, are not needed; `_need` refuses if a needed one is missing.
                continue
        return numbers

    def _shape(self, kind: str, values: Mapping[str, int], sources: tuple[str, ...]) -> tuple[int, ...]:
        if kind == "Dense":
            return (_need(values, "n_out", kind),)
        if "GlobalPooling" in kind:
            return (_need(values, "n_filt", kind),)
        if kind in ("Conv2D", "PointwiseConv2D", "DepthwiseConv2D", "Pooling2D"):
            return tuple(_need(values, key, kind) for key in ("out_height", "out_width", "n_filt"))
        if kind in ("Conv1D", "PointwiseConv1D", "DepthwiseConv1D", "Pooling1D"):
            return tuple(_need(values, key, kind) for key in ("n_out" if "n_out" in values else "out_width", "n_filt"))
        if kind == "ZeroPadding2D":
            return tuple(_need(values, key, kind) for key in ("out_height", "out_width", "n_chan"))
        if kind == "ZeroPadding1D":
            return tuple(_need(values, key, kind) for key in ("out_width", "n_chan"))
        if kind == "Resize":
            height = values.get("new_height") or values.get("out_height", 1)
            return height, values.get("new_width") or _need(values, "out_width", kind), _need(values, "n_chan", kind)
        first, *others = (next(layer.output_shape for layer in self.layers if layer.name == s) for s in sources)
        if kind == "Concatenate":
            return (*first[:-1], first[-1] + sum(shape[-1] for shape in others))
        return first

    def _attributes(
        self, call: TemplateCall, kind: str, config: Struct | None, values: Mapping[str, int]
    ) -> dict[str, Any]:
        found: dict[str, Any] = dict(values)
        if kind == "Activation":
            found["activation"] = "linear" if is_quantizer(call.function) else call.function
        if kind == "Merge":
            found["op"] = call.function
        # Neither changes the price, and old projects state neither.
        if kind == "Concatenate":
            found["axis"] = -1
        if kind == "Transpose":
            found["perm"] = ()
        fields = config.fields if config else {}
        for key in ("pool_op", "implementation"):
            if key in fields:
                found[key] = fields[key].rsplit("::", 1)[-1].strip()
        return found

    def _weights(
        self,
        call: TemplateCall,
        kind: str,
        config: Struct | None,
        values: Mapping[str, int],
        types: Mapping[str, FixedType],
    ) -> dict[str, NDArray[np.int64]]:
        found: dict[str, NDArray[np.int64]] = {}
        for argument in call.arguments if kind in FAMILIES else ():
            if not _is_weight(argument):
                continue
            role = _ROLES[argument[0]]
            if role not in types:
                continue
            numbers = read_numbers(self.home / "weights", argument)
            raw = types[role].to_raw(numbers)
            found[role] = self._laid_out(raw, kind, config, values) if role == "weight" else raw
        return found

    def _laid_out(
        self, raw: NDArray[np.int64], kind: str, config: Struct | None, values: Mapping[str, int]
    ) -> NDArray[np.int64]:
        if kind == "Dense":
            shape: tuple[int, ...] = (_need(values, "n_in", kind), _need(values, "n_out", kind))
        elif kind.startswith("Depthwise"):
            shape = (values.get("filt_height", 1), _need(values, "filt_width", kind), -1, _need(values, "n_chan", kind))
        else:
            window = (_need(values, "filt_width", kind), _need(values, "n_chan", kind), _need(values, "n_filt", kind))
            shape = window if kind.endswith("1D") else (_need(values, "filt_height", kind), *window)
        if -1 not in shape and raw.size != math.prod(shape):
            raise EstimateError(f"{kind} has {raw.size} weights; its configuration wants {shape}")
        mult = self.structs.get(config.types.get("mult_config", "")) if config else None
        if (_strategy(mult or config) or "").startswith("resource") and not kind.startswith("Depthwise"):
            # The resource strategy stores the outputs first.
            return np.moveaxis(raw.reshape(shape[-1], *shape[:-1]), 0, -1)
        return raw.reshape(shape)


def _is_data(text: str) -> bool:
    return text.isidentifier() and not _is_weight(text)


def _is_weight(variable: str) -> bool:
    return re.fullmatch(r"[wbsdp]\d+(?:_\w+)?", variable) is not None


def _strategy(config: Struct | None) -> str | None:
    if config is None:
        return None
    if "unrolled" in config.types.get("kernel", ""):
        return "resource_unrolled"
    return config.fields.get("strategy", "nnet::latency").rsplit("::", 1)[-1].strip().lower()


def _first_shape(call: TemplateCall, values: Mapping[str, int], packed: int) -> tuple[int, ...]:
    if "in_width" in values or "in_height" in values:
        channels = values.get("n_chan") or values.get("n_filt", 1)
        return (*(values[k] for k in ("in_height", "in_width") if k in values), channels)
    size = values.get("n_in") or values.get("n_elem")
    if size is None and call.types[-1].isdigit():
        size = int(call.types[-1])
    if not size:
        raise EstimateError(
            f"nnet::{call.function} reads the network's input, whose size its configuration does not say"
        )
    return (size,) if packed in (1, size) else (size // packed, packed)


def _need(values: Mapping[str, int], key: str, kind: str) -> int:
    if key not in values:
        raise EstimateError(f"configuration of a {kind} lacks {key!r}; the project is not of a known hls4ml release")
    return values[key]
