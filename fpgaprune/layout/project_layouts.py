"""Other layouts of an hls4ml project: strategy and reuse factor, of the whole network or layer by layer, and io type.

The network computes the same bits in each of them, unless an accumulator rounds or saturates: the order of additions
counts there.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from fpgaprune.backends import BACKENDS
from fpgaprune.design import Convolution, Copy, Design, LayerSpec, Operation, Pad, legal_reuse_factors, product_size
from fpgaprune.layout.edit import Edit, with_layers
from fpgaprune.values import FixedType

_LARGEST = 16384
# `resource_unrolled` saves the multipliers of zero weights; with fewer zeros than this it is not priced.
_ZEROS = 0.25
# From the cycles of one balanced layout to those of the next. Legal reuse factors lie as close: with steps of 2 the
# demo's network with 35 % fewer filters takes 3,517 cycles on an xc7z020, with these 2,917.
_STEP = math.sqrt(2)

_Multipliers = tuple[str, int]


def strategies(design: Design) -> tuple[str, ...]:
    """Return the strategies that the design's backend has templates for."""
    backend = BACKENDS.get(design.backend)
    return ("latency",) if backend is None else backend.strategies


def priced_strategies(design: Design) -> tuple[str, ...]:
    """Return the strategies to price; the estimator has no model of its own for `distributed_arithmetic`."""
    weights = [layer.weights["weight"] for layer in products(design)]
    zeros = sum(raw.size - np.count_nonzero(raw) for raw in weights)
    pruned = zeros > _ZEROS * sum(raw.size for raw in weights)
    unrolled = ("resource_unrolled",) if pruned else ()
    return tuple(name for name in ("latency", "resource", *unrolled) if weights and name in strategies(design))


def ladders(design: Design) -> Iterator[Iterator[Edit]]:
    """Yield groups of layouts of `design` to be estimated; each group goes from fast and large to slow and small."""
    for strategy in priced_strategies(design):
        yield uniform_layouts(design, strategy)
        yield balanced_layouts(design, strategy)


def every_layout(design: Design) -> Iterator[tuple[str, Edit]]:
    """Yield name and change of every layout of `design` as an hls4ml project, in both io types."""
    other = other_io_type(design)
    for start in (None, other) if other is not None else (None,):
        base = design if start is None else start.design
        for number, ladder in enumerate(ladders(base)):
            for rung, edit in enumerate(ladder):
                yield f"{base.io_type} {number} {rung}", edit if start is None else start.then(edit)


def products(design: Design) -> list[LayerSpec]:
    """Return the layers that multiply by weights: only they have a layout."""
    return [layer for layer in design.layers if layer.strategy is not None and "weight" in layer.weights]


def uniform_layouts(design: Design, strategy: str) -> Iterator[Edit]:
    """Yield the whole network in `strategy` at reuse factors 1, 2, 4, ...; a layer takes the next smaller legal one.

    Empty if a layer cannot have the strategy.
    """
    reuse = 1
    while reuse <= _most_useful(design):
        asked = {layer.name: reuse for layer in products(design)}
        edit = _relaid(design, strategy, reuse, asked)
        if edit is not None:
            yield edit
        reuse *= 2


def balanced_layouts(design: Design, strategy: str) -> Iterator[Edit]:
    """Yield a reuse factor for each layer, so that all layers of a stream work for about the same number of cycles.

    A layer with few pixels may take many cycles for each, because the slowest layer alone decides the interval. The
    layouts go from fast and large to slow and small. There is none if all layers have the same number of pixels, and
    none for `latency`, whose multipliers hardly depend on the reuse factor.
    """
    pixels = {layer.name: math.prod(design[layer.inputs[0]].output_shape[:-1]) for layer in products(design)}
    if strategy == "latency" or design.io_type != "io_stream" or len(set(pixels.values())) < 2:
        return
    cycles = 2.0 * max(pixels.values())
    while cycles <= _most_useful(design) * max(pixels.values()):
        asked = {name: max(int(cycles) // count, 1) for name, count in pixels.items()}
        edit = _relaid(design, strategy, 1, asked)
        if edit is not None:
            yield replace(edit, knobs=(*edit.knobs[:-1], "reuse_factor of each layer"))
        cycles *= _STEP


def one_layer_layouts(design: Design, name: str, strategy: str) -> Iterator[Edit]:
    """Yield layer `name` alone in `strategy`, with growing reuse factors."""
    layer = design[name]
    last = (str(layer.strategy), layer.reuse_factor)
    reuse = 2
    while reuse <= math.prod(_size(layer)):
        layout = _possible(layer, design, strategy, reuse)
        if layout is not None and layout[0] == strategy and layout != last and layout[1] > 1:
            last = layout
            entry: dict[str, object] = {"strategy": strategy, "reuse_factor": layout[1]}
            changed = [
                replace(x, strategy=strategy, reuse_factor=layout[1]) if x is layer else x for x in design.layers
            ]
            yield Edit((f"reuse_factor of {name}",), {"hls": {"layers": {name: entry}}}, with_layers(design, changed))
        reuse *= 2


def _relaid(design: Design, strategy: str, reuse: int, asked: Mapping[str, int]) -> Edit | None:
    """Return `design` in `strategy`, each layer with the legal factor next below that `asked`; None if impossible."""
    layouts: dict[str, _Multipliers] = {}
    for layer in products(design):
        layout = _possible(layer, design, strategy, asked[layer.name])
        if layout is None:
            return None
        layouts[layer.name] = layout
    # If layers have different layouts now, the flow file names them, so each must be written again.
    mixed = len({(x.strategy, x.reuse_factor) for x in products(design) if not x.is_depthwise}) > 1
    entries: dict[str, dict[str, object]] = {}
    for layer in products(design):
        entry: dict[str, object] = {}
        if not _settled(layer, strategy):
            own, factor = layouts[layer.name]
            entry |= {"strategy": own} if mixed or own != strategy else {}
            entry |= {"reuse_factor": factor} if mixed or factor != reuse else {}
        if entry:
            entries[layer.name] = entry
    changed = [
        replace(x, strategy=layouts[x.name][0], reuse_factor=layouts[x.name][1]) if x.name in layouts else x
        for x in design.layers
    ]
    settings: dict[str, object] = {"target": {"strategy": strategy, "reuse_factor": reuse}}
    if entries:
        settings["hls"] = {"layers": entries}
    return Edit(_knobs(design, layouts), settings, with_layers(design, changed))


def _knobs(design: Design, layouts: Mapping[str, _Multipliers]) -> tuple[str, ...]:
    before = {layer.name: (layer.strategy, layer.reuse_factor) for layer in products(design)}
    changed = [(before[name], layouts[name]) for name in layouts]
    strategy = ("strategy",) if any(old[0] != new[0] for old, new in changed) else ()
    reuse = ("reuse_factor",) if any(old[1] != new[1] for old, new in changed) else ()
    return (*strategy, *reuse)


def _possible(layer: LayerSpec, design: Design, strategy: str, reuse: int) -> _Multipliers | None:
    """Return the legal layout of `layer` nearest to the wanted one, if possible no slower; None if there is none.

    The rules are those of `fpgaprune.lowering.layout`, which would refuse another layout.
    """
    if _settled(layer, strategy):
        return ("latency", 1)
    parallel = design.io_type == "io_parallel"
    if parallel and strategy == "resource_unrolled" and layer.weights["weight"].ndim > 2:
        return None
    if parallel and strategy == "resource" and layer.is_depthwise:
        return None
    if strategy == "latency":
        return ("latency", reuse)
    legal = legal_reuse_factors(*_size(layer), strategy)
    if not legal:
        return ("latency", 1)
    return (strategy, max((factor for factor in legal if factor <= reuse), default=legal[0]))


def _settled(layer: LayerSpec, strategy: str) -> bool:
    """Return whether the layer has `latency` with reuse factor 1 in a network of this strategy, whatever is asked."""
    return layer.is_depthwise and strategy in ("resource_unrolled", "distributed_arithmetic")


def _size(layer: LayerSpec) -> tuple[int, int]:
    return product_size(layer.weights["weight"].shape, layer.is_depthwise)


def _most_useful(design: Design) -> int:
    """Return the largest reuse factor to try: a larger one changes nothing or takes too long."""
    return min(max((math.prod(_size(layer)) for layer in products(design)), default=1), _LARGEST)


def other_io_type(design: Design) -> Edit | None:
    """Return `design` in the other io type, if maybe smaller: a stream for maps, parallel for vectors; else None."""
    has_maps = any(math.prod(layer.output_shape[:-1]) > 1 for layer in design.layers)
    if has_maps == (design.io_type == "io_stream"):
        return None
    changed = streamed(design) if has_maps else with_layers(replace(design, io_type="io_parallel"), design.layers)
    return Edit(("io_type",), {"target": {"io_type": changed.io_type}}, changed)


def streamed(design: Design) -> Design:
    """Return `design` in io_stream, with one pixel in each transfer.

    As in hls4ml, separate layers pad zeros and copy the data that two layers read.
    """
    if design.io_type == "io_stream":
        return design
    readers = Counter(source for layer in design.layers for source in layer.inputs)
    read_as: dict[str, str] = {}
    layers: list[LayerSpec] = []
    for layer in design.layers:
        new = replace(layer, inputs=tuple(read_as.get(source, source) for source in layer.inputs))
        padding = _padding(new, design[layer.inputs[0]]) if layer.inputs else None
        if padding is not None:
            layers.append(padding)
            new = replace(new, inputs=(padding.name,), operation=_unpadded(new))
        layers.append(new)
        if readers[layer.name] > 1:
            name = read_as[layer.name] = f"clone_{layer.name}"
            types = _handed_on(layer)
            layers.append(LayerSpec(name, (layer.name,), layer.output_shape, types, operation=Copy()))
    return with_layers(replace(design, io_type="io_stream"), layers)


def _padding(layer: LayerSpec, source: LayerSpec) -> LayerSpec | None:
    """Return a layer that pads `source` with the zeros that a convolution reads; None if it reads none."""
    convolution = layer.operation
    if not isinstance(convolution, Convolution) or not any(convolution.window.pad):
        return None
    top, bottom, left, right = convolution.window.pad
    *sides, channels = source.output_shape
    more = (top + bottom, left + right)[-len(sides) :]
    grown = [size + extra for size, extra in zip(sides, more, strict=True)]
    pad, name = Pad(convolution.window.pad), f"zp_{layer.name}"
    return LayerSpec(name, layer.inputs, (*grown, channels), _handed_on(source), operation=pad)


def _unpadded(layer: LayerSpec) -> Operation:
    """Return the convolution of `layer` over a padded map."""
    convolution = layer.operation
    if not isinstance(convolution, Convolution):
        return convolution
    return replace(convolution, window=replace(convolution.window, pad=(0, 0, 0, 0)))


def _handed_on(layer: LayerSpec) -> dict[str, FixedType]:
    """Return the types of a layer that only passes on the output of `layer`."""
    return {role: kind for role, kind in layer.types.items() if role == "result"}
