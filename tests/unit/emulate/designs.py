"""Small designs made by hand, whose every output is known."""

from __future__ import annotations

from typing import Any

import numpy as np

from fpgaprune.backends import as_built
from fpgaprune.design import Design, LayerSpec
from fpgaprune.hls import layer_of
from fpgaprune.values import FixedType

EIGHT = FixedType(8, 4, True, "RND", "SAT")
WIDE = FixedType(20, 12)


def layer(name: str, kind: str, source: str | None, shape: tuple[int, ...], **more: Any) -> LayerSpec:
    """A layer whose result is `EIGHT` unless `types` says otherwise."""
    types = {"result": EIGHT, **more.pop("types", {})}
    inputs = more.pop("inputs", (source,) if source else ())
    return layer_of(name, kind, inputs, shape, types, **more)


def design(*layers: LayerSpec, io_type: str = "io_parallel", backend: str = "Vitis") -> Design:
    """The layers as a design; the last is its output."""
    return as_built(Design("net", layers, (layers[-1].name,), io_type, backend))


def mlp(strategy: str = "latency", accum: FixedType = WIDE) -> Design:
    """Two inputs, two outputs, then a ReLU."""
    dense = layer(
        "fc",
        "Dense",
        "x",
        (2,),
        types={"weight": EIGHT, "bias": EIGHT, "accum": accum},
        # 1.0, -0.5 / 2.0, 0.25 and a bias of 0.5, -1.0.
        weights={"weight": np.array([[16, -8], [32, 4]]), "bias": np.array([8, -16])},
        strategy=strategy,
    )
    relu = layer("relu", "Activation", "fc", (2,), attributes={"activation": "relu"})
    return design(layer("x", "Input", None, (2,)), dense, relu)
