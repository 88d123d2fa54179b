"""Finds the needed channels: the smallest set with all channels that must stay and everything that these read.

All other channels can leave. The search starts from the channels that must stay, not from dead ones, so it also finds
channels that only keep each other alive. It needs about one sweep against the data flow.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fpgaprune.network.channels import Ids
from fpgaprune.network.linear import Linear
from fpgaprune.network.trace import Trace

Bools = NDArray[np.bool_]
# A carrier smaller than this share of a constant that it stands for would cost precision.
_CARRIER_RATIO = 1e-3


class Liveness:
    """The needed slots of a finished trace, with the first reason for each."""

    def __init__(self, trace: Trace, multiple_of: int = 1) -> None:
        """Find the smallest set that keeps a multiple of `multiple_of` channels in each layer, or all its channels."""
        self._trace = trace
        self._multiple_of = multiple_of
        self._linears = list(reversed(trace.linears.values()))
        self._roots = trace.slots.roots()
        self._needed = np.zeros(trace.slots.count, dtype=bool)
        self._cause: dict[int, tuple[str, str]] = {}
        self._visited: dict[str, int] = {}
        for hold in trace.holds:
            self._mark(hold.ids, hold.reason, hold.by)
        while True:
            self._follow_reads()
            if not (self._choose_carriers() | self._fill_empty() | self._even_groups() or self._round_up()):
                break

    def needed(self, ids: Ids) -> Bools:
        """Return whether each channel of `ids` is needed."""
        return np.asarray(self._needed[self._roots[ids]], dtype=np.bool_)

    def root(self, ids: Ids) -> Ids:
        """Return the slot that stands for each of `ids`."""
        return self._roots[ids]

    def cause(self, slot: int) -> tuple[str, str]:
        """Return the reason why a needed slot stays, and the path of the call that needs it."""
        return self._cause[int(self._roots[slot])]

    def read(self, linear: Linear) -> Bools:
        """Return the input channels that the needed outputs of `linear` read."""
        return np.asarray(linear.taps.nonzero[:, self.needed(linear.out_ids)].any(axis=1), dtype=np.bool_)

    def carriers(self, linear: Linear) -> NDArray[np.intp]:
        """Return the needed constant channels, to whose kernels those of other constant channels can be added."""
        return np.flatnonzero(linear.constant & self.needed(linear.source.ids))

    def _mark(self, ids: Ids, reason: str, by: str) -> bool:
        fresh = np.unique(self._roots[ids[~self.needed(ids)]])
        self._needed[fresh] = True
        self._cause.update(dict.fromkeys(fresh.tolist(), (reason, by)))
        return bool(fresh.size)

    def _follow_reads(self) -> None:
        changed = True
        while changed:
            changed = False
            for linear in self._linears:
                outputs = int(self.needed(linear.out_ids).sum())
                if outputs == self._visited.get(linear.kernel_path, 0):
                    continue
                self._visited[linear.kernel_path] = outputs
                spared = linear.source.known if linear.mergeable else linear.free
                changed |= self._mark(linear.source.ids[self.read(linear) & ~spared], "read", linear.path)

    def _choose_carriers(self) -> bool:
        changed = False
        for linear in self._linears:
            if linear.absorbs or not linear.mergeable:
                continue
            merged = linear.constant & self.read(linear) & ~self.needed(linear.source.ids)
            present = self.carriers(linear)
            left = [i for i in np.flatnonzero(merged) if pick_carrier(linear.source.value, i, present) is None]
            while left:
                chosen = _best_carrier(linear.source.value[left])
                changed |= self._mark(linear.source.ids[[left[chosen]]], "border", linear.path)
                present = self.carriers(linear)
                left = [i for i in left if pick_carrier(linear.source.value, i, present) is None]
        return changed

    def _fill_empty(self) -> bool:
        changed = False
        for ids, path in self._trace.solid:
            if not self.needed(ids).any():
                changed |= self._mark(ids[:1], "last", path)
        for linear in self._linears:
            if self.needed(linear.out_ids).any() and not self.needed(linear.source.ids).any():
                source = linear.source
                zeros = np.flatnonzero(source.known & (source.value == 0))
                at = zeros[0] if zeros.size else 0
                changed |= self._mark(source.ids[[at]], "last", linear.path)
        return changed

    def _round_up(self) -> bool:
        """Keep more channels in the first layer whose count is no multiple; the caller then follows their reads."""
        for path, owner in self._trace.owners.items():
            missing = -int(self.needed(owner.ids).sum()) % self._multiple_of
            if missing and self.needed(owner.ids).any():
                spare = owner.ids[~self.needed(owner.ids)][:missing]
                if self._mark(spare, "multiple", path):
                    return True
        return False

    def _even_groups(self) -> bool:
        changed = False
        for inputs, outputs, path in self._trace.even:
            kept_in, kept_out = self.needed(inputs), self.needed(outputs)
            alive = kept_in.any(axis=1) | kept_out.any(axis=1)
            if not alive.any():
                continue
            local = np.asarray(kept_in[alive].any(axis=0), dtype=np.bool_)
            if not local.any():
                local[0] = True
            changed |= self._mark(inputs[alive][:, local].reshape(-1), "groups", path)
            width = max(int(kept_out.sum(axis=1).max()), 1)
            for row, kept in zip(outputs[alive], kept_out[alive], strict=True):
                spare = row[~kept][: width - int(kept.sum())]
                changed |= self._mark(spare, "groups", path)
        return changed


def pick_carrier(values: NDArray[np.float64], channel: np.intp, carriers: NDArray[np.intp]) -> int | None:
    """Return the carrier whose constant best represents that of `channel`; None if no carrier fits.

    A carrier of an integer constant must divide it, so that integer networks stay bit-identical.
    """
    if not carriers.size:
        return None
    sizes = np.abs(values[carriers])
    if _integral(values[channel]):
        sizes = np.where(np.fmod(values[channel], values[carriers]) == 0, sizes, 0.0)
    else:
        sizes = np.where(sizes >= _CARRIER_RATIO * abs(values[channel]), sizes, 0.0)
    best = int(np.argmax(sizes))
    return int(carriers[best]) if sizes[best] > 0 else None


def _best_carrier(values: NDArray[np.float64]) -> int:
    sizes = np.abs(values)
    return int(np.argmin(sizes) if all(map(_integral, values)) else np.argmax(sizes))


def _integral(value: float) -> bool:
    return float(value).is_integer()
