"""`other_io_type`: a design in the other io type, which computes the same."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace

from fpgaprune.design import Convolution, Copy, Design, LayerSpec, Operation, Pad
from fpgaprune.layout.edit import Edit, with_layers
from fpgaprune.values import FixedType


def other_io_type(design: Design) -> Edit | None:
    """`design` in the other io type, if that may be smaller: a stream for maps, parallel for vectors; else None."""
    has_maps = any(math.prod(layer.output_shape[:-1]) > 1 for layer in design.layers)
    if has_maps == (design.io_type == "io_stream"):
        return None
    changed = streamed(design) if has_maps else with_layers(replace(design, io_type="io_parallel"), design.layers)
    return Edit(("io_type",), {"target": {"io_type": changed.io_type}}, changed)


def streamed(design: Design) -> Design:
    """`design` in io_stream, with one pixel in each transfer.

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
    """A layer that pads `source` with the zeros that a convolution reads; None if it reads none."""
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
    """The convolution of `layer` over a padded map."""
    convolution = layer.operation
    if not isinstance(convolution, Convolution):
        return convolution
    return replace(convolution, window=replace(convolution.window, pad=(0, 0, 0, 0)))


def _handed_on(layer: LayerSpec) -> dict[str, FixedType]:
    """The types of a layer that only passes on the output of `layer`."""
    return {role: kind for role, kind in layer.types.items() if role == "result"}
