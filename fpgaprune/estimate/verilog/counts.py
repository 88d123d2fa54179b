"""`Counts`: quantities of hardware by name."""

from __future__ import annotations

from collections.abc import Mapping


class Counts(dict[str, float]):
    """Quantities by name; one that is not there is 0."""

    def __missing__(self, name: str) -> float:
        return 0.0

    def more(self, other: Mapping[str, float], times: float = 1) -> None:
        """Add `other`, multiplied by `times`."""
        for name, count in other.items():
            self[name] += count * times
