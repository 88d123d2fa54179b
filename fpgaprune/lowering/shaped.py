"""Shapes the layers of a design as its hls4ml project has them: copies of streams, padding before windows, reshapes.

In `io_stream` a value goes to one reader, so that a layer with several gets a `Copy` behind it; a convolution reads
padded windows from a `Pad` before it; and a `Reshape` that does not only flatten makes the packets of its stream anew.
In `io_parallel` a `Reshape` costs nothing, and one that gives an output is left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import fpgaprune.design as op
from fpgaprune.design import LayerSpec
from fpgaprune.lowering.layer_names import free_name
from fpgaprune.target import Target

# Backends of hls4ml whose templates for streams read padded windows, and those that repack no stream.
_PAD_THEMSELVES = ("oneAPI", "Libero")
_NEVER_REPACK = ("oneAPI", "Libero")


def shaped(
    layers: Sequence[LayerSpec], outputs: Sequence[str], names: Mapping[str, str], target: Target
) -> tuple[list[LayerSpec], list[str]]:
    """Return a project's layers for `target`, with reshapes and repackings, and the names of the output layers.

    Args:
        layers: in the order of execution, the inputs first.
        outputs: the names of the layers that make the outputs.
        names: layer name to its name in the project.
        target: its io type and backend say what changes.
    """
    graph = _Graph(list(layers), list(outputs), dict(names))
    if target.io_type == "io_parallel":
        _leave_out_reshapes(graph)
        return graph.layers, graph.outputs
    if target.backend not in _NEVER_REPACK:
        _repack(graph)
    _copy(graph)
    if target.backend not in _PAD_THEMSELVES:
        for axes in (2, 3):
            _pad(graph, axes)
    return graph.layers, graph.outputs


@dataclass
class _Graph:
    layers: list[LayerSpec]
    outputs: list[str]
    names: dict[str, str]

    def readers(self, name: str) -> list[LayerSpec]:
        """Return the layers that read layer `name`, once for each time."""
        return [layer for layer in self.layers for source in layer.inputs if source == name]

    def place(self, name: str) -> int:
        """Return where layer `name` stands."""
        return next(place for place, layer in enumerate(self.layers) if layer.name == name)

    def redirect(self, old: str, new: str) -> None:
        """Let layers and outputs read `new` in place of `old`."""
        for place, layer in enumerate(self.layers):
            if old in layer.inputs:
                inputs = tuple(new if source == old else source for source in layer.inputs)
                self.layers[place] = replace(layer, inputs=inputs)
        self.outputs = [new if name == old else name for name in self.outputs]

    def added(self, prefix: str, beside: LayerSpec, **fields: Any) -> LayerSpec:
        """Return a layer that is added beside another; its name follows from that one's."""
        project_name = f"{prefix}{beside.project_name}"
        name = free_name(project_name, self.names)
        return replace(beside, name=name, project_name=project_name, reuse_factor=1, **fields)


def _leave_out_reshapes(graph: _Graph) -> None:
    """Make no reshape an output, and leave it out if nothing reads it; its shape stands in the model alone."""
    for layer in reversed(list(graph.layers)):
        if not isinstance(layer.operation, op.Reshape):
            continue
        (source,) = layer.inputs
        graph.outputs = [source if name == layer.name else name for name in graph.outputs]
        if not graph.readers(layer.name):
            graph.layers.pop(graph.place(layer.name))


def _repack(graph: _Graph) -> None:
    for place, layer in enumerate(graph.layers):
        if layer.operation != op.Reshape() or (len(layer.output_shape) == 1 and layer.name not in graph.outputs):
            continue
        new = graph.added("repack_", layer, operation=op.Reshape(repacks=True))
        graph.layers[place] = new
        graph.redirect(layer.name, new.name)


def _copy(graph: _Graph) -> None:
    for layer in list(graph.layers):
        uses = len(graph.readers(layer.name)) + (layer.name in graph.outputs)
        if uses < 2:
            continue
        copy = graph.added(
            "clone_",
            layer,
            operation=op.Copy(),
            inputs=(layer.name,),
            types={"result": layer.types["result"]},
            weights={},
            sources={},
            strategy=None,
        )
        graph.redirect(layer.name, copy.name)
        graph.layers.insert(graph.place(layer.name) + 1, copy)


def _pad(graph: _Graph, axes: int) -> None:
    """Put a layer of zeros before each convolution of inputs with so many axes that pads its windows."""
    for layer in list(graph.layers):
        operation = layer.operation
        if not isinstance(operation, op.Convolution) or not any(operation.window.pad):
            continue
        (name,) = layer.inputs
        source = graph.layers[graph.place(name)]
        if len(source.output_shape) != axes:
            continue
        sides = operation.window.pad
        top, bottom, left, right = sides
        *high, wide, channels = source.output_shape
        pad = graph.added(
            f"zp{axes - 1}d_",
            layer,
            operation=op.Pad(sides),
            inputs=(name,),
            output_shape=(*(size + top + bottom for size in high), left + wide + right, channels),
            types={"result": source.types["result"]},
            weights={},
            sources={},
            strategy=None,
        )
        graph.layers[graph.place(layer.name)] = replace(
            layer, inputs=(pad.name,), operation=replace(operation, window=replace(operation.window, pad=(0, 0, 0, 0)))
        )
        graph.layers.insert(graph.place(name) + 1, pad)
