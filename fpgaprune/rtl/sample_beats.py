"""How many beats of a sample pass through a layer, with the border that it puts around its image."""

from __future__ import annotations

import math

from fpgaprune.design import Convolution, Design, LayerSpec, Pad, Pooling


def pads(layer: LayerSpec) -> bool:
    """Whether a layer puts values around its image."""
    return any(_sides(layer))


def _sides(layer: LayerSpec) -> tuple[int, int, int, int]:
    """Rows and columns that a layer puts around its image: top, bottom, left, right."""
    operation = layer.operation
    if isinstance(operation, Pad):
        return operation.sides
    window = operation.window if isinstance(operation, Convolution | Pooling) else None
    return window.pad if window is not None else (0, 0, 0, 0)


def padded_sides(design: Design, layer: LayerSpec) -> tuple[int, int]:
    """Rows and columns of the image that a layer reads, with the border that it puts around it."""
    *positions, _ = design[layer.inputs[0]].output_shape
    rows, columns = (1, 1, *positions)[-2:]
    top, bottom, left, right = _sides(layer)
    return rows + top + bottom, columns + left + right


def most_beats(design: Design, layer: LayerSpec) -> int:
    """The most beats of a sample that pass through a layer one after another."""
    shapes = [layer.output_shape, *(design[name].output_shape for name in layer.inputs)]
    # What a layer of zeros hands on has its border already.
    top, bottom, left, right = (0, 0, 0, 0) if isinstance(layer.operation, Pad) else _sides(layer)
    found = 1
    for *positions, _ in shapes:
        if len(positions) == 2:
            positions = [positions[0] + top + bottom, positions[1] + left + right]
        elif positions:
            positions = [positions[0] + left + right]
        found = max(found, math.prod(positions))
    return found
