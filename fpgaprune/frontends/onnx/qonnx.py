"""`Quant` and `BipolarQuant` of QONNX in NumPy, and which fixed-point type a `Quant` is.

Source: Pappalardo, Umuroglu, Blott and others, "QONNX: Representing Arbitrary-Precision Quantized Neural Networks",
2022, section III.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpgaprune.fixed import FixedType
from fpgaprune.onnx_graph import attributes

QUANTISERS = ("Quant", "BipolarQuant")
# The domains under which tools have written them; some wrote them as if they were ONNX's own.
DOMAINS = ("", "onnx.brevitas", "finn.custom_op.general", "qonnx.custom_op.general")
_ROUNDINGS: Mapping[str, Callable[[NDArray[Any]], NDArray[Any]]] = {
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


def is_quantiser(node: Any) -> bool:
    """Whether `node` is a `Quant` or `BipolarQuant`."""
    return node.op_type in QUANTISERS and node.domain in DOMAINS


def rounding_of(settings: Mapping[str, Any]) -> str:
    """The mode of rounding among the attributes of a `Quant`."""
    found = settings.get("rounding_mode", "ROUND")
    return (found.decode("utf-8", "replace") if isinstance(found, bytes) else str(found)).upper()


def quant(x: NDArray[Any], scale: Any, zero_point: Any, bits: Any, settings: Mapping[str, Any]) -> NDArray[np.float32]:
    """`x` as `Quant` gives it.

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


def bipolar_quant(x: NDArray[Any], scale: Any) -> NDArray[np.float32]:
    """`scale` where `x` is zero or more, and `-scale` where it is less."""
    return np.asarray(np.where(x >= 0, 1.0, -1.0) * scale, dtype=np.float32)


def type_of(
    scale: NDArray[Any], zero_point: NDArray[Any], bits: NDArray[Any], settings: Mapping[str, Any]
) -> FixedType:
    """The fixed-point type that rounds as a `Quant` does.

    Raises:
        ValueError: no such type does; the message says why.
    """
    if np.any(zero_point):
        raise ValueError(f"has the zero point {zero_point.ravel()[0]:g}; wanted 0")
    if scale.size != 1:
        raise ValueError(f"has {scale.size} scales; wanted one")
    step, mode = float(scale.ravel()[0]), rounding_of(settings)
    power = math.log2(step) if step > 0 and math.isfinite(step) else 0.5
    if power != int(power):
        raise ValueError(f"has the scale {step:g}, which is no power of two: train it with power-of-two scales")
    width, signed = int(bits.ravel()[0]), bool(settings.get("signed", 1))
    narrow = bool(settings.get("narrow", 0))
    if mode not in _OF_TYPES:
        raise ValueError(f"rounds by {mode!r}; wanted {', '.join(_OF_TYPES)}")
    if (narrow and not signed) or (signed and width < 2) or not 1 <= width <= 32:
        raise ValueError(f"has {width} bits, signed {signed}, narrow {narrow}, for which there is no fixed-point type")
    return FixedType(width, width + int(power), signed, _OF_TYPES[mode], "SAT_SYM" if narrow else "SAT")


def in_standard_operators(model: Any) -> Any:
    """A copy of `model` in which ONNX's own operators do what each quantiser does, so that onnxruntime can run it."""
    from onnx import numpy_helper

    copy = type(model).FromString(model.SerializeToString())
    if not any(is_quantiser(node) for node in copy.graph.node):
        return copy
    nodes: list[Any] = []
    for at, node in enumerate(model.graph.node):
        if is_quantiser(node):
            spelled = _Spelled(node, f"quantiser_{at}")
            nodes += spelled.nodes
            copy.graph.initializer.extend(numpy_helper.from_array(*pair[::-1]) for pair in spelled.constants.items())
        else:
            nodes.append(node)
    del copy.graph.node[:]
    copy.graph.node.extend(nodes)
    return copy


class _Spelled:
    """A quantiser in ONNX's own operators of every opset."""

    def __init__(self, node: Any, name: str) -> None:
        self.name = name
        self.nodes: list[Any] = []
        self.constants: dict[str, NDArray[Any]] = {}
        settings = attributes(node)
        signed, narrow = float(settings.get("signed", 1)), float(settings.get("narrow", 0))
        if node.op_type == "BipolarQuant":
            last = self._add("Mul", self._sign_of_step(node.input[0]), node.input[1])
        else:
            zero_point, bits = (self._add("Cast", name, to=1) for name in node.input[2:4])
            whole = self._add("Add", self._add("Div", node.input[0], node.input[1]), zero_point)
            power = self._add("Pow", self._number(2.0), self._add("Sub", bits, self._number(signed)))
            high = self._add("Sub", power, self._number(1 + narrow * (1 - signed)))
            low = self._add("Mul", self._add("Sub", power, self._number(narrow)), self._number(-signed))
            inside = self._rounded(self._add("Min", self._add("Max", whole, low), high), rounding_of(settings))
            last = self._add("Mul", self._add("Sub", inside, zero_point), node.input[1])
        self._add("Identity", last, output=node.output[0])

    def _add(self, operator: str, *inputs: str, output: str = "", **settings: Any) -> str:
        from onnx import helper

        output = output or f"{self.name}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, list(inputs), [output], name=output, **settings))
        return output

    def _number(self, value: float) -> str:
        name = f"{self.name}_number_{len(self.constants)}"
        self.constants[name] = np.array(value, np.float32)
        return name

    def _sign_of_step(self, x: str) -> str:
        """1 for zero and above, else -1."""
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


def without_quantisers(model: Any) -> Any:
    """A copy of `model` in which each quantiser hands on its input, so that ONNX's own checks know every node."""
    copy = type(model).FromString(model.SerializeToString())
    for node in copy.graph.node:
        if is_quantiser(node):
            node.op_type, node.domain = "Identity", ""
            del node.input[1:], node.attribute[:]
    return copy
