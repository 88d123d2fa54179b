"""The differences between two designs of one network that the hardware shows; names of layers do not count."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from fpgaprune.design import MODEL_SHAPE, PROJECT_NAME, Design, LayerSpec
from fpgaprune.hls.paired_layers import pair_layers, reads_the_same, without_idle

_WINDOW = frozenset({"n_chan", "pads", "dilations", "filt_height", "filt_width", "in_width", "out_width"})
_WHOLE_IMAGE = _WINDOW | {
    *("in_height", "out_height", "n_in", "n_out", "pool_height", "pool_width", "stride"),
    *("stride_height", "stride_width", "pad_top", "pad_bottom", "pad_left", "pad_right"),
}
_DILATION = frozenset({"dilation_height", "dilation_width", "dilations"})
# One of hls4ml's front ends leaves these entries out. They follow from the shapes and the kind, which are compared.
_MAY_LACK: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(("Pooling1D", "Pooling2D"), _WINDOW),
    **dict.fromkeys(("GlobalPooling1D", "GlobalPooling2D"), _WHOLE_IMAGE),
    **dict.fromkeys(("Merge", "Concatenate"), frozenset({"output_shape"})),
}
_ANY_MAY_LACK = frozenset({"data_format", "dilation_height", "dilation_width", "target_shape"})
# The integers show whether a bias of zeros stands for no bias.
_IGNORED = frozenset({"use_bias", PROJECT_NAME, MODEL_SHAPE})


@dataclass(frozen=True)
class DesignDifference:
    """One place where two designs differ.

    Attributes:
        layer: name in the first design; in the second for a layer that the first lacks.
        what: `kind`, `inputs`, `output_shape`, `strategy`, `reuse_factor`, `outputs`, `types.ROLE`, `weights.ROLE`, or
            the name of an attribute.
        one: what the first design says.
        other: what the second design says.
        count: how many integers differ; None where something else differs.
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
    """Every difference that hardware would show; empty where both designs are one network in one layout.

    Layers are paired by kind and by what they read. A `Reshape` that changes no shape counts as none.
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
    for what in ("output_shape", "strategy", "reuse_factor"):
        if getattr(one, what) != getattr(other, what):
            yield DesignDifference(one.name, what, str(getattr(one, what)), str(getattr(other, what)))
    for role in sorted(one.types.keys() | other.types.keys()):
        if str(one.types.get(role)) != str(other.types.get(role)):
            yield DesignDifference(one.name, f"types.{role}", str(one.types.get(role)), str(other.types.get(role)))
    for role in sorted(one.weights.keys() | other.weights.keys()):
        yield from _weight_differences(one, other, role)
    may_lack = _ANY_MAY_LACK | _MAY_LACK.get(one.kind, frozenset())
    for key in sorted((one.attributes.keys() | other.attributes.keys()) - _IGNORED):
        if key.endswith("_cpp"):
            # This text is generated and names layers.
            continue
        a, b = (_plain(layer, key) for layer in (one, other))
        lacking = a is None or b is None
        idle = key not in _DILATION or {*np.ravel([x for x in (a, b) if x is not None])} <= {"1"}
        if a != b and not (lacking and key in may_lack and idle):
            yield DesignDifference(one.name, key, str(a), str(b))


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


def _plain(layer: LayerSpec, key: str) -> Any:
    """An attribute as each front end could write it: lower case, numbers as float32 holds them, axes from the front."""
    value = layer.attributes.get(key)
    if isinstance(value, list | tuple):
        return [str(item).lower() for item in value]
    if key == "axis" and isinstance(value, int) and value < 0:
        value += len(layer.output_shape) + 1
    if isinstance(value, float):
        value = float(np.float32(value))
    return None if value is None else str(value).lower()


def _outline(layer: LayerSpec) -> str:
    return f"{layer.kind} of {', '.join(layer.inputs) or 'nothing'} that gives {layer.output_shape}"
