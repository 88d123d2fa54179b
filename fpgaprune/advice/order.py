"""The order of suggestions: first those that surely fit, of these the ones that cost least, then the fastest."""

from __future__ import annotations

from fpgaprune.layout import MODEL, DesignLayout, Suggestion
from fpgaprune.target import Part, find_part

# What a change costs: another tool that fills the part, nothing, another model file, the accuracy, the speed, the part.
_VERILOG, _NOTHING, _MODEL, _ACCURACY, _SPEED, _PART = range(6)
# A design that takes so many times as long as the one now is no longer the one that was wanted.
_SLOW = 20


def rank(suggestion: Suggestion, own: Part, now: DesignLayout) -> tuple[float, ...]:
    """Return the rank of a suggestion for a design on the part `own`, whose estimate is `now`; a smaller one is better.

    The first criterion is whether the changed design fits: by the upper end of its estimate, by the middle, not at all.
    The second is what the change costs. Our own Verilog stands first, because it has as many multipliers as the part
    has room for; then come changes that cost nothing, another model file, the accuracy, most of the speed, another part
    (of the same family first, then the smaller one). The last are latency and interval or, if the design does not fit,
    how far it exceeds the part.
    """
    after = suggestion.after
    taken = _taken(suggestion, own, now)
    time: tuple[float, ...] = (after.latency_cycles, after.interval_cycles)
    if taken == _PART:
        # Parts of the same family come first, then smaller parts; latency counts last.
        time = (float(find_part(after.part).family != own.family), after.capacity["lut"] or 0, *time)
    if after.fits_upper:
        return (0.0, taken, *time)
    return (1.0, taken, *time) if after.fits else (2.0, after.share, taken, *time)


def _taken(suggestion: Suggestion, own: Part, now: DesignLayout) -> int:
    after = suggestion.after
    if after.part != own.name:
        return _PART
    if after.stage != now.stage:
        return _VERILOG
    if after.latency_cycles > _SLOW * now.latency_cycles:
        return _SPEED
    if not suggestion.keeps_function:
        return _ACCURACY
    return _MODEL if suggestion.place == MODEL else _NOTHING


def cost_text(before: DesignLayout, after: DesignLayout, keeps_function: bool) -> str:
    """Return the cost of a change in words."""
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
