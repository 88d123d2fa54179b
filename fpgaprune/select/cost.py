"""The cost of a unit in hardware, by which `select` divides the unit's score: the result is importance per adder."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fpgaprune.errors import MaskError
from fpgaprune.select.units import Partition
from fpgaprune.values import Array, FixedType, count_digits

FORMS = "none, or adders(weight_bits) as adders(6), or adders(weight_bits, power) as adders(6, 3)"
_CALL = re.compile(r"^adders\(\s*(?P<bits>\d{1,9})\s*(?:,\s*(?P<power>\d{1,9}(?:\.\d{1,9})?)\s*)?\)$")
# The most bits that a flow gives a weight. Digits of weights wider than 60 bits do not fit an integer of 64 bits.
_WIDEST = 32
# Added to the digits of each weight, because a weight without digits still has a share in joining the others.
_LEAST = 0.1


@dataclass(frozen=True)
class Adders:
    """The adders that products with constants need: the mean number of signed digits of a unit's weights.

    A score is divided by this number to the `power`: of equally important units, the one with the most digits is locked
    first. Large weights have more digits than small ones, so a selection by size alone locks the cheapest units.
    `taylor` is a square, so `power=2` compares the change of the loss with adders; for `l1` use `power=1`.

    Attributes:
        weight_bits: bits of the weights in hardware. The type of each weight has as few integer bits as it needs.
        power: how much cost counts; 0 means not at all.

    Source: the ratio of value to weight by which a knapsack is filled (Dantzig, "Discrete-Variable Extremum
    Problems", 1957).
    """

    weight_bits: int = 8
    power: float = 2.0

    def __post_init__(self) -> None:
        whole = isinstance(self.weight_bits, int) and not isinstance(self.weight_bits, bool)
        if not whole or not 2 <= self.weight_bits <= _WIDEST:
            raise MaskError(f"cost counts adders of {self.weight_bits!r}-bit weights; wanted 2 to {_WIDEST} bits")
        if not 0 <= self.power < np.inf:
            raise MaskError(f"cost has the power {self.power}; wanted a number from 0 on, as 2")

    def divided(
        self, scores: NDArray[np.float64], path: str, weight: Array, partition: Partition
    ) -> NDArray[np.float64]:
        """Return the score of each unit of `partition`, divided by the cost of the unit.

        Raises:
            MaskError: a score is below 0: division would reverse the order.
        """
        if (scores < 0).any():
            raise MaskError(
                f"a score of {path!r} is {scores.min():.3g}; wanted none below 0, because they are divided by a cost: "
                "use another criterion, or cost 'none'"
            )
        kind = FixedType.holding(float(np.abs(weight).max(initial=0.0)), self.weight_bits)
        digits = partition.mean(count_digits(kind.to_raw(weight)))
        # The cost of zero units, such as locked ones, is unknown, so they get the mean cost of the others.
        known = ~partition.all(weight == 0)
        digits[~known] = digits[known].mean() if known.any() else 0.0
        return np.asarray(scores / (digits + _LEAST) ** self.power)


def parse_cost(value: str | Adders | None) -> Adders | None:
    """Parse the cost that `value` names: `none`, `adders(6)` or `adders(6, 3)`; an `Adders` is returned as it is.

    Raises:
        MaskError: there is no such cost; the message lists the forms.
    """
    if value is None or isinstance(value, Adders):
        return value
    if value == "none":
        return None
    call = _CALL.match(value.strip()) if isinstance(value, str) else None
    if call is None:
        raise MaskError(f"cost {value!r} is unknown; wanted {FORMS}")
    return Adders(int(call["bits"]), *([float(call["power"])] if call["power"] else []))
