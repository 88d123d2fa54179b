"""A largest loss is a text with its unit, `0.5 %`, on the command line, in a flow file and in Python.

It is half a point of accuracy, or of another metric that should be high; an error may grow by 0.5 %. A number without
the sign may be per cent or a fraction, so that it is refused with what to write for each.
"""

from __future__ import annotations

import math
import re
from typing import Any

from fpgaprune.errors import shown

_FORM = re.compile(r"\s*(?P<number>[0-9]*\.?[0-9]+(e[+-]?[0-9]+)?|[0-9]+\.)\s*%\s*", re.IGNORECASE)
_EXAMPLE = '"0.5 %", which is half a point of accuracy'


def parse_loss(given: object) -> float:
    """Return the fraction that the text `given` states: 0.005 for `0.5 %`; a zero needs no unit.

    Raises:
        ValueError: it is no such text; the message names it and says what to write.
    """
    found = _FORM.fullmatch(given) if isinstance(given, str) else None
    value = _number(given) if found is None else float(found["number"]) / 100
    if value is None or not 0 <= value < math.inf:
        raise ValueError(f"{shown(given)} is no loss; wanted a text in per cent, 0 or more, as {_EXAMPLE}")
    if found is None and value:
        fraction = f', or "{loss_text(value)}" if it is a fraction' if value <= 1 else ""
        raise ValueError(f'{given} has no unit: write "{loss_text(value / 100)}"{fraction}')
    return value


def loss_text(fraction: float) -> str:
    """Return the text that states `fraction`: `0.5 %` for 0.005."""
    return f"{100 * fraction:.10g} %"


def _number(given: Any) -> float | None:
    try:
        return None if isinstance(given, bool) else float(given)
    except (TypeError, ValueError):
        return None
