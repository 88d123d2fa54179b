"""`guard` warns of masks that damage a network, before anything is trained.

For example, no training can repair a first convolution that keeps one of its 64 filters.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import numpy as np

from fpgaprune.network import Alive, Weight, alive_channels, groups_of, network_of, weights_of
from fpgaprune.select.pools import pool_of
from fpgaprune.values import Mask, MaskSet

if TYPE_CHECKING:
    import keras

# A layer with a smaller share of its channels alive is a bottleneck.
FEW_CHANNELS = 1 / 8
# A layer was cut unevenly if its free share is below UNEVEN times that of the network, and fewer than UNEVEN_CHANNELS
# of its channels are alive.
UNEVEN, UNEVEN_CHANNELS = 1 / 4, 1 / 2


@dataclass(frozen=True)
class SelectionWarning:
    """Warning about one layer: its masks leave too few channels, or lock less than was asked for.

    Attributes:
        layer: path of the layer, as in weight paths.
        rule: `few_channels`, `dead_output`, `uneven` or `short`.
        kept_channels: number of output channels that are alive: they depend on the model's input, and its output
            depends on them. If nothing in the model is alive, the number of those with a free kernel. None if unknown.
        total_channels: number of output channels of the layer; None if unknown.
        text: what happened, and what to do.
    """

    layer: str
    rule: str
    kept_channels: int | None
    total_channels: int | None
    text: str

    def to_json(self) -> dict[str, object]:
        """Return the warning as JSON data."""
        return asdict(self)


def guard(
    model: keras.Model,
    masks: MaskSet,
    *,
    sparsity: float | None = None,
    scope: str = "network",
    normalize: str = "none",
) -> tuple[SelectionWarning, ...]:
    """Return the warnings about the layers, in the model's order; none for a sound selection.

    There are four rules; a layer gets the warning of the first that holds:

    - `dead_output`: an output channel of the model no longer depends on its input.
    - `few_channels`: fewer than an eighth of a layer's channels are alive.
    - `uneven`: the free share of a layer's elements is less than a quarter of the free share of all masks of its kind
      (convolutions, or the others), and fewer than half of its channels are alive.
    - `short`: with `scope="layer"`, less than `sparsity` of a layer is locked, because the rest must stay free.

    Args:
        model: a Keras model; unless it is functional or Sequential, only shares of elements are known.
        masks: weight path to bool array, True = free, False = locked.
        sparsity: the sparsity that was asked for in each layer, or None.
        scope: scope of the selection, for the advice.
        normalize: normalization of the selection, for the advice.

    Raises:
        MaskError: a mask does not fit the model.
    """
    masks = masks.fitted(model)
    alive = alive_channels(model, masks) or {}
    advice, weights = _advice(masks, scope, normalize), weights_of(model)
    found: dict[str, SelectionWarning] = {}
    outputs = _output_layers(model)
    # If nothing is alive, the free kernels of each layer show where the path ends.
    left = alive if any(flags.any() for flags in alive.values()) else _filters_left(model, masks, alive)
    for layer, flags in left.items():
        living, width = int(flags.sum()), len(flags)
        if layer in outputs and not alive[layer].all():
            dead = ", ".join(map(str, np.flatnonzero(~alive[layer])[:6].tolist()))
            text = f"output {dead} of the model, made by {layer!r}, no longer depends on its input; {advice(layer)}"
            found[layer] = SelectionWarning(layer, "dead_output", int(alive[layer].sum()), width, text)
        elif living < math.ceil(FEW_CHANNELS * width):
            text = (
                f"{living} of {width} channels of {layer!r} {'is' if living == 1 else 'are'} left, fewer than an "
                f"eighth, and all that follows has to pass through so few; {advice(layer)}"
            )
            found[layer] = SelectionWarning(layer, "few_channels", living, width, text)
    for path, (layer, free, usual) in _shares(model, masks).items():
        kept, total = (int(alive[layer].sum()), len(alive[layer])) if layer in alive else (None, None)
        thin = kept is None or total is None or kept < UNEVEN_CHANNELS * total
        if layer in found:
            continue
        if free < UNEVEN * usual and thin:
            text = (
                f"{free:.1%} of {path!r} is free where {usual:.1%} is free on average: the cut falls unevenly; "
                f"{advice(layer)}"
            )
            found[layer] = SelectionWarning(layer, "uneven", kept, total, text)
        elif scope == "layer" and sparsity is not None and _is_short(weights[path], masks[path], sparsity):
            text = (
                f"{1 - free:.1%} of {path!r} is locked where {sparsity:.1%} was asked: what must stay free leaves no "
                "more; lower min_free or min_free_channels, or ask for less there"
            )
            found[layer] = SelectionWarning(layer, "short", kept, total, text)
    order = list(dict.fromkeys([*alive, *found]))
    return tuple(found[layer] for layer in order if layer in found)


def _advice(masks: MaskSet, scope: str, normalize: str) -> Callable[[str], str]:
    """Return a function that names the settings to change for a layer; it leaves out settings that already apply."""
    keys = [] if normalize == "lamp" or scope == "layer" else ['normalize = "lamp"', 'scope = "layer"']

    def text(layer: str) -> str:
        own = [f'protect = ["{layer}/*"]'] if any(path.startswith(f"{layer}/") for path in masks) else []
        turns = [*keys, *own, "min_free_channels = 0.125"]
        if len(turns) == 1:
            return f"set {turns[0]}, or lower sparsity"
        return f"set {', '.join(turns[:-1])} or {turns[-1]}, or lower sparsity"

    return text


def _filters_left(model: keras.Model, masks: MaskSet, alive: Alive) -> Alive:
    """Return for each layer of `alive` the output channels that have a free element in the layer's kernel."""
    found = {layer: np.ones(len(flags), dtype=bool) for layer, flags in alive.items()}
    for path, weight in weights_of(model).items():
        if path in masks and weight.layer_path in found and weight.kind != "other":
            axes = [axis % weight.ndim for axis in weight.axes.outputs]
            rest = tuple(axis for axis in range(weight.ndim) if axis not in axes)
            found[weight.layer_path] = masks[path].any(axis=rest).ravel()
    return found


def _output_layers(model: keras.Model) -> set[str]:
    """Return the layers whose channels are outputs of the model and are not added to those of other layers."""
    network = network_of(model)
    if network is None:
        return set()
    channels = groups_of(network)
    groups, makers = np.unique(
        np.concatenate([np.unique(ids) for ids in channels.made.values()]) if channels.made else np.empty(0, np.intp),
        return_counts=True,
    )
    shown = np.concatenate([channels.tensors[tensor] for tensor in network.outputs])
    alone = np.intersect1d(groups[makers == 1], shown)
    return {layer for layer, ids in channels.made.items() if np.isin(ids, alone).all()}


def _shares(model: keras.Model, masks: MaskSet) -> dict[str, tuple[str, float, float]]:
    """Return for each kernel that is not depthwise its layer, its free share, and the free share of its whole pool."""
    weights = weights_of(model)
    network = network_of(model)
    layers = {} if network is None else {id(step.layer): step.path for step in network.steps}
    pools: dict[str, list[str]] = {}
    for path in masks:
        if weights[path].kind not in ("other", "depthwise"):
            pools.setdefault(pool_of(weights[path]), []).append(path)
    found = {}
    for paths in pools.values():
        usual = sum(int(masks[path].sum()) for path in paths) / max(sum(masks[path].size for path in paths), 1)
        for path in paths:
            layer = layers.get(id(weights[path].layer), weights[path].layer_path)
            found[path] = (layer, float(masks[path].mean()) if masks[path].size else 1.0, usual)
    return found


def _is_short(weight: Weight, mask: Mask, sparsity: float) -> bool:
    # A count is rounded to whole units; the largest common unit is a filter.
    filters = math.prod(mask.shape[axis] for axis in weight.axes.outputs)
    return bool(1 - mask.mean() < sparsity - 1 / max(filters, 1))
