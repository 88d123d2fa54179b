"""Reads a printed cell as a number, or as None if the tool prints that there is none."""

from __future__ import annotations

import re

from fpgaprune.errors import ReportError

# What the tools print in place of a figure. In an AMD report, a dash says that the row does not state that resource, or
# that the cycles are not known; '?' says that a loop bound is not known (UG1399, Synthesis Summary). Neither means 0:
# the same tools print 0 as 0.
NOTHING = frozenset({"", "-", "--", "?", "_", "na", "n/a", "undef", "undefined", "tbd", "unknown"})

# No cell with a figure is longer, and no count of a device is larger. These bounds stop a hostile file: a pattern could
# search for hours in a long cell, and a number of thousands of digits raises another error.
_LONGEST = 80
_LARGEST = 1e15

# `(3.2%)` behind the figure; `(3,2%)` on a machine that writes a decimal comma; `[  3.20%]` in Vitis.
_PERCENT = r"\s*[~<>]?\s*-?[\d.,]+\s*%\s*"
_SHARE = re.compile(rf"\s*(\({_PERCENT}\)|\[{_PERCENT}\])$", re.ASCII)
_CAPACITY = re.compile(r"\s*/\s*[\d,]+$", re.ASCII)
_WHOLE = re.compile(r"\d+|\d{1,3}(,\d{3})+", re.ASCII)
_DECIMAL = re.compile(r"-?(\d+|\d{1,3}(,\d{3})+)(\.\d*)?([eE][+-]?\d{1,3})?|-?\.\d+", re.ASCII)
_TIME_NS = {"ps": 1e-3, "ns": 1.0, "us": 1e3, "ms": 1e6}


def parse_count(text: str, where: str) -> int | None:
    """Parse the whole number in `text`, without percentages and `/ capacity`; None if `text` says there is none.

    Raises:
        ReportError: `text` is something else, or larger than any device.
    """
    wanted = "a whole number"
    bare = _bare(text, where, wanted)
    if bare is None:
        return None
    if _WHOLE.fullmatch(bare) or _DECIMAL.fullmatch(bare):
        value = _within(bare, text, where, wanted)
        if value >= 0 and value.is_integer():
            return int(value)
    raise _refused(text, where, wanted)


def parse_number(text: str, where: str) -> float | None:
    """Return the number in `text`, which may have decimals or be negative; None if `text` states that there is none.

    Raises:
        ReportError: `text` is something else, or larger than any device.
    """
    bare = _bare(text, where, "a number")
    if bare is None:
        return None
    if _DECIMAL.fullmatch(bare):
        return _within(bare, text, where, "a number")
    raise _refused(text, where, "a number")


def parse_range(text: str, where: str) -> tuple[int | None, int | None]:
    """Parse the two ends of a range as `2 ~ 53`; a single number is both ends.

    An unknown end is None. The tools print it as `?`, `undef` or -1, or they print an upper end below the lower one
    (`3 ~ 0`, in a file that states elsewhere that the upper end is `undef`).

    Raises:
        ReportError: an end is neither a whole number nor states that there is none.
    """
    ends = text.split("~")
    if len(ends) > 2:
        raise _refused(text, where, "one number or a range as '2 ~ 53'")
    low, high = (None if end.strip() == "-1" else parse_count(end, where) for end in (ends[0], ends[-1]))
    if len(ends) == 2 and low is not None and high is not None and high < low:
        high = None
    return low, high


def parse_time_ns(text: str, where: str) -> float | None:
    """Return the time in ns that `4.366 ns`, `1.2 us` or a number without a unit, which stands for ns, states.

    Raises:
        ReportError: `text` is no time.
    """
    bare = text.strip()
    unit = bare[-2:] if bare[-2:] in _TIME_NS else ""
    value = parse_number(bare.removesuffix(unit), where)
    return None if value is None else value * _TIME_NS[unit or "ns"]


def shorten(text: str) -> str:
    """Return `text` as a message quotes it: on one line, and no longer than a cell."""
    bare = text.strip()
    return repr(bare if len(bare) <= _LONGEST else f"{bare[:_LONGEST]}...")


def _bare(text: str, where: str, wanted: str) -> str | None:
    bare = text.strip()
    if len(bare) > _LONGEST:
        raise _refused(text, where, wanted)
    bare = _CAPACITY.sub("", _SHARE.sub("", bare)).strip()
    return None if bare.casefold() in NOTHING else bare


def _within(bare: str, text: str, where: str, wanted: str) -> float:
    value = float(bare.replace(",", ""))
    if not abs(value) <= _LARGEST:
        raise ReportError(f"{where} holds {shorten(text)}, which is more than any device has; wanted {wanted}")
    return value


def _refused(text: str, where: str, wanted: str) -> ReportError:
    return ReportError(f"{where} holds {shorten(text)}; wanted {wanted}, or a dash if there is none")
