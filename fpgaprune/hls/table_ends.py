"""Where the tables of activations end, and what that costs beyond."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpgaprune.design.functions import CENTRED, FUNCTIONS
from fpgaprune.errors import HlsError
from fpgaprune.network import producer

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
        function = FUNCTIONS.get(name)
        if function is None or function.table is None or function.values is None or isinstance(layer.input, list):
            continue
        values = observed.get(producer(layer.input).name)
        if values is None or not values.size:
            continue
        reach = float(function.table.reach)
        # Above the other tables stands the function itself.
        ends = (-reach, reach if function.table.form == CENTRED else np.inf)
        seen = np.array([values.min(), values.max()], np.float64)
        off = np.abs(function.values(seen) - function.values(np.clip(seen, *ends)))
        if off.max() > _STEP:
            raise HlsError(
                f"layer {layer.name!r} is a {name} that reads numbers up to {abs(seen[off.argmax()]):.4g}; its table "
                f"ends at {reach:g}, so that the result would be off by {off.max():.2g}: scale what comes before it, "
                "or use relu"
            )
