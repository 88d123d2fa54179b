"""`with_live_shares`: in one pipeline, the tool builds nothing for numbers that are constant or that nobody reads."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from fpgaprune.estimate.families import UNPRICED
from fpgaprune.estimate.features import LayerFeatures

# Layers that compute each number by itself, or only pass it on.
_ONE_BY_ONE = ("activation", "scale", "reshape", "input", UNPRICED)


def with_live_shares(layers: Sequence[LayerFeatures]) -> list[LayerFeatures]:
    """The layers of a chain in one pipeline, with the shares of their products and results that take hardware.

    An output of a Dense layer whose weights are all zero is a constant, and so is every number that follows from it
    alone. A number whose weights in the next Dense layer are all zero is read by nobody.
    """
    varying = _shares(layers, outputs=True)
    read = _shares(reversed(layers), outputs=False)[::-1]
    found = []
    for layer, (comes, leaves), (is_read, _) in zip(layers, varying, read, strict=True):
        one = layer.family in ("dense", *_ONE_BY_ONE)
        found.append(replace(layer, live=comes * is_read, live_out=leaves * is_read) if one else layer)
    return found


def _shares(layers: Iterable[LayerFeatures], *, outputs: bool) -> list[tuple[float, float]]:
    """Of each layer, the live share of the numbers that come to it and that it hands on, in this direction."""
    share = 1.0
    found = []
    for layer in layers:
        came = share
        if layer.family == "dense" and layer.products is not None and layer.n_in and layer.n_out:
            products = layer.products
            share = products.live_outputs / layer.n_out if outputs else products.live_inputs / layer.n_in
        elif layer.family not in _ONE_BY_ONE:
            share = 1.0
        found.append((came, share))
    return found
