"""Sets the smallest kernels of every layer to zero; the network must then be fine-tuned and measured again."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from fpgaprune.advice.flow_file import OwnFlow
from fpgaprune.advice.retype import Weight, retyped
from fpgaprune.design import Design
from fpgaprune.layout import Edit, products

SPARSITIES = (0.5, 0.75, 0.9, 0.95)


def sparser(design: Design, trained: Design | None = None, flow: OwnFlow | None = None) -> Iterator[Edit]:
    """The design with the smallest kernels and Dense weights of every layer at zero, from mild to strong.

    Args:
        design: the design now.
        trained: the same network before pruning; the fractions count its kernels. The default is `design`.
        flow: the flow that made the design, which may choose other kernels; unknown unless given.
    """
    flow = flow or OwnFlow()
    if not flow.can_lock:
        return
    counts = {layer.name: _count(layer.weights["weight"]) for layer in products(trained or design)}
    for sparsity in SPARSITIES:
        settings = flow.sparser(sparsity)
        if settings is None:
            continue
        weights: dict[str, Weight] = {}
        for layer in products(design):
            raw = layer.weights["weight"]
            kept = max(round((1 - sparsity) * counts.get(layer.name, _count(raw))), 1)
            if kept < _live(raw):
                weights[layer.name] = (_pruned(raw, kept), layer.types["weight"])
        if weights:
            yield Edit(("sparsity",), settings, retyped(design, weights), keeps_function=False)


def _sizes(raw: NDArray[np.int64]) -> NDArray[np.int64]:
    """The sum of magnitudes of each kernel `W[..., i, o]`, (C_in, C_out)."""
    sizes: NDArray[np.int64] = np.abs(raw).sum(axis=tuple(range(raw.ndim - 2)))
    return sizes


def _count(raw: NDArray[np.int64]) -> int:
    return int(_sizes(raw).size)


def _live(raw: NDArray[np.int64]) -> int:
    return int(np.count_nonzero(_sizes(raw)))


def _pruned(raw: NDArray[np.int64], kept: int) -> NDArray[np.int64]:
    sizes = _sizes(raw)
    largest = np.argsort(sizes, axis=None, kind="stable")[::-1][:kept]
    mask = np.zeros(sizes.size, np.bool_)
    mask[largest] = True
    return np.where(mask.reshape(sizes.shape), raw, 0)
