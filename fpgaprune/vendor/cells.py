"""From a printed cell to a number, or to None where the tool prints that it states none."""

from __future__ import annotations

import re

from fpgaprune.errors import ReportError

# What the tools print in place of a figure. A dash in an AMD report says that the row does not hold that resource
# or that the cycles are not known; '?' that a loop bound is not known (UG1399, Synthesis Summary). Neither is a 0,
# which the same tools print as 0.
NOTHING = frozenset({"", "-", "--", "?", "_", "na", "n/a", "undef", "undefined", "tbd", "unknown"})

_SHARE = re.compile(r"\s*\(\s*[~<>]?\s*-?[\d.]+\s*%\s*\)\s*$")
_CAPACITY = re.compile(r"\s*/\s*[\d,]+\s*$")
_WHOLE = re.compile(r"\d+|\d{1,3}(,\d{3})+")
_DECIMAL = re.compile(r"-?(\d+|\d{1,3}(,\d{3})+)(\.\d*)?([eE][+-]?\d+)?|-?\.\d+")
_TIME_NS = {"ps": 1e-3, "ns": 1.0, "us": 1e3, "ms": 1e6}


def parse_count(text: str, where: str) -> int | None:
    """The whole number that `text` states, percentages and `/ capacity` left aside; None where it states none.

    Raises:
        ReportError: `text` is neither a whole number nor a printed absence.
    """
    bare = _CAPACITY.sub("", _SHARE.sub("", text.strip()))
    if bare.casefold() in NOTHING:
        return None
    if _WHOLE.fullmatch(bare):
        return int(bare.replace(",", ""))
    if _DECIMAL.fullmatch(bare):
        value = float(bare.replace(",", ""))
        if value >= 0 and value.is_integer():
            return int(value)
    raise ReportError(f"{where} holds {text.strip()!r}; wanted a whole number, or a dash where there is none")


def parse_number(text: str, where: str) -> float | None:
    """The same for a number that may have decimals or be negative.

    Raises:
        ReportError: `text` is neither a number nor a printed absence.
    """
    bare = _CAPACITY.sub("", _SHARE.sub("", text.strip()))
    if bare.casefold() in NOTHING:
        return None
    if _DECIMAL.fullmatch(bare):
        return float(bare.replace(",", ""))
    raise ReportError(f"{where} holds {text.strip()!r}; wanted a number, or a dash where there is none")


def parse_time_ns(text: str, where: str) -> float | None:
    """A time in ns from `4.366 ns`, `1.2 us` or a bare number, which these reports print in ns.

    Raises:
        ReportError: it is no time.
    """
    match = re.fullmatch(r"(.*?)\s*([pnum]s)?", text.strip())
    if match is None:
        raise ReportError(f"{where} holds {text.strip()!r}; wanted a time in ns")
    value = parse_number(match[1], where)
    return None if value is None else value * _TIME_NS[match[2] or "ns"]
