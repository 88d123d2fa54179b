"""Fewer bits for weights and for activations; the accuracy must be measured again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fpgaprune.advice.edit import Edit
from fpgaprune.advice.layout import products
from fpgaprune.advice.retype import activation_bits, requantised, retyped, sum_bits, weight_bits
from fpgaprune.design import Design

# Widths that are tried: fewer than four bits lose most networks without training for it.
WIDTHS = (12, 10, 8, 6, 4)


def narrower_weights(design: Design) -> Iterator[Edit]:
    """Weights of fewer bits, from mild to strong."""
    for bits in WIDTHS:
        wide = [layer for layer in products(design) if layer.types["weight"].width > bits]
        if wide:
            changed = retyped(design, {layer.name: requantised(layer, bits) for layer in wide})
            yield Edit(("weight_bits",), _settings(design, changed), changed, keeps_function=False)


def narrower_activations(design: Design) -> Iterator[Edit]:
    """Activations of fewer bits, from mild to strong."""
    for bits in WIDTHS:
        if any(width > bits for width in activation_bits(design).values()):
            changed = retyped(design, {}, bits)
            yield Edit(("activation_bits",), _settings(design, changed), changed, keeps_function=False)


def narrower_everything(design: Design) -> Iterator[Edit]:
    """Weights and activations of fewer bits, from mild to strong."""
    for bits in WIDTHS:
        wide = [layer for layer in products(design) if layer.types["weight"].width > bits]
        # Below eight bits activations lose more than weights do.
        width = max(bits, 8)
        if wide and any(have > width for have in activation_bits(design).values()):
            changed = retyped(design, {layer.name: requantised(layer, bits) for layer in wide}, width)
            knobs = ("weight_bits", "activation_bits")
            yield Edit(knobs, _settings(design, changed), changed, keeps_function=False)


def _settings(before: Design, after: Design) -> dict[str, Any]:
    """The section `[hls]` that asks for the widths of `after`: one for all layers, or those of single layers."""
    weights, activations = weight_bits(after), activation_bits(after)
    if len(set(weights.values())) == 1 and len(set(activations.values())) == 1:
        return {
            "hls": {
                "precision": "widths",
                "weight_bits": next(iter(weights.values())),
                "activation_bits": next(iter(activations.values())),
                "sum_bits": min(sum_bits(before), 32),
            }
        }
    entries: dict[str, dict[str, int]] = {}
    for role, old, new in (
        ("weight_bits", weight_bits(before), weights),
        ("activation_bits", activation_bits(before), activations),
    ):
        for name, bits in new.items():
            if bits != old[name]:
                entries.setdefault(name, {})[role] = bits
    return {"hls": {"layers": entries}}
