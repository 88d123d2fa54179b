"""Matches the layers of two estimates by name."""

from __future__ import annotations

from dataclasses import dataclass

from fpgaprune.errors import ReportError
from fpgaprune.measure import ESTIMATED, Estimate, LayerEstimate
from fpgaprune.report.table import LABELS

# What is estimated, and how a page writes it.
RESOURCES = tuple((name, LABELS[name]) for name in ESTIMATED)


@dataclass(frozen=True)
class LayerPair:
    """One layer `before` and `after`; None on the side where it does not exist."""

    name: str
    before: LayerEstimate | None
    after: LayerEstimate | None


def pair_layers(before: Estimate | None, after: Estimate | None) -> tuple[LayerPair, ...]:
    """The layers of both estimates by name, in the order of `before`; a new layer stands behind its predecessor.

    Raises:
        ReportError: two layers of one estimate share a name.
    """
    old, new = (_by_name(estimate) for estimate in (before, after))
    order = list(old)
    position = 0
    for name in new:
        if name in old:
            position = order.index(name) + 1
        else:
            order.insert(position, name)
            position += 1
    return tuple(LayerPair(name, old.get(name), new.get(name)) for name in order)


def _by_name(estimate: Estimate | None) -> dict[str, LayerEstimate]:
    names = [layer.name for layer in estimate.layers] if estimate is not None else []
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ReportError(f"estimate has two layers named {twice!r}; names must be unique")
    return {} if estimate is None else dict(zip(names, estimate.layers, strict=True))
