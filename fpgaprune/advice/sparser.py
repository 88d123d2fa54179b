"""Sets the smallest kernels of every layer to zero; the network must then be fine-tuned and measured again."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from fpgaprune.advice.flow_file import OwnFlow
from fpgaprune.advice.retype import Weight, retyped
from fpgaprune.design import Design, LayerSpec, Pooling
from fpgaprune.layout import Edit, products, with_layers

SPARSITIES = (0.5, 0.75, 0.9, 0.95)


def sparser(design: Design, trained: Design | None = None, flow: OwnFlow | None = None) -> Iterator[Edit]:
    """Yield the design with the smallest kernels and Dense weights of every layer at zero, from mild to strong.

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
        weights: dict[str, dict[str, Weight]] = {}
        for layer in products(design):
            raw = layer.weights["weight"]
            kept = max(round((1 - sparsity) * counts.get(layer.name, _count(raw))), 1)
            if kept < np.count_nonzero(_sizes(raw)):
                weights[layer.name] = {"weight": (_pruned(raw, kept), layer.types["weight"])}
        if weights:
            yield Edit(("sparsity",), settings, retyped(design, weights), keeps_function=False)


def _sizes(raw: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the sum of magnitudes of each kernel `W[..., i, o]`, (C_in, C_out)."""
    sizes: NDArray[np.int64] = np.abs(raw).sum(axis=tuple(range(raw.ndim - 2)))
    return sizes


def _count(raw: NDArray[np.int64]) -> int:
    return int(_sizes(raw).size)


def _pruned(raw: NDArray[np.int64], kept: int) -> NDArray[np.int64]:
    sizes = _sizes(raw)
    largest = np.argsort(sizes, axis=None, kind="stable")[::-1][:kept]
    mask = np.zeros(sizes.size, np.bool_)
    mask[largest] = True
    return np.where(mask.reshape(sizes.shape), raw, 0)


def global_average(design: Design) -> tuple[Edit, str] | None:
    """Replace each average pooling over a whole map by a global one; also return Python that does so in the model.

    None if there is no such pooling.
    """
    found = [layer for layer in design.layers if _is_whole_average(layer, design)]
    if not found:
        return None
    names = {layer.name for layer in found}
    layers = [replace(x, operation=Pooling(None, largest=False)) if x.name in names else x for x in design.layers]
    averages = ", ".join(
        f"{layer.name!r}: keras.layers.GlobalAveragePooling{layer.kind[-2:]}(keepdims=True, name={layer.name!r})"
        for layer in found
    )
    lines = (
        f"averages = {{{averages}}}",
        "copy = lambda layer: averages.get(layer.name) or type(layer).from_config(layer.get_config())",
        "changed = keras.models.clone_model(model, clone_function=copy)",
        "changed.set_weights(model.get_weights())",
    )
    return Edit(("global pooling",), {}, with_layers(design, layers)), "\n".join(lines)


def _is_whole_average(layer: LayerSpec, design: Design) -> bool:
    pool = layer.operation
    if not isinstance(pool, Pooling) or pool.window is None or pool.largest:
        return False
    source = design[layer.inputs[0]].output_shape[:-1] if layer.inputs else ()
    whole = math.prod(layer.output_shape[:-1]) == 1 and math.prod(source) > 1
    return whole and math.prod(source) == pool.window.taps
