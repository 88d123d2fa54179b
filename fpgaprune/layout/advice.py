"""`Advice`: the resources of which a part has too few for a design, and what each change would bring."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from fpgaprune.layout.design_layout import DesignLayout
from fpgaprune.measure import Figure, from_plain, to_plain

# The places where a change is made.
FLOW, MODEL = "flow file", "model"


class LayerShare(Struct, frozen=True):
    """One layer's part of a resource.

    Attributes:
        layer: name of the layer.
        kind: class of the layer.
        used: what the layer takes.
        share: `used` as a fraction of what the whole design takes.
    """

    layer: str
    kind: str
    used: int
    share: float


class Shortage(Struct, frozen=True):
    """A resource of which the design needs more than the part has, or may need more.

    Attributes:
        resource: name of the resource, as `lut`.
        used: the estimate with its 80 % range.
        capacity: count that the part has.
        layers: the layers that take most of it, the largest first.
    """

    resource: str
    used: Figure
    capacity: int
    layers: tuple[LayerShare, ...]

    @property
    def fits(self) -> bool:
        """Whether the middle of the estimate stays within the capacity; the upper end of its range does not."""
        return self.used.value <= self.capacity


class Suggestion(Struct, frozen=True):
    """One change, and what it would bring.

    Attributes:
        knob: the setting that changes, as `reuse_factor` or `strategy + weight_bits`.
        change: the text to write. For a flow file it is a piece of TOML in which each key has its whole new value, and
            `[hls.layers]` each layer that the file is to name; for a model it is lines of Python.
        place: where to write it: `flow file` or `model`.
        cost: what it costs, in words, as `latency x6.2, interval x6.0; the function stays the same`.
        keeps_function: whether the network computes the same; if not, its accuracy must be measured again.
        after: the estimate of the changed design.
    """

    knob: str
    change: str
    place: str
    cost: str
    keeps_function: bool
    after: DesignLayout

    @property
    def fits(self) -> bool | None:
        """Whether the changed design fits by the middle of its estimate; None if that is unknown."""
        return self.after.fits

    @property
    def fits_upper(self) -> bool | None:
        """Whether the upper end of the estimate also fits; None if that is unknown."""
        return self.after.fits_upper


class Advice(Struct, frozen=True):
    """The resources of which a part has too few for a design, and the changes that would help.

    Attributes:
        design: name of the design.
        part: name of the part that it should fit.
        now: the design as it is.
        shortages: resources of which the part has too few, or too few for the upper end of the estimate; the one that
            is furthest beyond its capacity first. Empty if the upper end fits, or if no capacity of the part is known.
        suggestions: changes, the best first (`fpgaprune.advice.order`); empty if there is no shortage.
        notes: sentences on settings that bring nothing here.
    """

    design: str
    part: str
    now: DesignLayout
    shortages: tuple[Shortage, ...] = ()
    suggestions: tuple[Suggestion, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def needed(self) -> bool:
        """Whether something must change before the upper end of the estimate fits."""
        return bool(self.shortages)

    def to_json(self) -> dict[str, Any]:
        """Return the whole advice as JSON data, with what fits."""
        data: dict[str, Any] = to_plain(self)
        data["now"] = self.now.to_json()
        for row, suggestion in zip(data["suggestions"], self.suggestions, strict=True):
            row |= {"after": suggestion.after.to_json(), "fits": suggestion.fits, "fits_upper": suggestion.fits_upper}
        for row, shortage in zip(data["shortages"], self.shortages, strict=True):
            row["fits"] = shortage.fits
        return data

    @classmethod
    def from_json(cls, data: Mapping[str, object]) -> Advice:
        """Return the advice that `to_json` gave.

        Raises:
            ReportError: the data has another form.
        """
        return from_plain(data, cls, "advice")
