"""The smallest listed parts that hold a design."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from fpgaprune.measure import Estimate, capacity_of
from fpgaprune.target import Part, Target, list_parts


def fitting_parts(target: Target, now: Estimate, price: Callable[[Target], Estimate]) -> Iterator[Estimate]:
    """The design on the smallest part of the target's family that holds it, then on the vendor's smallest.

    By the upper end of the estimate; where no part holds that, by its middle. Parts are tried in the order of their
    LUTs; at most two estimates, of different parts.

    Args:
        target: as it is.
        now: the design on it.
        price: the design on another target.
    """
    vendor = [part for part in list_parts() if part.vendor == target.part.vendor and part.lut]
    by_size = sorted(vendor, key=lambda part: (part.lut or 0, part.name))
    seen: set[str] = set()
    for parts in ([part for part in by_size if part.family == target.part.family], by_size):
        made = _smallest(parts, target, now, price)
        if made is not None and made.target.part.name not in seen:
            seen.add(made.target.part.name)
            yield made


def _smallest(parts: list[Part], target: Target, now: Estimate, price: Callable[[Target], Estimate]) -> Estimate | None:
    middle = None
    for part in parts:
        # Other families differ by less than this, so that most parts need no price.
        if any(there < used.value / 2 for _, used, there in now.total["synth"].against(capacity_of(part))):
            continue
        made = price(replace(target, part=part, order_number=part.name))
        if made.fits_upper:
            return made
        if made.fits and middle is None:
            middle = made
    return middle
