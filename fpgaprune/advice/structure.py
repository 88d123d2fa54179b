"""`global_average`: a layer for global average pooling, which computes the same as one over a whole map."""

from __future__ import annotations

import math
from dataclasses import replace

from fpgaprune.design import Design, LayerSpec, Pooling
from fpgaprune.layout import Edit, with_layers


def global_average(design: Design) -> tuple[Edit, str] | None:
    """`design` with a global average pooling for each average pooling over a whole map, and Python that makes it so.

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
