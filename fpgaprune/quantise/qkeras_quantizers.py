"""What a quantiser of QKeras computes at inference, from what the file of a model says of it.

`quantized_bits(4, 0, alpha=1)` leaves -1, -7/8, ..., 7/8: the type `fixed<4,1,RND_CONV,SAT>`. QKeras is not needed.

Source: Coelho and others, "Automatic heterogeneous quantization of deep neural networks for low-latency inference on
the edge for particle detectors", Nature Machine Intelligence 3, 2021; QKeras 0.9.0, `quantizers.py`.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpgaprune.errors import UnsupportedLayerError
from fpgaprune.values import FixedType

_POWER: Mapping[str, Any] = {
    "use_stochastic_rounding": False,
    "quadratic_approximation": False,
    "log2_rounding": "rnd",
    "qnoise_factor": 1.0,
}
# The settings of each quantiser in the order of its arguments, with QKeras's own values.
_SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "quantized_bits": {
        "bits": 8,
        "integer": 0,
        "symmetric": 0,
        "keep_negative": True,
        "alpha": None,
        "use_stochastic_rounding": False,
        "scale_axis": None,
        "qnoise_factor": 1.0,
        "post_training_scale": None,
    },
    "quantized_relu": {
        "bits": 8,
        "integer": 0,
        "use_sigmoid": 0,
        "negative_slope": 0.0,
        "use_stochastic_rounding": False,
        "relu_upper_bound": None,
        "is_quantized_clip": True,
        "qnoise_factor": 1.0,
    },
    "binary": {"use_01": False, "alpha": None, "use_stochastic_rounding": False},
    "ternary": {"alpha": None, "threshold": None, "use_stochastic_rounding": False, "number_of_unrolls": 5},
    "quantized_po2": {"bits": 8, "max_value": None, **_POWER},
    "quantized_relu_po2": {"bits": 8, "max_value": None, "negative_slope": 0, **_POWER},
    "quantized_tanh": {"bits": 8, "use_stochastic_rounding": False, "symmetric": False, "use_real_tanh": False},
    "quantized_sigmoid": {"bits": 8, "symmetric": False, "use_real_sigmoid": False, "use_stochastic_rounding": False},
}
# What decides how QKeras trains and not what it computes afterwards.
_OF_TRAINING = frozenset({"use_stochastic_rounding", "var_name", "use_ste", "use_variables", "elements_per_scale"})
_EPSILON = np.float32(1e-7)
_THRESHOLD = 0.33
# Turns in which QKeras looks for powers of two that suit a kernel.
_TURNS = 5

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class QkerasQuantizer:
    """A quantiser: its class in QKeras and all settings."""

    kind: str
    settings: Mapping[str, Any]

    def data_type(self) -> FixedType:
        """Return the type that holds what the quantiser leaves of data.

        Raises:
            UnsupportedLayerError: no type does.
        """
        own = self.settings
        if self.kind == "quantized_relu" and not own["use_sigmoid"] and not own["negative_slope"]:
            return FixedType(own["bits"], own["integer"], False, "RND_CONV", "SAT")
        signed = bool(own.get("keep_negative"))
        if self.kind == "quantized_bits" and own["alpha"] in (None, 1) and own["bits"] > signed:
            overflow = "SAT_SYM" if own["symmetric"] and signed else "SAT"
            return FixedType(own["bits"], own["integer"] + signed, signed, "RND_CONV", overflow)
        # The straight lines that QKeras takes for tanh and sigmoid saturate as the type does.
        if self.kind == "quantized_tanh" and own["bits"] > 1 and not own["use_real_tanh"]:
            return FixedType(own["bits"], 1, True, "RND_CONV", "SAT_SYM" if own["symmetric"] else "SAT")
        if self.kind == "quantized_sigmoid" and not own["symmetric"] and not own["use_real_sigmoid"]:
            return FixedType(own["bits"], 0, False, "RND_CONV", "SAT")
        raise UnsupportedLayerError(
            f"{self} leaves data that no type holds; wanted quantized_bits with alpha=1, quantized_relu without "
            "use_sigmoid or negative_slope, quantized_tanh or quantized_sigmoid without a real tanh or sigmoid, the "
            "latter without symmetric"
        )

    def weights(self, values: Floats) -> Floats:
        """Return what the quantiser leaves of the weights `values`; the last axis is that of the outputs.

        Raises:
            UnsupportedLayerError: it scales by numbers that are no powers of two.
        """
        alpha = self.settings.get("alpha")
        scales = isinstance(alpha, str) and (alpha != "auto_po2" or self.settings.get("bits") == 1)
        if self.kind not in _OF_WEIGHTS or scales:
            raise UnsupportedLayerError(
                f"{self} is no quantiser of weights that is taken over; wanted one of {', '.join(_OF_WEIGHTS)}, with "
                "alpha 'auto_po2' (for 2 bits or more), a number or None"
            )
        return _OF_WEIGHTS[self.kind](self.settings, np.asarray(values, np.float32)).astype(np.float32)

    def __str__(self) -> str:
        """Write the quantiser as QKeras does, with the settings that are not its own."""
        usual = _SETTINGS.get(self.kind, {})
        own = {name: value for name, value in self.settings.items() if usual.get(name) != value}
        return f"{self.kind}({', '.join(f'{name}={value!r}' for name, value in own.items())})"


def read_quantizer(written: object) -> QkerasQuantizer | None:
    """Return the quantiser that the configuration of a layer describes, as text or as a mapping; None without one.

    Raises:
        UnsupportedLayerError: QKeras has no such quantiser here, or its settings cannot be read.
    """
    if written is None:
        return None
    if isinstance(written, str):
        kind, given = _parsed(written)
    elif isinstance(written, Mapping) and isinstance(written.get("class_name"), str):
        kind, given = written["class_name"], dict(written.get("config") or {})
    else:
        raise UnsupportedLayerError(f"quantiser {written!r} cannot be read; wanted text, or class_name and config")
    usual = _SETTINGS.get(kind)
    if usual is None:
        raise UnsupportedLayerError(f"quantiser {kind!r} is not taken over; wanted one of {', '.join(_SETTINGS)}")
    unknown = sorted(given.keys() - usual.keys() - _OF_TRAINING)
    if unknown:
        raise UnsupportedLayerError(f"quantiser {kind!r} has setting {unknown[0]!r}, which is not known here")
    settings = {**usual, **{name: _number(value) for name, value in given.items() if name in usual}}
    if "bits" in settings and not _sensible(settings):
        raise UnsupportedLayerError(
            f"quantiser {kind!r} has bits={settings['bits']!r} and integer={settings.get('integer', 0)!r}; wanted "
            "whole numbers, bits from 1 to 32"
        )
    if settings.get("qnoise_factor", 1.0) != 1.0 or any(
        settings.get(key) is not None for key in ("scale_axis", "post_training_scale")
    ):
        raise UnsupportedLayerError(
            f"quantiser {kind!r} rounds in part (qnoise_factor={settings['qnoise_factor']}), or scales along an axis "
            "of its own; wanted qnoise_factor=1, scale_axis=None and post_training_scale=None"
        )
    return QkerasQuantizer(kind, settings)


def _parsed(text: str) -> tuple[str, dict[str, Any]]:
    """Return the name and settings in `text`, as `quantized_bits(4,0,alpha=1.0)`; no code in it is run."""
    wrong = UnsupportedLayerError(f"quantiser {text[:80]!r} cannot be read; wanted its name and numbers in brackets")
    try:
        call = ast.parse(text.strip(), mode="eval").body
        if isinstance(call, ast.Name):
            return call.id, {}
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
            raise wrong
        order = list(_SETTINGS.get(call.func.id, {}))
        if len(call.args) > len(order) and order:
            raise wrong
        given = {name: ast.literal_eval(value) for name, value in zip(order, call.args, strict=False)}
        return call.func.id, given | {str(one.arg): ast.literal_eval(one.value) for one in call.keywords}
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise wrong from error


def _number(value: object) -> Any:
    """Return a number that a file holds as an array, or in the form of a library."""
    if isinstance(value, Mapping):
        value = value.get("config", {}).get("value", value) if isinstance(value.get("config"), Mapping) else value
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if isinstance(value, float) and value.is_integer() and math.isfinite(value):
        return int(value)
    return value


def _sensible(settings: Mapping[str, object]) -> bool:
    bits, integer = settings["bits"], settings.get("integer", 0)
    return isinstance(bits, int) and isinstance(integer, int) and 1 <= bits <= 32 and -32 <= integer <= 32


def _fixed_point(settings: Mapping[str, Any], values: Floats) -> Floats:
    signed = int(bool(settings["keep_negative"]))
    unsigned_bits = settings["bits"] - signed
    levels, range_ = np.float32(2.0**unsigned_bits), np.float32(2.0 ** settings["integer"])
    alpha = settings["alpha"]
    if isinstance(alpha, str):
        return _scaled(settings["bits"], levels, range_, values)
    if unsigned_bits:
        lowest = signed * (-levels + int(bool(settings["symmetric"])))
        found = range_ * np.clip(np.rint(values * levels / range_), lowest, levels - 1) / levels
    else:
        found = np.where(values < 0, np.float32(-1), np.float32(1))
    return np.asarray(found * np.float32(1 if alpha is None else alpha), np.float32)


def _scaled(bits: int, levels: np.float32, range_: np.float32, values: Floats) -> Floats:
    """Round weights to whole numbers times a power of two for each output, the one with the least error."""
    axes = tuple(range(values.ndim - 1)) if values.ndim > 1 else (0,)
    x = values / range_
    most = np.float32(2 ** (bits - 1) - 1)
    scale = np.abs(x).max(axis=axes, keepdims=True) * np.float32(2) / np.float32(2 * most)
    scale = _power_of_two(scale)
    whole: Floats = x
    for _ in range(_TURNS):
        whole = np.asarray(np.sign(x) * np.minimum(np.floor(np.abs(x) / scale + np.float32(0.5)), most), np.float32)
        scale = _best_power(x, whole)
    return np.asarray(scale * levels * (range_ * whole / levels), np.float32)


def _best_power(x: Floats, whole: Floats) -> Floats:
    """Return the power of two nearest to the least-squares factor between `whole` and `x`, for each output."""
    axes = tuple(range(x.ndim - 1))  # none for a bias, whose every value is an output
    over, under = (np.mean(part, axis=axes, keepdims=True, dtype=np.float32) for part in (x * whole, whole * whole))
    return _power_of_two(np.asarray(over / (under + _EPSILON), np.float32))


def _power_of_two(scale: Floats) -> Floats:
    with np.errstate(invalid="ignore", divide="ignore"):
        exponent = np.rint(np.log(scale + _EPSILON) / np.float32(np.log(2.0)))
    return np.asarray(np.float32(2.0) ** exponent, np.float32)


def _binary(settings: Mapping[str, object], values: Floats) -> Floats:
    sign = np.where(values < 0, np.float32(-1), np.float32(1))
    if settings["use_01"]:
        sign = (sign + 1) / 2
    return np.asarray(sign * _factor(settings["alpha"], values, sign), np.float32)


def _ternary(settings: Mapping[str, Any], values: Floats) -> Floats:
    alpha = settings["alpha"]
    if not isinstance(alpha, str):
        threshold = np.float32(_THRESHOLD if settings["threshold"] is None else settings["threshold"])
        return np.asarray(np.sign(values) * (np.abs(values) >= threshold) * _factor(alpha, values, values), np.float32)
    axes = tuple(range(values.ndim - 1)) if values.ndim > 1 else None
    scale: Floats = _power_of_two(np.float32(2) * np.abs(values).max(axis=axes, keepdims=True) / np.float32(3))
    found = np.asarray(values, np.float32)
    for _ in range(settings["number_of_unrolls"]):
        found = np.asarray(np.sign(values) * (np.abs(scale * np.rint(values / scale)) >= scale / 2), np.float32)
        scale = _best_power(values, found)
    return np.asarray(scale * found, np.float32)


def _factor(alpha: Any, values: Floats, whole: Floats) -> Any:
    if isinstance(alpha, str):
        return _best_power(values, whole)
    return np.float32(1 if alpha is None else alpha)


def _power(settings: Mapping[str, Any], values: Floats) -> Floats:
    """Return the sign times the nearest power of two; of zero the smallest power."""
    sign = np.where(values < 0, np.float32(-1), np.float32(1))
    return np.asarray(sign * _powers(settings, np.abs(values), settings["bits"] - 1), np.float32)


def _power_above_zero(settings: Mapping[str, Any], values: Floats) -> Floats:
    """Return the nearest power of two; of zero and below the smallest power."""
    if settings["negative_slope"]:
        raise UnsupportedLayerError("quantized_relu_po2 has a negative_slope; wanted 0")
    return _powers(settings, np.maximum(values, 0), settings["bits"])


def _powers(settings: Mapping[str, Any], sizes: Floats, bits: int) -> Floats:
    most, squares = settings["max_value"], bool(settings["quadratic_approximation"])
    # An exponent of values up to 1 needs no sign.
    lowest, highest = -(2 ** (bits - (most is None or most > 1))), 2 ** (bits - (most is None or most > 1)) - 1
    highest = highest // 2 * 2 if squares else highest
    x = np.maximum(sizes, _EPSILON)
    x = x if most is None else np.minimum(x, np.float32(most))
    exponent = np.log(np.sqrt(x) if squares else x) / np.float32(np.log(2.0))
    rounded = np.floor(exponent) if settings["log2_rounding"] == "floor" else np.rint(exponent)
    exponent = np.where(sizes < _EPSILON, lowest, (1 + squares) * np.clip(rounded, lowest, highest))
    return np.asarray(np.float32(2.0) ** exponent, np.float32)


_OF_WEIGHTS = {
    "quantized_bits": _fixed_point,
    "binary": _binary,
    "ternary": _ternary,
    "quantized_po2": _power,
    "quantized_relu_po2": _power_above_zero,
}
