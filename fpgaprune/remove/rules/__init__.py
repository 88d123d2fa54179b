"""One rule per operation class, found by exact class: a subclass of a known layer inherits none."""

from __future__ import annotations

from fpgaprune.remove.rules import (
    activations,
    convolution,
    dense,
    merging,
    normalization,
    pooling,
    shape,
)
from fpgaprune.remove.trace import Rule

RULES: dict[type, Rule] = {}
for _family in (activations, convolution, dense, merging, normalization, pooling, shape):
    RULES.update(_family.RULES)
