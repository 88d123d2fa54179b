"""Finds the differences between two designs that would change the hardware; names of layers do not matter."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from fpgaprune.design import Design, LayerSpec
from fpgaprune.hls.paired_layers import pair_layers, reads_the_same, without_idle


@dataclass(frozen=True)
class DesignDifference:
    """One place where two designs differ.

    Attributes:
        layer: name in the first design, or in the second if the first has no such layer.
        what: `kind`, `inputs`, `output_shape`, `strategy`, `reuse_factor`, `outputs`, `types.ROLE`, `weights.ROLE`, or
            the name of a field of the operation.
        one: the value in the first design.
        other: the value in the second design.
        count: number of integers that differ, for weights; else None.
    """

    layer: str
    what: str
    one: str
    other: str
    count: int | None = None

    def __str__(self) -> str:
        amount = "" if self.count is None else f" in {self.count} places, first"
        return f"layer {self.layer!r}: {self.what} differs{amount}: {self.one} and {self.other}"


def design_differences(one: Design, other: Design) -> tuple[DesignDifference, ...]:
    """Every difference that would change the hardware; empty if both designs are one network in one layout.

    Layers are paired by their kind and their inputs. A `Reshape` that changes no shape is ignored.
    """
    one, other = without_idle(one), without_idle(other)
    pairs = pair_layers(other, one)
    back = {name: found for found, name in pairs.items()}
    found = []
    for layer in one.layers:
        if layer.name in back:
            found += list(_layer_differences(layer, other[back[layer.name]], pairs))
        else:
            found.append(DesignDifference(layer.name, "kind", _outline(layer), "no such layer"))
    found += [
        DesignDifference(layer.name, "kind", "no such layer", _outline(layer))
        for layer in other.layers
        if layer.name not in pairs
    ]
    outputs = tuple(pairs.get(name, name) for name in other.outputs)
    if one.outputs != outputs:
        found.append(DesignDifference(one.outputs[0], "outputs", str(one.outputs), str(outputs)))
    for what in ("io_type", "backend"):
        if getattr(one, what) != getattr(other, what):
            found.append(DesignDifference(one.name, what, str(getattr(one, what)), str(getattr(other, what))))
    return tuple(found)


def _layer_differences(one: LayerSpec, other: LayerSpec, pairs: Mapping[str, str]) -> Iterator[DesignDifference]:
    sources = [pairs.get(name) for name in other.inputs]
    if not reads_the_same(one, sources):
        yield DesignDifference(one.name, "inputs", str(one.inputs), str(tuple(sources)))
    for mine, its in ((_layout(one), _layout(other)), (_types(one), _types(other))):
        yield from _value_differences(one.name, mine, its)
    for role in sorted(one.weights.keys() | other.weights.keys()):
        yield from _weight_differences(one, other, role)
    yield from _value_differences(one.name, _fields(one), _fields(other))


def _value_differences(layer: str, one: Mapping[str, Any], other: Mapping[str, Any]) -> Iterator[DesignDifference]:
    for what in sorted(one.keys() | other.keys()):
        if one.get(what) != other.get(what):
            yield DesignDifference(layer, what, str(one.get(what)), str(other.get(what)))


def _layout(layer: LayerSpec) -> dict[str, Any]:
    return {what: getattr(layer, what) for what in ("output_shape", "strategy", "reuse_factor")}


def _types(layer: LayerSpec) -> dict[str, Any]:
    return {f"types.{role}": kind for role, kind in layer.types.items()}


def _weight_differences(one: LayerSpec, other: LayerSpec, role: str) -> Iterator[DesignDifference]:
    a, b = one.weights.get(role), other.weights.get(role)
    if a is None or b is None or a.shape != b.shape:
        said = ["none" if x is None else f"{x.shape}" for x in (a, b)]
        yield DesignDifference(one.name, f"weights.{role}", said[0], said[1])
        return
    unlike = np.argwhere(a != b)
    if len(unlike):
        place = tuple(int(i) for i in unlike[0])
        yield DesignDifference(
            one.name, f"weights.{role}", f"{a[place]} at {place}", f"{b[place]} there", count=len(unlike)
        )


def _fields(layer: LayerSpec) -> dict[str, Any]:
    """Field of the operation to its value; numbers as float32, because hls4ml's front ends read them as float32."""
    found = {"operation": type(layer.operation).__name__, **asdict(layer.operation)}
    return {name: float(np.float32(x)) if isinstance(x, float) else x for name, x in found.items()}


def _outline(layer: LayerSpec) -> str:
    return f"{layer.kind} of {', '.join(layer.inputs) or 'nothing'} that gives {layer.output_shape}"
