"""The order of suggestions: first those that surely fit, then those that keep the function, then the fastest."""

from __future__ import annotations

from fpgaprune.measure import FLOW, MODEL, Prediction, Suggestion
from fpgaprune.target import Part, find_part

_PART = 3.0


def rank(suggestion: Suggestion, own: Part) -> tuple[float, ...]:
    """The rank of a suggestion for a design on the part `own`; a smaller rank is better.

    The first criterion is whether the changed design fits: by the upper end of its estimate, by the middle, not at all,
    unknown. The second is what the change costs: nothing, another model file, the accuracy, another part (of the same
    family first, then the smaller one). The last are latency and interval or, if the design does not fit, how far it
    exceeds the part.
    """
    after = suggestion.after
    if after is None:
        return (3.0, 0.0 if suggestion.place == FLOW else 1.0)
    taken = _taken(suggestion, own)
    time: tuple[float, ...] = (after.latency_cycles, after.interval_cycles)
    if taken == _PART:
        # Parts of the same family come first, then smaller parts; latency counts last.
        time = (float(find_part(after.part).family != own.family), after.capacity["lut"] or 0, *time)
    if after.fits_upper:
        return (0.0, taken, *time)
    return (1.0, taken, *time) if after.fits else (2.0, after.excess, taken, *time)


def _taken(suggestion: Suggestion, own: Part) -> float:
    if suggestion.after is not None and suggestion.after.part != own.name:
        return _PART
    if not suggestion.keeps_function:
        return 2.0
    return 1.0 if suggestion.place == MODEL else 0.0


def cost_text(before: Prediction, after: Prediction, keeps_function: bool) -> str:
    """The cost of a change in words."""
    times = [
        (name, getattr(before, f"{name}_cycles"), getattr(after, f"{name}_cycles")) for name in ("latency", "interval")
    ]
    said = [
        f"{name} x{_factor(new / old)} ({old:,} to {new:,} cycles)" for name, old, new in times if old and new != old
    ]
    speed = ", ".join(said) or "the same latency and interval"
    return f"{speed}; {'the function stays the same' if keeps_function else 'measure the accuracy again'}"


def _factor(ratio: float) -> str:
    return f"{ratio:.2f}" if ratio < 10 else f"{ratio:.1f}" if ratio < 100 else f"{ratio:,.0f}"
