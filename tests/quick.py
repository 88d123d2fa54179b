"""Which parameters of a test run each time, and which at night only."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest


def quick(now: Iterable[Any], among: Iterable[Any], name: Callable[[Any], str] | None = None) -> list[Any]:
    """Return all of `among` as parameters of a test, of which those outside `now` are slow.

    A tuple is the values of several arguments. `name` makes the name of a parameter from it.
    """
    now, among = list(now), list(among)
    missing = [each for each in now if each not in among]
    assert not missing, f"{missing} are none of {among}"

    def parameter(each: Any) -> Any:
        values = each if isinstance(each, tuple) else (each,)
        marks = () if each in now else (pytest.mark.slow,)
        return pytest.param(*values, marks=marks, id=name(each) if name else None)

    return [parameter(each) for each in among]
