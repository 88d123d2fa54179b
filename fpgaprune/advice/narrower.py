"""Fewer bits for weights and for activations; the accuracy must be measured again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from fpgaprune.advice.retype import (
    WEIGHTS,
    Weight,
    activation_bits,
    requantised,
    retyped,
    sum_bits,
    trimmed,
    weight_bits,
)
from fpgaprune.design import Design
from fpgaprune.layout import Edit, products

# Widths to try. With fewer than four bits most networks fail unless they are trained for it.
WIDTHS = (12, 10, 8, 6, 4)


def narrower_weights(design: Design) -> Iterator[Edit]:
    """Yield `design` with weights of fewer bits, from mild to strong."""
    for bits in WIDTHS:
        if _has_wider(design, bits):
            yield _edit(("weight_bits",), design, retyped(design, _weights(design, bits)))


def narrower_activations(design: Design) -> Iterator[Edit]:
    """Yield `design` with activations of fewer bits, from mild to strong."""
    for bits in WIDTHS:
        if any(width > bits for width in activation_bits(design).values()):
            yield _edit(("activation_bits",), design, retyped(design, _weights(design), bits))


def narrower_everything(design: Design) -> Iterator[Edit]:
    """Yield `design` with weights and activations of fewer bits, from mild to strong."""
    for bits in WIDTHS:
        # Below eight bits, narrow activations cost more accuracy than narrow weights.
        width = max(bits, 8)
        if _has_wider(design, bits) and any(have > width for have in activation_bits(design).values()):
            yield _edit(("weight_bits", "activation_bits"), design, retyped(design, _weights(design, bits), width))


def with_widths(
    design: Design,
    weight_bits: int,
    activation_bits: int,
    clips: bool = False,
    of_layers: Mapping[str, Mapping[str, int]] | None = None,
) -> Design:
    """Return `design` with at most so many bits for each weight and activation; the types of sums follow.

    With `clips` the largest few weights may be cut off, as in a network that `quantize` makes. `of_layers` has the
    widths of single layers, as `{"d1_relu": {"activation_bits": 3}}`.
    """
    of_layers = of_layers or {}
    own = {name: entry["weight_bits"] for name, entry in of_layers.items() if "weight_bits" in entry}
    widths = {name: entry["activation_bits"] for name, entry in of_layers.items() if "activation_bits" in entry}
    return retyped(design, _weights(design, weight_bits, clips, own), activation_bits, widths)


def widths_of(design: Design) -> list[tuple[str, str, int]]:
    """List layer, `weight_bits` or `activation_bits`, and the width, for each width that a flow can ask for."""
    roles = {"weight_bits": weight_bits(design), "activation_bits": activation_bits(design)}
    return [(name, role, bits) for role, found in roles.items() for name, bits in found.items()]


def _has_wider(design: Design, bits: int) -> bool:
    return any(kind.width > bits for roles in _weights(design).values() for _, kind in roles.values())


def _weights(
    design: Design, bits: int = 64, clips: bool = False, of_layers: Mapping[str, int] | None = None
) -> dict[str, dict[str, Weight]]:
    """Return the weights by layer and role, at most `bits` wide (or as `of_layers` says), and no wider than needed."""
    found: dict[str, dict[str, Weight]] = {}
    for layer in products(design):
        most = (of_layers or {}).get(layer.name, bits)
        own = {role: trimmed(layer, role) for role in WEIGHTS if role in layer.weights}
        found[layer.name] = {
            role: requantised(layer, role, most, clips) if have[1].width > most else have for role, have in own.items()
        }
    return found


def _edit(knobs: tuple[str, ...], before: Design, after: Design) -> Edit:
    """Return the change with a section `[hls]`: the width that most layers have, and each layer that has another."""
    weights, activations = weight_bits(after), activation_bits(after)
    most = {"weight_bits": _most(weights), "activation_bits": _most(activations)}
    settings: dict[str, Any] = {"precision": "widths", **most, "sum_bits": min(sum_bits(before), 32)}
    entries: dict[str, dict[str, int]] = {}
    for role, widths in (("weight_bits", weights), ("activation_bits", activations)):
        for name, bits in widths.items():
            if bits != most[role]:
                entries.setdefault(name, {})[role] = bits
    if entries:
        settings["layers"] = entries
    return Edit(knobs, {"hls": settings}, after, keeps_function=False)


def _most(widths: Mapping[str, int]) -> int:
    """Return the width that most layers have; of two equally common widths, the larger one."""
    counts = Counter(widths.values())
    return max(counts, key=lambda width: (counts[width], width), default=8)
