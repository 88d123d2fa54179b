"""One rule per operation class, found by exact class: a subclass of a known layer inherits none."""

from __future__ import annotations

from fpgaprune.network.rules import (
    activations,
    convolution,
    dense,
    depthwise,
    merging,
    normalization,
    operations,
    parametric,
    sequence,
    shape,
    spatial,
)
from fpgaprune.network.site import LayerRule

_FAMILIES = (
    activations,
    convolution,
    dense,
    depthwise,
    merging,
    normalization,
    operations,
    parametric,
    spatial,
    sequence,
    shape,
)
RULES: dict[type, LayerRule] = {kind: rule for family in _FAMILIES for kind, rule in family.RULES.items()}
