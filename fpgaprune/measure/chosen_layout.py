"""`ChosenLayout`: how our own Verilog lays each layer out on a part, and why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

from fpgaprune.measure.estimate import VerilogPrice
from fpgaprune.measure.measurement import from_plain, interval_words, to_plain
from fpgaprune.measure.resources import LABELS
from fpgaprune.values import Summarised, Summary

SCHEDULED, AT_ONCE, FOLDED, BIT_BY_BIT = "scheduled", "at once", "folded", "bit by bit"


class LaidLayer(Struct, frozen=True):
    """One layer that multiplies by weights.

    Attributes:
        layer: its name.
        way: `scheduled`; or `at once`, `folded` or `bit by bit`, whichever takes the fewest LUTs in time.
        multipliers: of a scheduled layer; 0 of another.
        paired: whether a multiplier takes the values of two places.
        cycles: for a sample, of a scheduled layer; None of another, which keeps the pace of its pixels.
        in_luts: whether its multipliers are made of LUTs, not of DSP blocks.
    """

    layer: str
    way: str
    multipliers: int
    paired: bool
    cycles: int | None
    in_luts: bool = False

    @property
    def multipliers_text(self) -> str:
        """The number of its multipliers, and of what they are made if of LUTs; a dash where it has none."""
        return f"{self.multipliers}{' of LUTs' if self.in_luts else ''}" if self.multipliers else "–"


class ChosenLayout(Summarised, Struct, frozen=True):
    """A layout for a part.

    Attributes:
        part: its name.
        share: of each resource that the layout may take, 0..1.
        interval: cycles between two samples, as in the price: what the layout is chosen by.
        allowed: cycles that a sample was given, the `interval` of `VerilogLayout`.
        layers: in the order of the data.
        used: resource -> share of the part that the price takes.
        price: of the whole design in this layout.
        faster: multipliers that the slowest layer would take more, to be faster; None where none can be, or where
            nobody asked.
        then_cycles: the interval with them.
        fold: as in `VerilogLayout`; a layer that scales each channel is at once where that takes smaller shares.
    """

    part: str
    share: float
    interval: int
    allowed: int
    layers: tuple[LaidLayer, ...]
    used: Mapping[str, float]
    price: VerilogPrice
    faster: int | None
    then_cycles: int | None
    fold: Mapping[str, int] = {}

    def _summary(self) -> Summary:
        rows = [
            (row.layer, row.way, row.multipliers_text, "–" if row.cycles is None else f"{row.cycles:,}")
            for row in self.layers
        ]
        first, *notes = self.lines()
        return Summary(f"ChosenLayout: {first}", ("layer", "way", "multipliers", "cycles"), rows, notes)

    @property
    def slowest(self) -> LaidLayer | None:
        """The scheduled layer that takes the most cycles; None if none is scheduled."""
        timed = [row for row in self.layers if row.cycles is not None]
        return max(timed, key=lambda row: row.cycles or 0, default=None)

    @property
    def binding(self) -> str:
        """The resource of which the layout takes the largest share."""
        return max(self.used, key=lambda name: self.used[name])

    @property
    def settings(self) -> dict[str, Any]:
        """The fields of `VerilogLayout` that make it."""
        rows = [row for row in self.layers if row.way == SCHEDULED]
        return {
            **({"fold": dict(self.fold)} if self.fold else {}),
            "multipliers": {row.layer: row.multipliers for row in rows},
            "paired": tuple(row.layer for row in rows if row.paired),
            **({"in_luts": in_luts} if (in_luts := tuple(row.layer for row in rows if row.in_luts)) else {}),
            "interval": self.allowed,
        }

    def lines(self) -> Iterator[str]:
        """Yield sentences for a person: what binds, which layer is slowest, what more multipliers would bring."""
        shares = ", ".join(f"{LABELS[name]} {share:.0%}" for name, share in self.used.items())
        yield f"{self.part}: {shares}; {LABELS[self.binding]} binds, at most {self.share:.0%} may be used"
        slowest = self.slowest
        if slowest is None:
            yield f"a sample {interval_words(self.interval)}; no layer is scheduled"
            return
        yield (
            f"a sample {interval_words(self.interval)}; {slowest.layer} is the slowest with "
            f"{slowest.cycles} cycles and {slowest.multipliers} multipliers"
        )
        if self.faster is not None and self.then_cycles is not None:
            then = interval_words(self.then_cycles)
            yield f"{self.faster} multipliers more for {slowest.layer}: a sample {then}"

    def to_json(self) -> dict[str, Any]:
        """Return everything as JSON data, with what binds."""
        slowest = self.slowest
        return {
            **to_plain(self),
            "price": self.price.to_json(),
            "binding": self.binding,
            "slowest": None if slowest is None else slowest.layer,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, object]) -> ChosenLayout:
        """Return the layout that `to_json` gave.

        Raises:
            ReportError: the data has another form.
        """
        return from_plain(data, cls, "a layout")
