"""`SingleLayers`: the layers of a network that lose least by a bit less, for what the hardware saves."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from fpgaprune.advice import widths_of, with_widths
from fpgaprune.design import Design
from fpgaprune.emulate import emulate
from fpgaprune.errors import DesignError
from fpgaprune.fit.knobs import WIDTHS

# Wider than every type of a network: the other layers keep what they have.
_WIDE = 64
# So many groups of layers are suggested: of a network with more layers, not every number of them.
_GROUPS = 4
# Samples that show what a bit less does, and the products that the emulation of all layers may take: seconds.
_FEWEST, _SAMPLES, _PRODUCTS = 16, 256, 2**32

Layer = tuple[str, str]


@dataclass(frozen=True)
class SingleLayers:
    """Layers and roles, `weight_bits` or `activation_bits`, that may have a bit less.

    Attributes:
        error: what each loses by it, as a share of what all layers of its role lose together, 0..1.
        order: those that save something, the one that loses least for what it saves first.
    """

    error: Mapping[Layer, float]
    order: tuple[Layer, ...]

    @staticmethod
    def samples(design: Design) -> int:
        """How many samples `of` should see: fewer of a large network."""
        weights = [(layer, layer.weights["weight"].size) for layer in design.layers if "weight" in layer.weights]
        products = sum(math.prod(layer.output_shape[:-1]) * size for layer, size in weights)
        return min(max(_PRODUCTS // max(products * len(widths_of(design)), 1), _FEWEST), _SAMPLES)

    @classmethod
    def of(cls, design: Design, price: Callable[[Design], float], x: Any) -> SingleLayers:
        """The layers of `design`, a trained network.

        Each in turn gets a bit less, and nothing is trained: how far the outputs for the samples `x` move says what it
        loses, `price` what it saves.
        """
        before, taken = emulate(design, x), price(design)
        moved: dict[Layer, float] = {}
        worth: dict[Layer, float] = {}
        for name, role, bits in widths_of(design):
            if bits <= WIDTHS[-1]:
                continue
            made = with_widths(design, _WIDE, _WIDE, of_layers={name: {role: bits - 1}})
            try:
                moved[name, role] = _distance(before, emulate(made, x))
            except DesignError:
                # No search ends because one of its suggestions is no hardware.
                continue
            saved = taken - price(made)
            if saved > 0:
                worth[name, role] = moved[name, role] / saved
        whole = {role: sum(error for (_, own), error in moved.items() if own == role) for _, role in moved}
        error = {layer: found / whole[layer[1]] if whole[layer[1]] else 0.0 for layer, found in moved.items()}
        return cls(error, tuple(sorted(worth, key=lambda layer: worth[layer])))

    def groups(self) -> Iterator[frozenset[Layer]]:
        """The first layers of the order, a few more each time."""
        count = len(self.order)
        for number in sorted({round(count * part / _GROUPS) for part in range(1, _GROUPS + 1)} - {0}):
            yield frozenset(self.order[:number])

    def lost(self, narrow: frozenset[Layer], role: str) -> float:
        """What the layers `narrow` lose in `role`, as a share of what all layers would, 0..1."""
        return sum(self.error.get(layer, 0.0) for layer in narrow if layer[1] == role)


def _distance(before: Any, after: Any) -> float:
    """The mean square of what moved, as a share of that of the outputs."""
    pairs = zip(_parts(before), _parts(after), strict=True)
    return float(np.mean([np.square(a - b).mean() / max(np.square(b).mean(), 1e-12) for a, b in pairs]))


def _parts(outputs: Any) -> tuple[Any, ...]:
    return outputs if isinstance(outputs, tuple) else (outputs,)
