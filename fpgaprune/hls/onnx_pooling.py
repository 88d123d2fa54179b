"""Corrects how hls4ml's ONNX front end reads pooling.

Measured on hls4ml 1.3.0: it wants channels last for every pooling, but reads the sizes of one-dimensional and of
global pooling as if channels were first. It also omits the padding of one-dimensional pooling, without which the layer
cannot be made.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from fpgaprune.hls.onnx_layout import GLOBAL_POOLS, to_first

_READ = frozenset({"MaxPool", "AveragePool", *GLOBAL_POOLS})


@contextlib.contextmanager
def sizes_channels_last() -> Iterator[None]:
    """Within the block, hls4ml's ONNX front end reads all sizes of pooling from the right axes."""
    from hls4ml.converters.onnx_to_hls import layer_handlers

    originals = {kind: layer_handlers[kind] for kind in _READ}

    def corrected(kind: str) -> Any:
        def parse(node: Any, names: Any, shapes: Any, graph: Any) -> Any:
            shape = list(shapes[0])
            wants_first = kind in GLOBAL_POOLS or len(shape) == 3
            given = [shape[axis] for axis in to_first(len(shape))] if wants_first else shape
            layer = originals[kind](node, names, [given, *shapes[1:]], graph)
            if len(shape) == 3 and kind not in GLOBAL_POOLS:
                layer["pad_left"], layer["pad_right"] = layer["pads"]
            return layer

        return parse

    layer_handlers.update({kind: corrected(kind) for kind in _READ})
    try:
        yield
    finally:
        layer_handlers.update(originals)
