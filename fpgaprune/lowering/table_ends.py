"""Checks that no activation reads values beyond the end of its table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from fpgaprune.design import CENTRED
from fpgaprune.errors import HlsError
from fpgaprune.lowering.table_sizes import looked_up
from fpgaprune.network import producer
from fpgaprune.values import Array

if TYPE_CHECKING:
    import keras

# One step of a table, which is also its error between its ends.
_STEP = 1 / 64


def require_within_tables(folded: keras.Model, observed: Mapping[str, Array]) -> None:
    """No activation reads values beyond its table, where the template returns the last entry.

    Args:
        folded: the model from `prepare.fold`.
        observed: layer name to the layer's output for some data; other layers are skipped.

    Raises:
        HlsError: an activation does; the message gives the error and says what to do.
    """
    for layer in folded.layers:
        function = looked_up(layer)
        if function is None or function.table is None or function.values is None:
            continue
        values = observed.get(producer(layer.input).name)
        if values is None or not values.size:
            continue
        reach = float(function.table.reach)
        # Above the upper end of other tables, the template computes the function itself.
        ends = (-reach, reach if function.table.form == CENTRED else np.inf)
        seen = np.array([values.min(), values.max()], np.float64)
        off = np.abs(function.values(seen) - function.values(np.clip(seen, *ends)))
        if off.max() > _STEP:
            raise HlsError(
                f"layer {layer.name!r} is a {function.name} that reads numbers up to {abs(seen[off.argmax()]):.4g}; "
                f"its table ends at {reach:g}, so that the result would be off by {off.max():.2g}: scale what comes "
                "before it, or use relu"
            )
