"""`Occupancy`: what a design takes of each resource of a part, and whether it fits."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from fpgaprune.measure.resources import LABELS, Figure, Resources, capacity_of
from fpgaprune.target import Part


class Taken(Struct, frozen=True):
    """What a design takes of one resource of a part.

    Attributes:
        resource: name of the resource.
        used: the count, or the middle of its estimate.
        high: the count, or the upper end of its estimate.
        capacity: what the part has.
    """

    resource: str
    used: int
    high: int
    capacity: int

    @property
    def share(self) -> float:
        """Used / capacity; infinite where the part has none."""
        return self.used / self.capacity if self.capacity else float("inf") if self.used else 0.0

    @property
    def words(self) -> str:
        """`FF 23,716 of 15,552 (152.5 %)`."""
        share = f" ({100 * self.share:.1f} %)" if self.capacity else ""
        return f"{LABELS[self.resource]} {self.used:,} of {self.capacity:,}{share}"


class Occupancy(Struct, frozen=True):
    """What a design takes of a part: each resource whose count and capacity are known.

    Attributes:
        part: name of the part.
        taken: the resources; empty if nothing is known.
    """

    part: str
    taken: tuple[Taken, ...]

    @property
    def fits(self) -> bool | None:
        """Whether each count, or middle of an estimate, is within the capacity; None if nothing is known."""
        return all(row.used <= row.capacity for row in self.taken) if self.taken else None

    @property
    def fits_upper(self) -> bool | None:
        """Whether each count, or upper end of an estimate, is within the capacity; None if nothing is known."""
        return all(row.high <= row.capacity for row in self.taken) if self.taken else None

    @property
    def scarcest(self) -> Taken | None:
        """The resource nearest to, or furthest beyond, its capacity."""
        return max(self.taken, key=lambda row: row.share, default=None)

    @property
    def verdict(self) -> str:
        """`fits PART`, `fits PART by the middle of the range only`, `does not fit PART`, or that nobody can tell."""
        if self.fits is None:
            return f"cannot be judged against {self.part}"
        if not self.fits:
            return f"does not fit {self.part}"
        return f"fits {self.part}" + ("" if self.fits_upper else " by the middle of the range, not by its upper end")

    @property
    def words(self) -> str:
        """The verdict, and what is taken of each resource that is used."""
        rows = ", ".join(row.words for row in self.taken if row.used)
        return f"{self.verdict}: {rows}" if rows else self.verdict


def occupancy_of(used: Resources[Any], part: Part) -> Occupancy:
    """What `used`, counts or estimates, takes of `part`."""
    rows = []
    for name, count, capacity in used.against(capacity_of(part)):
        middle, high = (count.value, count.high) if isinstance(count, Figure) else (count, count)
        rows.append(Taken(name, middle, high, capacity))
    return Occupancy(part.name, tuple(rows))
