"""Settings of a flow file that are joined: sections, keys, and tables of layers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def joined(*parts: Mapping[str, Any]) -> dict[str, Any]:
    """All of `parts` in one; a later part wins, and tables are joined key by key.

    The schedule of `[finetune]` is one value: the keys of one kind mean nothing to another.
    """
    found: dict[str, Any] = {}
    for part in parts:
        for key, value in part.items():
            own = found.get(key)
            if isinstance(own, Mapping) and isinstance(value, Mapping) and key != "schedule":
                found[key] = joined(own, value)
            else:
                found[key] = value
    return found
