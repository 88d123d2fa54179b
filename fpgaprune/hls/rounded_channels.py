"""`RoundedChannels` in hls4ml: its layer for quantisers of HGQ's, `FixedPointQuantizer`. Importing this registers it."""

from __future__ import annotations

from typing import Any

import numpy as np
from hls4ml.converters.keras_v3._base import KerasV3LayerHandler
from numpy.typing import NDArray

from fpgaprune.design.operations import NOTHING
from fpgaprune.fixed import FixedType


class RoundedChannelsHandler(KerasV3LayerHandler):  # type: ignore[misc, unused-ignore]
    """What hls4ml's converter reads of a `RoundedChannels` layer."""

    handles = ("fpgaprune.quantise.channels.RoundedChannels",)

    def handle(self, layer: Any, in_tensors: Any, out_tensors: Any) -> dict[str, Any]:  # noqa: ARG002
        """Signs, widths and integer bits for every value of a sample, behind a batch axis of 1."""
        shape = tuple(in_tensors[0].shape[1:])
        parts = (np.asarray(part).astype(np.int16) for part in (layer.signed, layer.width, layer.integer))
        return {
            "class_name": "FixedPointQuantizer",
            "mask_kbi": tuple(np.broadcast_to(part, shape)[None] for part in parts),
            "SAT": layer.overflow,
            "RND": layer.rounding,
            "fusible": None,
            "overrides": {},
        }


def quantiser_words(node: Any) -> dict[str, list[Any]]:
    """`kinds` and `places` of an hls4ml `FixedPointQuantizer`, as `Quantise` has them."""
    signed, width, integer = (_rows(part, node) for part in node.mask_kbi)
    rows = np.stack([signed, width, integer], axis=-1)
    if (rows == rows[:1]).all():
        rows = rows[:1]
    kinds, places = np.unique(rows.reshape(-1, 3), axis=0, return_inverse=True)
    texts = [
        str(FixedType(int(w), int(i), bool(s), node.RND, node.SAT)) if w else NOTHING for s, w, i in kinds.tolist()
    ]
    return {"kinds": texts, "places": places.reshape(-1).tolist()}


def _rows(part: NDArray[Any], node: Any) -> NDArray[np.int64]:
    """(positions, channels)."""
    shape = tuple(node.get_output_variable().shape)
    return np.broadcast_to(part[0], shape).astype(np.int64).reshape(-1, shape[-1])
