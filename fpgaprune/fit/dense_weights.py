"""`with_dense_weights`: whether a search also chooses among the single weights of Dense layers behind convolutions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from fpgaprune.fit.estimates import Estimates
from fpgaprune.fit.knobs import POWERS_OF_TWO, Knobs
from fpgaprune.fit.limits import size_of
from fpgaprune.layout import joined
from fpgaprune.network import weights_of
from fpgaprune.select import default_paths
from fpgaprune.values import named_weights

if TYPE_CHECKING:
    import keras

# The network that is estimated both ways, and the most of its size times its interval that choosing everywhere leaves.
_KNOBS, _LESS = Knobs("weight", 0.87, 6, 4, POWERS_OF_TWO), 0.85
# A smaller share of the weights is not worth an estimate, and more weights have no room as adders.
_SHARE, _MOST = 0.1, 100_000


def with_dense_weights(
    document: dict[str, Any], model: keras.Model, estimates_of: Callable[[dict[str, Any]], Estimates]
) -> dict[str, Any]:
    """Return the flow of every trial, which names all kernels where that makes the network much smaller.

    A selection leaves Dense and recurrent layers alone where they do few of the multiplications. A folded layer gains
    nothing from zeros, but where a sample takes few cycles each of its weights is an adder.
    """
    select = document.get("select", {})
    named = any(select.get(key) for key in ("paths", "zeros", "masks", "sparsity"))
    if named or select.get("granularity", "weight") != "weight":
        return document
    kinds, variables = weights_of(model), named_weights(model)
    kernels = [path for path, weight in kinds.items() if weight.kind in ("convolution", "dense", "recurrent")]
    sizes = {path: math.prod(variables[path].shape) for path in kernels}
    usual, whole = set(default_paths(model)), sum(sizes.values())
    if whole > _MOST or sum(size for path, size in sizes.items() if path not in usual) < _SHARE * whole:
        return document
    everywhere = joined(document, {"select": {"paths": kernels}})
    before, after = (estimates_of(asked) for asked in (document, everywhere))
    if not (before.is_possible(_KNOBS) and after.is_possible(_KNOBS)):
        return document
    takes = [
        size_of(layout) * max(layout.interval_cycles, 1)
        for layout in (made.best_layout(_KNOBS) for made in (before, after))
    ]
    return everywhere if takes[1] < _LESS * takes[0] else document
