"""`Quant`, `BipolarQuant` and `Trunc` of QONNX in NumPy and in ONNX's own operators, and which type a `Quant` is.

Source: Pappalardo, Umuroglu, Blott and others, "QONNX: Representing Arbitrary-Precision Quantized Neural Networks",
2022, section III.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fpgaprune.files import attributes
from fpgaprune.values import Array, FixedType

if TYPE_CHECKING:
    import onnx

# qonnx calls `Quant` also `IntQuant`.
QUANTISERS = ("Quant", "IntQuant", "BipolarQuant", "Trunc")
# The domains under which tools have written them; some wrote them as if they were ONNX's own.
DOMAINS = ("", "onnx.brevitas", "finn.custom_op.general", "qonnx.custom_op.general")
_ROUNDINGS: Mapping[str, Callable[[Array], Array]] = {
    "ROUND": np.round,
    "HALF_EVEN": np.round,
    "FLOOR": np.floor,
    "CEIL": np.ceil,
    "DOWN": np.trunc,
    "UP": lambda x: np.sign(x) * np.ceil(np.abs(x)),
    "HALF_UP": lambda x: np.sign(x) * np.floor(np.abs(x) + 0.5),
    "HALF_DOWN": lambda x: np.sign(x) * np.ceil(np.abs(x) - 0.5),
}
# Modes that treat a number and its negative alike: what rounds the size, and what is added to the size first.
_AWAY = {"DOWN": ("Floor", 0.0), "UP": ("Ceil", 0.0), "HALF_UP": ("Floor", 0.5), "HALF_DOWN": ("Ceil", -0.5)}
_WHOLE = 1.5 * 2.0**23
# Those that a fixed-point type has.
_OF_TYPES = {
    "ROUND": "RND_CONV",
    "HALF_EVEN": "RND_CONV",
    "FLOOR": "TRN",
    "DOWN": "TRN_ZERO",
    "HALF_UP": "RND_INF",
    "HALF_DOWN": "RND_ZERO",
}


def is_quantiser(node: onnx.NodeProto) -> bool:
    """Return whether `node` rounds to few bits in one of the ways of QONNX."""
    return node.op_type in QUANTISERS and node.domain in DOMAINS


def rounding_of(settings: Mapping[str, object], usual: str = "ROUND") -> str:
    """Return the mode of rounding among the attributes of a quantiser."""
    found = settings.get("rounding_mode", usual)
    return (found.decode("utf-8", "replace") if isinstance(found, bytes) else str(found)).upper()


def quant(
    x: Array, scale: object, zero_point: object, bits: object, settings: Mapping[str, object]
) -> NDArray[np.float32]:
    """Compute `Quant` of `x`.

    Raises:
        ValueError: the number of bits or the rounding is unknown.
    """
    mode, width = rounding_of(settings), float(np.asarray(bits).ravel()[0])
    if mode not in _ROUNDINGS or not 1 <= width <= 32 or width != int(width):
        raise ValueError(f"rounds by {mode!r} to {width:g} bits; wanted 1 to 32 bits, {', '.join(_ROUNDINGS)}")
    signed, narrow = bool(settings.get("signed", 1)), bool(settings.get("narrow", 0))
    whole = x / scale + zero_point
    if signed and width == 1:
        whole = np.where(whole >= 0, 1.0, -1.0)
    else:
        high = 2 ** (width - signed) - 1 - (narrow and not signed)
        low = -signed * (2 ** (width - 1)) + (narrow and signed)
        whole = _ROUNDINGS[mode](np.clip(whole, low, high))
    return np.asarray((whole - zero_point) * scale, dtype=np.float32)


def bipolar_quant(x: Array, scale: object) -> NDArray[np.float32]:
    """Return `scale` where `x` is zero or more, and `-scale` where it is less."""
    return np.asarray(np.where(x >= 0, 1.0, -1.0) * scale, dtype=np.float32)


def checked_scale(scale: Array) -> NDArray[np.float32]:
    """Return `scale` after a check that every number in it is above zero.

    Raises:
        ValueError: one is not.
    """
    if not scale.size or not np.isfinite(scale).all() or not (scale > 0).all():
        raise ValueError(f"has the scale {scale.ravel()[:1]}; wanted numbers above 0")
    return scale.astype(np.float32)


def are_powers(scale: Array) -> bool:
    """Return whether every number of `scale` is a power of two."""
    return bool((np.frexp(scale)[0] == 0.5).all())


def steps_type(bits: Array, settings: Mapping[str, object], usual: str = "ROUND") -> FixedType:
    """Return the type of whole numbers that rounds and saturates as a quantiser of `bits` bits does.

    Raises:
        ValueError: no such type does; the message says why.
    """
    width, signed = float(bits.ravel()[0]) if bits.size == 1 else 0.0, bool(settings.get("signed", 1))
    narrow, mode = bool(settings.get("narrow", 0)), rounding_of(settings, usual)
    if mode not in _OF_TYPES:
        raise ValueError(f"rounds by {mode!r}; wanted {', '.join(_OF_TYPES)}")
    if (narrow and not signed) or (signed and width < 2) or not 1 <= width <= 32 or width != int(width):
        raise ValueError(
            f"has {width:g} bits, signed {signed}, narrow {narrow}, for which there is no fixed-point type"
        )
    return FixedType(int(width), int(width), signed, _OF_TYPES[mode], "SAT_SYM" if narrow else "SAT")


def type_of(scale: Array, zero_point: Array, bits: Array, settings: Mapping[str, object]) -> FixedType | None:
    """Return the fixed-point type that rounds as a `Quant` does; None if there is none, as for a scale of 0.3."""
    if np.any(zero_point) or scale.size != 1 or not are_powers(scale):
        return None
    try:
        steps = steps_type(bits, settings)
    except ValueError:
        return None
    return replace(steps, integer=steps.width + int(math.log2(float(scale.ravel()[0]))))


def trunc(x: Array, given: Sequence[Array], settings: Mapping[str, object]) -> NDArray[np.float32]:
    """Compute `Trunc` of `x`: the first version with four further inputs, or the second with five."""
    scale, zero_point, bits = given[0], given[1], given[2]
    mode = _ROUNDINGS[rounding_of(settings, "FLOOR")]
    whole = np.round(x / scale + zero_point)
    if len(given) == 4:
        return np.asarray((mode(whole / 2.0 ** (bits - given[3])) - zero_point) * scale, dtype=np.float32)
    cut = 2.0 ** np.round(np.log2(given[3] / scale))
    kind = steps_type(given[4], settings, "FLOOR")
    inside = mode(np.clip(whole / cut, kind.raw_min, kind.raw_max))
    return np.asarray((inside - zero_point / cut) * given[3], dtype=np.float32)


def in_standard_operators(model: onnx.ModelProto) -> onnx.ModelProto:
    """Copy `model` with ONNX's own operators for each quantiser, so that onnxruntime can run it."""
    from onnx import numpy_helper

    copy = type(model).FromString(model.SerializeToString())
    if not any(is_quantiser(node) for node in copy.graph.node):
        return copy
    nodes: list[Any] = []
    single = _single_bits(model.graph)
    for at, node in enumerate(model.graph.node):
        if is_quantiser(node):
            spelled = _Spelled(node, f"quantiser_{at}", single)
            nodes += spelled.nodes
            copy.graph.initializer.extend(numpy_helper.from_array(*pair[::-1]) for pair in spelled.constants.items())
        else:
            nodes.append(node)
    del copy.graph.node[:]
    copy.graph.node.extend(nodes)
    return copy


def _single_bits(graph: onnx.GraphProto) -> set[str]:
    """Return the names of the constants that are the number 1."""
    from onnx import numpy_helper

    stored = [(tensor.name, tensor) for tensor in graph.initializer]
    made = [(node.output[0], e.t) for node in graph.node if node.op_type == "Constant" for e in node.attribute]
    found = {name: numpy_helper.to_array(tensor) for name, tensor in (*stored, *made) if math.prod(tensor.dims) == 1}
    return {name for name, values in found.items() if values.dtype.kind in "fiu" and values.ravel()[0] == 1}


class _Spelled:
    """A quantiser in ONNX's own operators of every opset."""

    def __init__(self, node: onnx.NodeProto, name: str, single: set[str]) -> None:
        self.name = name
        self.nodes: list[Any] = []
        self.constants: dict[str, Array] = {}
        settings = attributes(node)
        if node.op_type == "BipolarQuant":
            last = self._add("Mul", self._sign_of_step(node.input[0]), node.input[1])
        elif node.op_type == "Trunc":
            last = self._truncated(node, settings)
        else:
            zero_point, bits = (self._add("Cast", name, to=1) for name in node.input[2:4])
            whole = self._add("Add", self._add("Div", node.input[0], node.input[1]), zero_point)
            if settings.get("signed", 1) and node.input[3] in single:
                inside = self._sign_of_step(whole)
            else:
                inside = self._rounded(self._clipped(whole, bits, settings), rounding_of(settings))
            last = self._add("Mul", self._add("Sub", inside, zero_point), node.input[1])
        self._add("Identity", last, output=node.output[0])

    def _clipped(self, whole: str, bits: str, settings: Mapping[str, Any]) -> str:
        signed, narrow = float(settings.get("signed", 1)), float(settings.get("narrow", 0))
        power = self._add("Pow", self._number(2.0), self._add("Sub", bits, self._number(signed)))
        high = self._add("Sub", power, self._number(1 + narrow * (1 - signed)))
        low = self._add("Mul", self._add("Sub", power, self._number(narrow)), self._number(-signed))
        return self._add("Min", self._add("Max", whole, low), high)

    def _truncated(self, node: onnx.NodeProto, settings: Mapping[str, object]) -> str:
        zero_point, bits = (self._add("Cast", name, to=1) for name in node.input[2:4])
        whole = self._rounded(self._add("Add", self._add("Div", node.input[0], node.input[1]), zero_point), "HALF_EVEN")
        mode = rounding_of(settings, "FLOOR")
        if len(node.input) == 5:
            cut = self._add("Pow", self._number(2.0), self._add("Sub", bits, self._add("Cast", node.input[4], to=1)))
            inside = self._rounded(self._add("Div", whole, cut), mode)
            return self._add("Mul", self._add("Sub", inside, zero_point), node.input[1])
        ratio = self._add("Log", self._add("Div", node.input[4], node.input[1]))
        exponent = self._rounded(self._add("Div", ratio, self._number(math.log(2.0))), "HALF_EVEN")
        cut = self._add("Pow", self._number(2.0), exponent)
        wanted = self._add("Cast", node.input[5], to=1)
        inside = self._rounded(self._clipped(self._add("Div", whole, cut), wanted, settings), mode)
        return self._add("Mul", self._add("Sub", inside, self._add("Div", zero_point, cut)), node.input[4])

    def _add(self, operator: str, *inputs: str, output: str = "", **settings: object) -> str:
        from onnx import helper

        output = output or f"{self.name}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, list(inputs), [output], name=output, **settings))
        return output

    def _number(self, value: float) -> str:
        name = f"{self.name}_number_{len(self.constants)}"
        self.constants[name] = np.array(value, np.float32)
        return name

    def _sign_of_step(self, x: str) -> str:
        """Add nodes that give 1 for zero and above, else -1; return the name of their output."""
        return self._add("Sign", self._add("Add", self._add("Sign", x), self._number(0.5)))

    def _rounded(self, x: str, mode: str) -> str:
        if mode in ("ROUND", "HALF_EVEN"):
            # A float of this size has no places behind the point, and rounds ties to even.
            return self._add("Sub", self._add("Add", x, self._number(_WHOLE)), self._number(_WHOLE))
        if mode in ("FLOOR", "CEIL"):
            return self._add(mode.capitalize(), x)
        operator, moved = _AWAY[mode]
        size = self._add(operator, self._add("Add", self._add("Abs", x), self._number(moved)))
        return self._add("Mul", self._add("Sign", x), size)


def without_quantisers(model: onnx.ModelProto) -> onnx.ModelProto:
    """Copy `model` with identities in place of quantisers, so that ONNX's own checks know every node."""
    copy = type(model).FromString(model.SerializeToString())
    for node in copy.graph.node:
        if is_quantiser(node):
            node.op_type, node.domain = "Identity", ""
            del node.input[1:], node.attribute[:]
    return copy


_DOMAIN = "qonnx.custom_op.channels_last"
_OPERATORS = ("Conv", "MaxPool", "BatchNormalization")


def with_channels_first(model: onnx.ModelProto) -> onnx.ModelProto:
    """Change `model` so that its convolutions, poolings and normalisations are those of ONNX; return it.

    Source: qonnx 1.0, `custom_op/channels_last/base_wrapped_op.py`.

    Raises:
        ValueError: the number of axes of such an operator is not known.
    """
    if not any(_is_channels_last(node) for node in model.graph.node):
        return model
    from onnx import helper

    ranks = _ranks(model.graph)
    nodes: list[Any] = []
    for at, node in enumerate(model.graph.node):
        if not _is_channels_last(node):
            nodes.append(node)
            continue
        rank = _rank(node, ranks)
        first, last = [0, rank - 1, *range(1, rank - 1)], [0, *range(2, rank), 1]
        name = f"channels_last_{at}"
        moved = 2 if node.op_type == "Conv" else 1
        given = [f"{name}_{place}" if place < moved else one for place, one in enumerate(node.input)]
        for place, one in enumerate(node.input[:moved]):
            nodes.append(helper.make_node("Transpose", [one], [given[place]], name=given[place], perm=first))
        own = type(node).FromString(node.SerializeToString())
        own.domain = ""
        own.input[:], own.output[:] = given, [f"{name}_out"]
        nodes += [own, helper.make_node("Transpose", own.output, node.output[:1], name=own.output[0], perm=last)]
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    return model


def _is_channels_last(node: onnx.NodeProto) -> bool:
    return node.domain == _DOMAIN and node.op_type in _OPERATORS


def _ranks(graph: onnx.GraphProto) -> dict[str, int]:
    """Count the axes of inputs, outputs, values in between and constants; 0 where a shape is not known."""
    found = {tensor.name: len(tensor.dims) for tensor in graph.initializer}
    return found | {
        value.name: len(value.type.tensor_type.shape.dim) for value in (*graph.input, *graph.output, *graph.value_info)
    }


def _rank(node: onnx.NodeProto, ranks: dict[str, int]) -> int:
    """Count the axes of what `node` reads; its windows have two axes less."""
    for entry in node.attribute:
        if entry.name in ("kernel_shape", "strides", "dilations") and entry.ints:
            return len(entry.ints) + 2
    found = [ranks[name] for name in (*node.input[:1], *node.output[:1]) if ranks.get(name, 0) >= 2]
    if not found:
        raise ValueError(f"its {node.op_type} {node.name!r} reads a tensor of unknown shape; run shape inference on it")
    return found[0]
