"""Where the tables of activations end, and what that costs beyond."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpgaprune.errors import HlsError
from fpgaprune.network import producer

# hls4ml's tables end at 8; these functions go on. Sigmoid, tanh, elu and selu are level there.
_END = 8.0
_GOES_ON: Mapping[str, Callable[[float], float]] = {
    "softplus": lambda x: float(np.logaddexp(0.0, x)),
    "softsign": lambda x: abs(x) / (abs(x) + 1.0),
}
# One step of a table: what it is off within its ends, too.
_STEP = 1 / 64


def require_within_tables(folded: Any, observed: Mapping[str, NDArray[Any]]) -> None:
    """No activation reads values for which the end of its table stands in place of its function.

    Args:
        folded: what `prepare.fold` returned.
        observed: layer name to what it gave for some data; layers that are not in it are passed over.

    Raises:
        HlsError: one does; the message says how far it is off and what to do.
    """
    for layer in folded.layers:
        name = getattr(getattr(layer, "activation", None), "__name__", "")
        if name not in _GOES_ON or isinstance(layer.input, list):
            continue
        values = observed.get(producer(layer.input).name)
        if values is None or not values.size:
            continue
        worst = float(values.max()) if name == "softplus" else float(np.abs(values).max())
        function = _GOES_ON[name]
        off = function(worst) - function(_END) if worst > _END else 0.0
        if off > _STEP:
            raise HlsError(
                f"layer {layer.name!r} is a {name} that reads numbers up to {worst:.4g}; hls4ml's table of it ends at "
                f"{_END:g}, so that the result would be off by {off:.2g}: scale what comes before it, or use relu"
            )
