"""`Knobs`: what the search turns, as keys of a flow file."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

SPARSITIES = (0.0, 0.2, 0.35, 0.5, 0.6, 0.68, 0.75, 0.8, 0.84, 0.87, 0.9, 0.92, 0.94, 0.95)
WIDTHS = (8, 7, 6, 5, 4, 3, 2)
# Units that are locked, and the sparsity at which a quarter of all products is left: half of the filters of a layer
# and of the layer before it leave a quarter of its kernels. The units of which the hardware saves most are chosen once.
GRANULARITIES = {"weight": 0.75, "filter": 0.5}
_QUARTER = 0.25
# Values of weights that cost no adder: each kept weight is a power of two.
CHEAP = "digits(1)"
_ROUNDS = 4


@dataclass(frozen=True)
class Knobs:
    """One network: what is locked, and with how many bits it computes.

    Attributes:
        granularity: the unit that is locked, as in `[select]`.
        sparsity: fraction of these units that is locked, 0..1.
        weight_bits: bits of a weight.
        activation_bits: bits of what a layer hands on.
        hold: values at which kept weights are held, as in `[quantise]`; empty for any value.
    """

    granularity: str
    sparsity: float = SPARSITIES[0]
    weight_bits: int = WIDTHS[0]
    activation_bits: int = WIDTHS[0]
    hold: str = ""

    @property
    def strongest(self) -> Knobs:
        """The smallest network that is hoped for: 95 % of all units locked, 4 bits."""
        return replace(self, sparsity=SPARSITIES[-1], weight_bits=4, activation_bits=4)

    @property
    def kept(self) -> float:
        """The share of the products that its zeros leave, 0..1."""
        return math.pow(1 - self.sparsity, math.log(_QUARTER, 1 - GRANULARITIES.get(self.granularity, 1 - _QUARTER)))

    def leads_to(self, other: Knobs) -> bool:
        """Whether `other` is these knobs turned further, so that its network can be trained from theirs."""
        return (
            self.granularity == other.granularity
            and self.sparsity <= other.sparsity
            and self.weight_bits >= other.weight_bits
            and self.activation_bits >= other.activation_bits
            and self.hold in ("", other.hold)
        )

    def turned(self, name: str) -> Iterator[Knobs]:
        """These knobs with the knob `name` turned further, from mild to strong."""
        if name == "sparsity":
            return (replace(self, sparsity=value) for value in SPARSITIES if value > self.sparsity)
        if name == "hold":
            return iter(() if self.hold else (replace(self, hold=CHEAP),))
        if name == "weight_bits":
            return (replace(self, weight_bits=width) for width in WIDTHS if width < self.weight_bits)
        return (replace(self, activation_bits=width) for width in WIDTHS if width < self.activation_bits)

    def settings(self) -> dict[str, dict[str, Any]]:
        """Sections of a flow file to their keys."""
        held = {"quantise": {"hold": self.hold, "rounds": _ROUNDS, "epochs": _ROUNDS}} if self.hold else {}
        return {
            **held,
            "select": {"sparsity": self.sparsity, "granularity": self.granularity},
            "hls": {
                "precision": "widths",
                "weight_bits": self.weight_bits,
                "activation_bits": self.activation_bits,
            },
        }

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> Knobs:
        """The knobs whose settings these are; settings of a layout may be among them."""
        select, hls = settings["select"], settings["hls"]
        hold = settings.get("quantise", {}).get("hold", "")
        return cls(select["granularity"], select["sparsity"], hls["weight_bits"], hls["activation_bits"], hold)

    def __str__(self) -> str:
        units = {"weight": "weights"}.get(self.granularity, f"{self.granularity}s")
        locked = f"{self.sparsity:.0%} of {units} locked" if self.sparsity else "nothing locked"
        weights = f"{self.weight_bits}-bit powers of two" if self.hold else f"{self.weight_bits}-bit weights"
        return f"{locked}, {weights}, {self.activation_bits}-bit activations"
