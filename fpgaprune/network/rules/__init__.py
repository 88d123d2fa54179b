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
    pooling,
    sequence,
    shape,
)
from fpgaprune.network.site import Rule

RULES: dict[type, Rule] = {}
_FAMILIES = (
    activations,
    convolution,
    dense,
    depthwise,
    merging,
    normalization,
    operations,
    parametric,
    pooling,
    sequence,
    shape,
)
for _family in _FAMILIES:
    RULES.update(_family.RULES)
