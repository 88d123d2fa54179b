"""`Occupancy`: what a design takes of each resource of a part, which limit is nearest, and whether the design fits.

Every share of a part, every nearest limit and every verdict on fitting is computed here, for counts and for estimates.
"""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

from fpgaprune.errors import EstimateError
from fpgaprune.measure.resources import LABELS, Figure, Resources, capacity_of
from fpgaprune.target import Part

# The ends of an estimate and its middle; the three are equal in a count.
End = Literal["low", "used", "high"]


def share_of(count: float, capacity: float) -> float:
    """Count / capacity.

    Of a resource that the part lacks, nothing is 0 and any count is beyond the part: 1 + count, so that of two designs
    the one that needs less is nearer to fitting.
    """
    return count / capacity if capacity else 1 + count if count else 0.0


def unknown_capacity(part: str) -> EstimateError:
    """Return the error that no capacity of `part` is known."""
    return EstimateError(
        f"the capacity of {part} is unknown; name a part that 'fpgaprune parts' lists with its capacity"
    )


class Taken(Struct, frozen=True):
    """What a design takes of one resource of a part.

    Attributes:
        resource: name of the resource.
        low: the count, or the lower end of its estimate.
        used: the count, or the middle of its estimate.
        high: the count, or the upper end of its estimate.
        capacity: what the part has.
    """

    resource: str
    low: int
    used: int
    high: int
    capacity: int

    def share(self, end: End = "used") -> float:
        """Return the count, or one end of its estimate, as a fraction of the capacity."""
        return share_of(getattr(self, end), self.capacity)

    @property
    def words(self) -> str:
        """`FF 23,716 of 15,552 (152.5 %)`."""
        share = f" ({100 * self.share():.1f} %)" if self.capacity else ""
        return f"{LABELS[self.resource]} {self.used:,} of {self.capacity:,}{share}"


class Occupancy(Struct, frozen=True):
    """What a design takes of a part: each resource whose count and capacity are known.

    Attributes:
        part: name of the part.
        taken: the resources; empty if nothing is known.
        whole: whether the counts are those of the whole design; if not, what is left out may be what does not fit.
    """

    part: str
    taken: tuple[Taken, ...]
    whole: bool = True

    @property
    def fits(self) -> bool | None:
        """Whether each count, or middle of an estimate, is within the capacity; None if that is not known."""
        fits = self.fits_by("used")
        return None if fits and not self.whole else fits

    @property
    def fits_upper(self) -> bool | None:
        """Whether each count, or upper end of an estimate, is within the capacity; None if `fits` is."""
        return None if self.fits is None else self.fits_by("high")

    def fits_by(self, end: End) -> bool | None:
        """Return whether that end of each estimate is within the capacity; None if nothing is known."""
        return all(getattr(row, end) <= row.capacity for row in self.taken) if self.taken else None

    def nearest_limit(self, end: End = "used") -> Taken | None:
        """Return the resource nearest to, or furthest beyond, its capacity; of equal ones the first."""
        return max(self.taken, key=lambda row: row.share(end), default=None)

    def require_nearest(self, end: End = "used") -> Taken:
        """Return the nearest limit, where a verdict needs one.

        Raises:
            EstimateError: no capacity of the part is known.
        """
        found = self.nearest_limit(end)
        if found is None:
            raise unknown_capacity(self.part)
        return found

    def size(self, end: End = "used") -> float:
        """Return the sum of the shares of all resources."""
        return sum(row.share(end) for row in self.taken)

    @property
    def verdict(self) -> str:
        """`fits PART`, `fits PART by the middle of the range only`, `does not fit PART`, or that nobody can tell."""
        if self.fits is None:
            return f"cannot be judged against {self.part}"
        if not self.fits:
            return f"does not fit {self.part}"
        return f"fits {self.part}" + ("" if self.fits_upper else " by the middle of the range, not by its upper end")

    @property
    def rows(self) -> str:
        """Text of the used resources: count, capacity and share."""
        return ", ".join(row.words for row in self.taken if row.used)

    @property
    def words(self) -> str:
        """The verdict, and what is taken."""
        return f"{self.verdict}: {self.rows}" if self.rows else self.verdict

    @classmethod
    def of(cls, used: Resources[Any], part: str, capacity: Resources[int], whole: bool = True) -> Occupancy:
        """Return what `used`, counts or estimates, takes of `capacity`, that of the part of this name."""
        rows = []
        for name, count, there in used.against(capacity):
            figure = count if isinstance(count, Figure) else Figure(count, count, count)
            rows.append(Taken(name, figure.low, figure.value, figure.high, there))
        return cls(part, tuple(rows), whole)


def occupancy_of(used: Resources[Any], part: Part, whole: bool = True) -> Occupancy:
    """Return what `used`, counts or estimates, takes of `part`."""
    return Occupancy.of(used, part.name, capacity_of(part), whole)
