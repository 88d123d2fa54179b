"""Numbers as text; an unknown number is a dash, never a zero."""

from __future__ import annotations

import math
from collections.abc import Mapping

DASH = "–"
MINUS = "\u2212"
NO_BREAK = "\u00a0"


def count_text(value: float | None) -> str:
    """Return a whole number with commas between thousands; a dash if unknown."""
    if value is None or not math.isfinite(value):
        return DASH
    if 0 < value < 0.5:
        return "<1"  # a small number is not 0
    return f"{round(value):,}".replace("-", MINUS)


def percent_text(fraction: float | None, digits: int = 1) -> str:
    """Return a fraction as per cent; only 0 reads 0 and only 1 reads 100."""
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
    """Return the change from `before` to `after` in per cent, with its sign; a dash if it has no meaning."""
    if before is not None and before == after:
        return "same"
    if not before or after is None:
        return DASH
    percent = 100 * (after - before) / before
    digits = 0 if 10 <= abs(percent) < 99 or percent >= 99 else 1
    shown = f"{abs(percent):.{digits}f}"
    if float(shown) == 0:
        shown = "<0.1"
    elif float(shown) == 100 and after != 0 and percent < 0:
        shown = ">99.9"
    return f"{MINUS if percent < 0 else '+'}{shown}{NO_BREAK}%"


def seconds_text(seconds: float | None) -> str:
    """Return a duration in words: `9.5 s`, `2 min 03 s` or `1 h 05 min`."""
    if seconds is None:
        return DASH
    if seconds < 60:
        return f"{seconds:.1f}{NO_BREAK}s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes}{NO_BREAK}min{NO_BREAK}{rest:02d}{NO_BREAK}s"
    return f"{minutes // 60}{NO_BREAK}h{NO_BREAK}{minutes % 60:02d}{NO_BREAK}min"


def time_text(microseconds: float | None) -> str:
    """Return a time on the chip with three significant digits, in ns, µs, ms or s."""
    return _scaled(microseconds, {"ns": 1e3, "µs": 1.0, "ms": 1e-3, "s": 1e-6})


def rate_text(per_second: float | None) -> str:
    """Write inferences per second with three significant digits."""
    return _scaled(per_second, {"/s": 1.0, "k/s": 1e-3, "M/s": 1e-6, "G/s": 1e-9})


def error_text(value: float | None) -> str:
    """Return a small error with two significant digits; exactly 0 reads `0`."""
    if value is None:
        return DASH
    if value == 0:
        return "0"
    return f"{value:.1e}" if math.isfinite(value) else "not a number"


def range_text(low: float | None, high: float | None) -> str:
    """Return the range in which an estimate is expected."""
    return DASH if low is None or high is None else f"{count_text(low)}–{count_text(high)}"


def _scaled(value: float | None, factors: Mapping[str, float]) -> str:
    """Write `value` in the first unit in which it is below 1000, else in the last one."""
    if value is None:
        return DASH
    fitting = [unit for unit, factor in factors.items() if float(f"{value * factor:.3g}") < 1000]
    unit = fitting[0] if fitting else list(factors)[-1]
    scaled = value * factors[unit]
    digits = 2 if scaled < 10 else 1 if scaled < 100 else 0
    return f"{scaled:.{digits}f}{NO_BREAK}{unit}"
