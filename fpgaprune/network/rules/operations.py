"""Rules of operations without a layer, such as `x * 2 + y` on symbolic tensors."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
from keras.src.ops import nn, numpy

from fpgaprune.design import FUNCTIONS
from fpgaprune.network.channels import Channels, Role
from fpgaprune.network.rules.activations import apply_elementwise
from fpgaprune.network.rules.merging import Join, concatenate, coupled
from fpgaprune.network.site import LayerRule, Site, Values


def binary(join: Join, absorbing_zero: bool = False) -> Values:
    """Return the rule of an element-wise operation of two arguments, one of which may be a number."""

    def rule(site: Site) -> Channels:
        if len(site.inputs) == 2 and len(site.call.args) == 2:
            return coupled(site, site.inputs, join, absorbing_zero)
        if len(site.inputs) != 1 or len(site.call.args) != 2 or not all(map(_simple, site.call.args)):
            return site.keep_all()[0]  # an array may have a number for each channel

        def with_number(x: object) -> Any:
            return site.layer.call(*(x if isinstance(a, keras.KerasTensor) else a for a in site.call.args))

        return apply_elementwise(with_number, site.inputs[0])

    return rule


def _simple(argument: object) -> bool:
    return isinstance(argument, keras.KerasTensor | int | float)


def unary(site: Site) -> Channels:
    """Return the rule of an element-wise operation of one tensor."""
    if len(site.inputs) != 1 or len(site.call.args) != 1 or set(site.call.kwargs) - {"training"}:
        return site.keep_all()[0]
    return apply_elementwise(site.layer.call, site.inputs[0])


def _divide(left: Any, right: Any) -> Any:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.divide(left, right)


_UNARY_NN = (function.operation for function in FUNCTIONS.values())
_UNARY_NUMPY = "Absolute Cos Exp Expm1 Log1p Negative Sin Sqrt Square Tanh"
_BINARY: dict[str, LayerRule] = {
    "Add": LayerRule(binary(np.add), Role.MERGE),
    "Subtract": LayerRule(binary(np.subtract), Role.MERGE),
    "Multiply": LayerRule(binary(np.multiply, absorbing_zero=True)),
    "Maximum": LayerRule(binary(np.maximum), Role.MERGE),
    "Minimum": LayerRule(binary(np.minimum), Role.MERGE),
    "Divide": LayerRule(binary(_divide)),
    "TrueDivide": LayerRule(binary(_divide)),
}

RULES: dict[type, LayerRule] = {
    **{getattr(nn, name): LayerRule(unary) for name in _UNARY_NN if hasattr(nn, name)},
    **{getattr(numpy, name): LayerRule(unary) for name in _UNARY_NUMPY.split() if hasattr(numpy, name)},
    **{getattr(numpy, name): rule for name, rule in _BINARY.items()},
    numpy.Concatenate: LayerRule(concatenate, Role.JOIN),
    numpy.Reshape: LayerRule(Site.keep_all, Role.FLAT),
}
