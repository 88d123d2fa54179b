"""Pairs the layers of two designs that compute the same, independent of their names."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from fpgaprune.design import Design, LayerSpec, LookUp, Map, Merge, Reshape

# The order of their inputs does not matter: a + b = b + a, in fixed point too.
_COMMUTATIVE = frozenset({"add", "multiply", "maximum", "minimum", "average"})


def without_idle(design: Design) -> Design:
    """`design` without every `Reshape` whose output has the shape of its input, because it changes no number."""
    layers: list[LayerSpec] = []
    hands_on: dict[str, str] = {}
    shapes: dict[str, tuple[int, ...]] = {}
    for layer in design.layers:
        inputs = tuple(hands_on.get(name, name) for name in layer.inputs)
        if layer.operation == Reshape() and shapes[inputs[0]] == layer.output_shape:
            hands_on[layer.name] = inputs[0]
            continue
        shapes[layer.name] = layer.output_shape
        layers.append(replace(layer, inputs=inputs))
    outputs = tuple(hands_on.get(name, name) for name in design.outputs)
    return replace(design, layers=tuple(layers), outputs=outputs)


def pair_layers(design: Design, like: Design) -> dict[str, str]:
    """Name in `design` to name in `like`, for every layer that has a counterpart.

    A counterpart has an operation of the same class and reads the counterparts of the layer's inputs. Where several
    fit, the same output shape decides, then the nearest weights (of the layer or of one below it), then the order.

    Args:
        design: a design without idle layers.
        like: another design.
    """
    pairs: dict[str, str] = {}
    free = {layer.name: layer for layer in like.layers}
    for layer in design.layers:
        sources = [pairs.get(name) for name in layer.inputs]
        fitting = [one for one in free.values() if _class(one) is _class(layer) and reads_the_same(one, sources)]
        if fitting:
            mine = _values(design, layer)
            chosen = min(
                fitting,
                key=lambda one: (one.output_shape != layer.output_shape, _distance(mine, _values(like, one))),
            )
            pairs[layer.name] = chosen.name
            del free[chosen.name]
    return pairs


def reads_the_same(layer: LayerSpec, sources: list[str | None]) -> bool:
    """Whether `layer` reads `sources`, in their order if that matters."""
    if isinstance(layer.operation, Merge) and layer.operation.function in _COMMUTATIVE:
        return sorted(layer.inputs) == sorted(str(name) for name in sources)
    return list(layer.inputs) == sources


def _class(layer: LayerSpec) -> type:
    """The class of the layer's operation; a function is one whether it is computed or looked up."""
    return Map if isinstance(layer.operation, LookUp) else type(layer.operation)


def _distance(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    return float(np.abs(a - b).max()) if a.shape == b.shape and a.size else 0.0


def _values(design: Design, layer: LayerSpec) -> NDArray[np.float64]:
    """The weights of `layer`, or of the first layer after it that has weights; empty if there is none."""
    below = {layer.name}
    for other in (layer, *design.layers):
        if other is not layer and not below & set(other.inputs):
            continue
        if "weight" in other.weights:
            return other.types["weight"].to_float(other.weights["weight"]).ravel()
        below.add(other.name)
    return np.zeros(0)
