"""How deep the queue behind a pipeline that never stops must be, so that a beat can enter in every cycle."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fpgaprune.rtl.links import Module


def queue_depth(through: int, window: Module | None, slack: int, apart: int = 1) -> int:
    """The depth in beats of the queue behind a pipeline of `through` cycles; its exit holds one beat more.

    No beat ever waits for room, if a beat enters in every cycle and one that completes a window in every `apart`
    cycles. `slack` more beats can wait for a reader that pauses. The depth is a power of two, as memories are.
    """
    return 1 << max(places(through, window, apart) + slack - 2, 1).bit_length()


def places(through: int, window: Module | None, apart: int = 1) -> int:
    """The most beats that occupy a place at one time, if samples follow one another without a gap.

    A beat occupies its place from when it enters until three cycles after it has left the pipeline; a pixel that
    completes no window gives its place back in the second cycle.
    """
    if apart > 1:
        # The beats that complete a window, and two more that do not.
        return -(-(through + 3) // apart) + 2
    if window is None:
        return through + 3
    of = {name: int(value) for name, value in window.parameters}
    rows, columns = (
        (np.arange(size) >= of[side] - 1) & ((np.arange(size) - of[side] + 1) % of[step] == 0)
        for size, side, step in ((of["ROWS"], "KH", "SH"), (of["COLUMNS"], "KW", "SW"))
    )
    completes = np.outer(rows, columns).ravel()
    return int((_latest(completes, through + 3) + _latest(~completes, 2)).max())


def _latest(flags: NDArray[np.bool_], count: int) -> NDArray[np.int64]:
    """At each place of `flags`, repeated without end: how many of the last `count` are set, this one included."""
    whole, rest = divmod(count, len(flags))
    sums = np.concatenate(([0], np.cumsum(np.concatenate((flags, flags)), dtype=np.int64)))
    ends = np.arange(len(flags), 2 * len(flags)) + 1
    return whole * int(flags.sum()) + sums[ends] - sums[ends - rest]
