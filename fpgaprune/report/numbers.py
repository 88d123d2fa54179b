"""Numbers as text; an unknown number is a dash, never a zero."""

from __future__ import annotations

import math

DASH = "–"
MINUS = "\u2212"
NO_BREAK = "\u00a0"


def count_text(value: float | None) -> str:
    """A whole number with thousands separated; a dash where unknown."""
    if value is None or not math.isfinite(value):
        return DASH
    if 0 < value < 0.5:
        return "<1"  # a small number is not 0
    return f"{round(value):,}".replace("-", MINUS)


def percent_text(fraction: float | None, digits: int = 1) -> str:
    """A fraction as per cent; only 0 reads 0 and only 1 reads 100."""
    if fraction is None or not math.isfinite(fraction):
        return DASH
    percent = 100 * fraction
    least = 10**-digits
    if 0 < percent < least:
        return f"<{least:g}{NO_BREAK}%"
    shown = f"{percent:.{digits}f}" if abs(percent) < 1000 else f"{percent:,.0f}"
    if percent != 100 and shown in ("100", f"{100:.{digits}f}"):
        shown = f"{'>' if percent > 100 else '<'}100"
    return f"{shown.replace('-', MINUS)}{NO_BREAK}%"


def change_text(before: float | None, after: float | None) -> str:
    """How much larger or smaller `after` is, signed; a dash where that has no meaning."""
    if before is None or after is None:
        return DASH
    if before == after:
        return "same"
    if before == 0:
        return DASH
    percent = 100 * (after - before) / before
    digits = 0 if 10 <= abs(percent) < 99 or percent >= 99 else 1
    shown = f"{abs(percent):.{digits}f}"
    if float(shown) == 0:
        shown = "<0.1"
    elif float(shown) == 100 and after != 0 and percent < 0:
        shown = ">99.9"
    return f"{MINUS if percent < 0 else '+'}{shown}{NO_BREAK}%"


def points_text(before: float | None, after: float | None) -> str:
    """The difference of two fractions in percentage points, signed."""
    if before is None or after is None:
        return DASH
    points = round(100 * (after - before), 2)
    if points == 0:
        return "no change"
    return f"{MINUS if points < 0 else '+'}{abs(points):.2f} points"


def seconds_text(seconds: float | None) -> str:
    """A duration for people."""
    if seconds is None:
        return DASH
    if seconds < 60:
        return f"{seconds:.1f}{NO_BREAK}s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes}{NO_BREAK}min{NO_BREAK}{rest:02d}{NO_BREAK}s"
    return f"{minutes // 60}{NO_BREAK}h{NO_BREAK}{minutes % 60:02d}{NO_BREAK}min"


def time_text(microseconds: float | None) -> str:
    """A time on the chip, three significant digits, in ns, µs, ms or s."""
    if microseconds is None:
        return DASH
    for unit, factor in (("ns", 1e3), ("µs", 1.0), ("ms", 1e-3)):
        value = microseconds * factor
        if float(f"{value:.3g}") < 1000:
            return f"{_three_digits(value)}{NO_BREAK}{unit}"
    return f"{_three_digits(microseconds * 1e-6)}{NO_BREAK}s"


def rate_text(per_second: float | None) -> str:
    """Inferences per second, three significant digits."""
    if per_second is None:
        return DASH
    for unit, factor in (("", 1.0), ("k", 1e-3), ("M", 1e-6)):
        value = per_second * factor
        if float(f"{value:.3g}") < 1000:
            return f"{_three_digits(value)}{NO_BREAK}{unit}/s"
    return f"{_three_digits(per_second * 1e-9)}{NO_BREAK}G/s"


def error_text(value: float | None) -> str:
    """A small error, two significant digits; exactly 0 reads `0`."""
    if value is None:
        return DASH
    if value == 0:
        return "0"
    return f"{value:.1e}" if math.isfinite(value) else "not a number"


def range_text(low: float | None, high: float | None) -> str:
    """The range that an estimate is expected to lie in."""
    return DASH if low is None or high is None else f"{count_text(low)}–{count_text(high)}"


def _three_digits(value: float) -> str:
    if value >= 100:
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"
