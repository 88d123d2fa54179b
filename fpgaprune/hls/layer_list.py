"""Writes a `Design` as hls4ml's list of layers, from which hls4ml makes its graph.

hls4ml's passes add what a design for `io_stream` says already: copies of streams, zeros before windows, packets made
anew. The list leaves them out, so that each stands once in the graph.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

import fpgaprune.design as op
from fpgaprune.design import Design, LayerSpec
from fpgaprune.errors import HlsError
from fpgaprune.values import FixedType

Entry = dict[str, Any]
# What hls4ml puts in front of the name of a stream that it packs anew.
_REPACKED = "repack_"
# The type that hls4ml gives the zeros of a bias that a layer does not have.
_NO_BIAS = FixedType(1, 1, signed=False)
_FUNCTION_CLASSES = {
    "leaky_relu": ("LeakyReLU", "leakyrelu"),
    "thresholded_relu": ("ThresholdedReLU", "thresholdedrelu"),
    "elu": ("ELU", "elu"),
    "prelu": ("PReLU", "prelu"),
}


@dataclass(frozen=True)
class LayerList:
    """A network in hls4ml's words.

    Attributes:
        entries: hls4ml's attributes of each layer, the inputs first.
        layers: name in the project to the layer of the design, for each entry.
        inputs: names of the inputs, as the top function takes them.
        outputs: names of the layers that make the outputs.
    """

    entries: list[Entry]
    layers: dict[str, LayerSpec]
    inputs: list[str]
    outputs: list[str]


def layer_list(design: Design) -> LayerList:
    """Return `design` as hls4ml's list of layers.

    Raises:
        HlsError: hls4ml has no layer that computes an operation of the design.
    """
    layers, outputs = _without_added(design)
    known = {layer.name: layer for layer in layers}
    entries = [_entry(layer, [known[name] for name in layer.inputs], design.io_type) for layer in layers]
    return LayerList(
        entries,
        {layer.project_name: layer for layer in layers},
        [layer.project_name for layer in layers if isinstance(layer.operation, op.Input)],
        [known[name].project_name for name in outputs],
    )


def _without_added(design: Design) -> tuple[list[LayerSpec], list[str]]:
    """Return the layers of `design` but those that hls4ml's passes add, and the names of those that make outputs."""
    instead: dict[str, str] = {}
    pads: dict[str, LayerSpec] = {}
    layers: list[LayerSpec] = []
    readers = {name: layer for layer in design.layers for name in layer.inputs}
    for layer in design.layers:
        if isinstance(layer.operation, op.Copy) or _pads_for(layer, readers.get(layer.name)):
            pads |= {layer.name: layer} if isinstance(layer.operation, op.Pad) else {}
            instead[layer.name] = instead.get(layer.inputs[0], layer.inputs[0])
            continue
        operation = layer.operation
        before = pads.get(layer.inputs[0]) if layer.inputs else None
        if isinstance(operation, op.Convolution) and before is not None and isinstance(before.operation, op.Pad):
            operation = replace(operation, window=replace(operation.window, pad=before.operation.sides))
        inputs = tuple(instead.get(name, name) for name in layer.inputs)
        name = layer.project_name
        if operation == op.Reshape(repacks=True):
            name = name.removeprefix(_REPACKED)
        layers.append(replace(layer, operation=operation, inputs=inputs, project_name=name))
    return layers, [instead.get(name, name) for name in design.outputs]


def _pads_for(layer: LayerSpec, reader: LayerSpec | None) -> bool:
    """Return whether `layer` is the zeros that hls4ml puts before the windows of `reader`."""
    return (
        isinstance(layer.operation, op.Pad)
        and reader is not None
        and isinstance(reader.operation, op.Convolution)
        and layer.project_name == f"zp{len(layer.output_shape) - 1}d_{reader.project_name}"
    )


def _entry(layer: LayerSpec, sources: list[LayerSpec], io_type: str) -> Entry:
    return {
        "name": layer.project_name,
        "inputs": [source.project_name for source in sources],
        "data_format": "channels_last",
        **attributes_of(layer, sources, io_type),
    }


def attributes_of(layer: LayerSpec, sources: list[LayerSpec], io_type: str) -> Entry:
    """Return the class of hls4ml's layer and its attributes.

    Raises:
        HlsError: hls4ml has no layer that computes the operation.
    """
    shape = list(layer.output_shape)
    match layer.operation:
        case op.Input():
            return {"class_name": "InputLayer", "input_shape": shape}
        case op.Dense():
            n_in, n_out = layer.weights["weight"].shape
            return {"class_name": "Dense", "n_in": n_in, "n_out": n_out, **_weights(layer)}
        case op.Convolution() as found:
            return _convolution(layer, found, sources[0])
        case op.Pooling() as found:
            return _pooling(layer, found, sources[0])
        case op.Recurrent() as found:
            return _recurrent(layer, found, sources[0])
        case op.Scale():
            return _scale(layer)
        case op.Map() | op.LookUp() as found:
            return _function(layer, found)
        case op.Softmax():
            return _softmax(shape)
        case op.Merge(function):
            return {"class_name": "Merge", "op": function, "output_shape": shape}
        case op.Concatenate(axis):
            return {"class_name": "Concatenate", "op": f"Concatenate{len(shape)}d", "axis": axis, "output_shape": shape}
        case op.Copy():
            return {"class_name": "Clone"}
        case op.Reshape():
            return {"class_name": "Reshape", "target_shape": shape}
        case op.Transpose(axes):
            return {"class_name": "Transpose", "perm": list(axes)}
        case op.Pad(sides):
            return _moved("ZeroPadding", layer, sources[0], _sides("pad", sides, len(shape)))
        case op.Crop(sides):
            return _moved("Cropping", layer, sources[0], _sides("crop", sides, len(shape)))
        case op.Resize():
            return _resize(layer, sources[0])
        case op.Quantise() as found:
            return _quantise(found, layer.output_shape, io_type)
    raise HlsError(
        f"layer {layer.name!r} has operation {type(layer.operation).__name__}, for which hls4ml has no layer: write "
        "the design as Verilog"
    )


def _value(layer: LayerSpec, role: str) -> NDArray[np.float64]:
    return layer.types[role].to_float(layer.weights[role])


def _weights(layer: LayerSpec) -> Entry:
    # Where a layer has no bias, hls4ml adds zeros of a type of its own.
    absent = layer.types["bias"] == _NO_BIAS and not layer.weights["bias"].any()
    return {"weight_data": _value(layer, "weight"), "bias_data": None if absent else _value(layer, "bias")}


def _sizes(prefix: str, shape: tuple[int, ...]) -> Entry:
    """Return the height and the width of an image of `shape`; a sequence has a width alone."""
    names = ("width",) if len(shape) == 2 else ("height", "width")
    return {f"{prefix}_{name}": size for name, size in zip(names, shape[:-1], strict=True)}


def _sides(prefix: str, sides: tuple[int, int, int, int], axes: int) -> Entry:
    top, bottom, left, right = sides
    high = {} if axes == 2 else {f"{prefix}_top": top, f"{prefix}_bottom": bottom}
    return {**high, f"{prefix}_left": left, f"{prefix}_right": right}


def _window(layer: LayerSpec, source: LayerSpec, prefix: str, window: op.Window) -> Entry:
    """Return where the windows of a convolution (`filt`) or a pooling (`pool`) lie."""
    axes = len(source.output_shape)
    out = layer.output_shape if len(layer.output_shape) == axes else (*(1,) * (axes - 1), layer.output_shape[-1])
    (high, wide), (down, right) = window.size, window.stride
    tall = {} if axes == 2 else {f"{prefix}_height": high, "stride_height": down}
    return {
        **tall,
        f"{prefix}_width": wide,
        "stride_width": right,
        **_sides("pad", window.pad, axes),
        **_sizes("in", source.output_shape),
        **_sizes("out", out),
        "n_chan": source.output_shape[-1],
        "n_filt": layer.output_shape[-1],
    }


def _convolution(layer: LayerSpec, operation: op.Convolution, source: LayerSpec) -> Entry:
    if len(layer.output_shape) > 3:
        raise HlsError(
            f"layer {layer.name!r} gives shape {layer.output_shape}; hls4ml convolves sequences (W, C) and images "
            "(H, W, C): reshape it, or write the design as Verilog"
        )
    axes = f"{len(layer.output_shape) - 1}D"
    found = {
        "class_name": f"{'Depthwise' if operation.depthwise else ''}Conv{axes}",
        **_window(layer, source, "filt", operation.window),
        **_weights(layer),
    }
    if operation.depthwise:
        found |= {"depthwise_data": found["weight_data"], "depth_multiplier": found["weight_data"].shape[-1]}
    return found


def _pooling(layer: LayerSpec, operation: op.Pooling, source: LayerSpec) -> Entry:
    high, wide = (1, *source.output_shape)[-3:-1]
    found = _window(layer, source, "pool", operation.window or op.Window((high, wide), (high, wide)))
    if len(source.output_shape) == 2:
        found |= {"n_in": found["in_width"], "n_out": found["out_width"]}
    kind = f"{'Global' if operation.window is None else ''}{'Max' if operation.largest else 'Average'}Pooling"
    return {"class_name": f"{kind}{len(source.output_shape) - 1}D", **found}


def _recurrent(layer: LayerSpec, operation: op.Recurrent, source: LayerSpec) -> Entry:
    steps, n_in = source.output_shape
    found = {
        "class_name": operation.cell.upper(),
        "direction": "forward",
        "return_sequences": operation.sequences,
        "return_state": False,
        "time_major": False,
        "n_timesteps": steps,
        "n_in": n_in,
        "n_out": operation.units,
        "activation": operation.function,
        "recurrent_activation": operation.gate,
        "weight_data": _value(layer, "weight"),
        "recurrent_weight_data": _value(layer, "recurrent_weight"),
        "bias_data": _value(layer, "bias"),
    }
    if operation.cell == "gru":
        found |= {"recurrent_bias_data": _value(layer, "recurrent_bias"), "apply_reset_gate": "after"}
    return found


def _scale(layer: LayerSpec) -> Entry:
    size = math.prod(layer.output_shape)
    return {
        "class_name": "BatchNormalization",
        "n_in": size,
        "n_out": size,
        "n_filt": -1 if len(layer.output_shape) == 1 else layer.output_shape[-1],
        "scale_data": _value(layer, "scale"),
        "bias_data": _value(layer, "bias"),
    }


def _function(layer: LayerSpec, operation: op.Map | op.LookUp) -> Entry:
    kind, function = _FUNCTION_CLASSES.get(operation.function, ("Activation", operation.function))
    found: Entry = {"class_name": kind, "activation": function, "n_in": math.prod(layer.output_shape)}
    if operation.parameter is not None:
        found["activ_param"] = operation.parameter
    if "param" in layer.weights:
        found["param_data"] = _value(layer, "param")
    return found


def _softmax(shape: list[int]) -> Entry:
    return {
        "class_name": "Softmax",
        "activation": "softmax",
        "axis": -1,
        "n_outer": math.prod(shape[:-1]),
        "n_inner": 1,
        "n_in": math.prod(shape),
    }


def _moved(kind: str, layer: LayerSpec, source: LayerSpec, sides: Entry) -> Entry:
    return {
        "class_name": f"{kind}{len(layer.output_shape) - 1}D",
        **sides,
        **_sizes("in", source.output_shape),
        **_sizes("out", layer.output_shape),
        "n_chan": layer.output_shape[-1],
    }


def _resize(layer: LayerSpec, source: LayerSpec) -> Entry:
    old, new = (1, *source.output_shape)[-3:-1], (1, *layer.output_shape)[-3:-1]
    return {
        "class_name": f"UpSampling{len(layer.output_shape) - 1}D",
        "algorithm": "nearest",
        **dict(zip(("in_height", "in_width"), old, strict=True)),
        **dict(zip(("out_height", "out_width"), new, strict=True)),
        "height_factor": new[0] // old[0],
        "width_factor": new[1] // old[1],
        "n_chan": layer.output_shape[-1],
    }


def _quantise(operation: op.Quantise, shape: tuple[int, ...], io_type: str) -> Entry:
    """Return signs, widths and integer bits for every value of a sample, behind a batch axis of 1."""
    kinds = operation.types(shape)
    rows = [(0, 0, 0) if kind is None else (int(kind.signed), kind.width, kind.integer) for kind in kinds]
    modes = next((kind for kind in kinds if kind is not None), FixedType(1, 1))
    return {
        "class_name": "StreamQuantizer" if io_type == "io_stream" else "FixedPointQuantizer",
        "mask_kbi": tuple(np.array(part, dtype=np.int16).reshape(1, *shape) for part in zip(*rows, strict=True)),
        "SAT": modes.overflow,
        "RND": modes.rounding,
        "fusible": None,
        "overrides": {},
    }
