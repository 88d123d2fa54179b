"""`RULES` has one rule for each class of operations; a subclass that computes something else has no rule.

A layer of fpgaprune's own that stands above this package says its rule itself, as the attribute `channel_rule`.
"""

from __future__ import annotations

from fpgaprune.network.functions import class_of_keras
from fpgaprune.network.rules import activations, convolution, dense, merging, normalization, operations, sequence, shape
from fpgaprune.network.site import LayerRule

_FAMILIES = (activations, convolution, dense, merging, normalization, operations, sequence, shape)
RULES: dict[type, LayerRule] = {kind: rule for family in _FAMILIES for kind, rule in family.RULES.items()}


def rule_of(kind: type) -> LayerRule | None:
    """Return the rule of this class, or of the class of Keras that it computes as; None if there is no rule."""
    return RULES.get(class_of_keras(kind) or kind) or vars(kind).get("channel_rule")
