"""The smallest listed parts that hold a design."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from fpgaprune.measure import Estimate, occupancy_of
from fpgaprune.target import Part, Target, parts_like


def fitting_parts(target: Target, now: Estimate, price: Callable[[Target], Estimate]) -> Iterator[Estimate]:
    """The design on the smallest part of the target's family that holds it, then on the smallest of the vendor's parts.

    The upper end of the estimate must fit; if it fits no part, the middle must. Parts are tried in the order of
    their LUTs. There are at most two estimates, of different parts.

    Args:
        target: the target now.
        now: estimate of the design on that target.
        price: gives the estimate of the design on another target.
    """
    by_size = parts_like(target.part)
    seen: set[str] = set()
    for parts in ([part for part in by_size if part.family == target.part.family], by_size):
        made = _smallest(parts, target, now, price)
        if made is not None and made.target.part.name not in seen:
            seen.add(made.target.part.name)
            yield made


def _smallest(parts: list[Part], target: Target, now: Estimate, price: Callable[[Target], Estimate]) -> Estimate | None:
    middle = None
    for part in parts:
        # Estimates for other families differ by less than half, so most parts need no estimate.
        if any(row.used > 2 * row.capacity for row in occupancy_of(now.total["synth"], part).taken):
            continue
        made = price(replace(target, part=part, order_number=part.name))
        if made.fits_upper:
            return made
        if made.fits and middle is None:
            middle = made
    return middle
