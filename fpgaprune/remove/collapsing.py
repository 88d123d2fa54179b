"""Plans the replacement of merges whose branches are constants, except one."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from fpgaprune.network import Affine, Liveness, Trace
from fpgaprune.remove.plan import Collapse, Delta


def collapses(trace: Trace, alive: Liveness, dropped: Iterable[str]) -> dict[str, Collapse]:
    """Call key to the replacement, for each merge that stays and has constant branches."""
    gone = set(dropped)
    return {
        key: Collapse(affine.operand, *_layer(key, affine, alive))
        for key, affine in trace.affine.items()
        if key not in gone
    }


def collapsible(trace: Trace, alive: Liveness) -> dict[str, NDArray[np.bool_]]:
    """Call key to the leaving channels, for each merge that could collapse once these channels have left."""
    found = {}
    for key, operands in trace.merges.items():
        leaving = np.logical_not(np.logical_or.reduce([alive.needed(ids) for ids, _ in operands]))
        live = [not (known | leaving).all() for _, known in operands]
        if sum(live) == 1 and not np.array_equal(leaving, trace.leaving.get(key, np.zeros_like(leaving))):
            found[key] = leaving
    return found


def made_weights(
    trace: Trace, alive: Liveness, found: dict[str, Collapse]
) -> tuple[dict[str, tuple[int, ...]], dict[str, Delta]]:
    """Shapes and values by path of the weights of the replacements."""
    shapes: dict[str, tuple[int, ...]] = {}
    deltas: dict[str, Delta] = {}
    for key, collapse in found.items():
        if collapse.kind is None:
            continue
        affine = trace.affine[key]
        kept = alive.needed(affine.ids)
        count, taps = int(kept.sum()), (1,) * (len(affine.shape) - 1)
        name = collapse.config["name"]
        shapes[f"{name}/kernel"] = (*taps, count, 1)
        deltas[f"{name}/kernel"] = Delta(np.arange(count), affine.scale[kept])
        shapes[f"{name}/bias"] = (count,)
        deltas[f"{name}/bias"] = Delta(np.arange(count), affine.offset[kept])
    return shapes, deltas


def made_multiplications(trace: Trace, alive: Liveness, found: dict[str, Collapse]) -> int:
    """How many multiplications the replacements do for one sample."""
    affines = [trace.affine[key] for key, collapse in found.items() if collapse.kind is not None]
    return sum(
        math.prod(size or 1 for size in affine.shape[:-1]) * int(alive.needed(affine.ids).sum()) for affine in affines
    )


def _layer(key: str, affine: Affine, alive: Liveness) -> tuple[str | None, dict[str, object]]:
    kept = alive.needed(affine.ids)
    if (affine.scale[kept] == 1).all() and (affine.offset[kept] == 0).all():
        return None, {}
    kind = "DepthwiseConv1D" if len(affine.shape) == 2 else "DepthwiseConv2D"
    return kind, {"kernel_size": 1, "name": key.replace("#", "_"), "data_format": "channels_last"}
