"""Checks which Keras layers hls4ml converts correctly, and names alternatives to others."""

from __future__ import annotations

import math
from typing import Any

import keras

from fpgaprune.design import AP_BACKENDS, FUNCTIONS, KNOWN_BACKENDS
from fpgaprune.errors import UnsupportedLayerError
from fpgaprune.keras_classes import keras_class
from fpgaprune.keras_functions import activation_in, described
from fpgaprune.lowering.backends import OURS, QUANTISING, Backend, has_template
from fpgaprune.lowering.classes import class_problem
from fpgaprune.lowering.gru_lstm import RECURRENT, recurrent_reason
from fpgaprune.network import calls_of, count_uses, producer

_POOLINGS = frozenset({"MaxPooling1D", "MaxPooling2D", "AveragePooling1D", "AveragePooling2D"})
_MERGES = frozenset({"Add", "Subtract", "Multiply", "Average", "Maximum", "Minimum", "Concatenate"})
_ACTIVATIONS = frozenset({"softmax"} | {function.name for function in FUNCTIONS.values() if function.converts})
_NO_TEMPLATE = "hls4ml has no templates for it"
_VERILOG = "our Verilog (target.route 'verilog', backend 'Verilog')"


def check_layers(functional: Any) -> None:
    """hls4ml converts every layer of `functional` to one that computes the same.

    Raises:
        UnsupportedLayerError: it does not; the message names the first such layer and its alternative.
    """
    for problem in layer_problems(functional):
        raise UnsupportedLayerError(problem)


def check_classes(functional: Any) -> None:
    """The class of every layer of `functional` can be converted with some settings.

    Raises:
        UnsupportedLayerError: one cannot; the message names it and its alternative.
    """
    for layer in functional.layers:
        problem = _class_problem(layer)
        if problem is not None:
            raise UnsupportedLayerError(problem)


def _class_problem(layer: Any) -> str | None:
    known = keras_class(layer) or type(layer)
    return class_problem(layer.name, known.__name__, known.__module__, nested=hasattr(layer, "layers"))


def layer_problems(functional: Any) -> list[str]:
    """One line for each layer of `functional` that cannot be converted: its name, the reason, what to do."""
    problems = []
    # What a mask of steps does to a recurrent layer is said of the layer that makes the mask.
    masked = any(isinstance(layer, keras.layers.Masking) for layer in functional.layers)
    for layer in functional.layers:
        kind = (keras_class(layer) or type(layer)).__name__
        problem = _class_problem(layer)
        if problem is not None:
            problems.append(problem)
            continue
        reason = None if masked and isinstance(layer, RECURRENT) else _reason(layer, kind)
        if reason:
            problems.append(f"layer {layer.name!r} ({kind}) cannot be converted: {reason}")
    uses = count_uses(calls_of(functional))
    return problems + [
        f"layer {layer.name!r} is used {uses[id(layer)]} times; hardware has no shared layers here: make a copy for "
        "each use"
        for layer in functional.layers
        if uses[id(layer)] > 1
    ]


def check_kinds(functional: Any, backend: Backend, io_type: str, strategy: str) -> None:
    """`backend` has templates for every layer of `functional`.

    Raises:
        UnsupportedLayerError: it does not; the message names the layer and what to change.
    """
    for problem in kind_problems(functional, backend, io_type, strategy):
        raise UnsupportedLayerError(problem)


def kind_problems(functional: Any, backend: Backend, io_type: str, strategy: str) -> list[str]:
    """One line for each layer of `functional` for which `backend` has no template that computes the same as Keras."""
    problems = [
        problem
        for layer in functional.layers
        if (problem := _kind_problem(layer, backend, io_type, strategy)) is not None
    ]
    kinds = {_kind(layer) for layer in functional.layers}
    if backend is not OURS and io_type == "io_parallel" and {"DepthwiseConv1D", "DepthwiseConv2D"} <= kinds:
        problems.append(
            "a project for io_parallel cannot have a DepthwiseConv1D and a DepthwiseConv2D, because their headers in "
            "hls4ml share an include guard: choose io_stream"
        )
    return problems


def _verilog_problem(layer: Any) -> str | None:
    """Why our Verilog does not compute what `layer` does."""
    kind = _kind(layer)
    if kind in OURS.wrong:
        return f"layer {layer.name!r} is a {kind}; our Verilog {OURS.wrong[kind]}: choose [target] route = 'hls'"
    if _spreads(layer, kind):
        shapes = [tuple(tensor.shape[1:]) for tensor in layer.input]
        if min(map(math.prod, shapes)) != layer.output.shape[-1]:
            return (
                f"layer {layer.name!r} ({kind}) merges {' and '.join(map(str, shapes))}; our Verilog takes one value "
                "for each channel, or one for each element: give both inputs one shape"
            )
    return None


def _kind_problem(layer: Any, backend: Backend, io_type: str, strategy: str) -> str | None:
    name, kind = layer.name, _kind(layer)
    if backend is OURS:
        return _verilog_problem(layer)
    if backend.kinds is not None and kind not in backend.kinds:
        return (
            f"layer {name!r} is a {kind}; backend {backend.name} has templates for "
            f"{', '.join(sorted(backend.kinds))} only: choose another backend"
        )
    if (
        io_type == "io_stream"
        and kind in ("Conv2D", "DepthwiseConv2D")
        and layer.kernel_size[0] == 1 < layer.strides[0]
        and layer.kernel_size != (1, 1)
    ):
        return (
            f"layer {name!r} is a {kind} with a kernel of height 1 and a vertical stride, which hls4ml ignores in "
            f"io_stream: choose io_parallel, or {_VERILOG}"
        )
    if kind == "RoundedChannels" and backend.name not in QUANTISING:
        return (
            f"layer {name!r} gives each channel a type of its own, for which backend {backend.name} has no template: "
            f"choose backend {' or '.join(map(repr, QUANTISING))}"
        )
    if kind == "RoundedChannels" and layer.each_value and io_type == "io_stream" and len(layer.output.shape) > 2:
        return (
            f"layer {name!r} has types that differ from pixel to pixel, of which io_stream takes one after another: "
            "choose io_parallel, or train one type for each channel (in HGQ2 heterogeneous_axis=(-1,))"
        )
    if kind in backend.wrong:
        return (
            f"layer {name!r} is a {kind}; backend {backend.name} {backend.wrong[kind]}: choose another backend, for "
            "example 'Vitis'"
        )
    activation = activation_in(layer)
    function = None if activation is None else FUNCTIONS.get(activation.name)
    if function is not None and not has_template(function, backend.name, io_type):
        instead = "choose backend 'Vitis' or 'Vivado'" if function.own_template else "choose io_parallel"
        return (
            f"layer {name!r} has a {function.name}, for which backend {backend.name} has no template in {io_type}: "
            f"{instead}, or relu"
        )
    if _spreads(layer, kind) and (io_type == "io_stream" or backend.name not in AP_BACKENDS):
        shapes = " and ".join(str(tuple(tensor.shape[1:])) for tensor in layer.input)
        return (
            f"layer {name!r} ({kind}) merges {shapes}; only the templates of Vitis and Vivado for io_parallel "
            f"broadcast: choose these, give both inputs one shape, or choose {_VERILOG}"
        )
    softmax = (activation is not None and activation.name == "softmax") or kind == "Softmax"
    if softmax and io_type == "io_parallel" and len(layer.output.shape) > 2 and backend.name not in AP_BACKENDS:
        return (
            f"layer {name!r} has a softmax over the last of several axes, which backend {backend.name} computes over "
            "all axes in io_parallel: choose io_stream, or backend 'Vitis'"
        )
    if softmax and io_type == "io_stream" and _reads_flattened(layer, kind):
        return (
            f"layer {name!r} is a softmax right after a flattened tensor; in io_stream, hls4ml computes it for each "
            f"packet alone: put a layer between, choose io_parallel, or {_VERILOG}"
        )
    if io_type == "io_stream" and backend.name in KNOWN_BACKENDS and _windows_overlap(layer, kind):
        return (
            f"layer {name!r} is a {kind} with padding, or with strides other than its pool size, for which hls4ml "
            "has no template in io_stream: choose io_parallel, a pool size and strides that divide the input, or "
            f"{_VERILOG}"
        )
    if kind in backend.unsettled:
        return (
            f"layer {name!r} is a {kind}; for its templates of backend {backend.name}, fpgaprune cannot choose the "
            "types yet: choose backend 'Vitis' or 'Vivado'"
        )
    if io_type == "io_stream" and kind in backend.unstreamed:
        return (
            f"layer {name!r} is a {kind}; its template of backend {backend.name} for io_stream does not compile: "
            "choose io_parallel"
        )
    if io_type == "io_stream" and kind == "Concatenate" and _joins_wrongly(layer, backend.name):
        return (
            f"layer {name!r} concatenates two vectors; the template of backend {backend.name} for io_stream does not "
            "read each of them to its end: choose io_parallel"
        )
    depthwise = kind.startswith("Depthwise") and strategy == "resource"
    if depthwise and (io_type == "io_parallel" or backend.name == "Catapult"):
        return (
            f"layer {name!r} is a {kind}, for which strategy 'resource' has no template in {io_type} of backend "
            f"{backend.name}: choose strategy 'latency'{'' if io_type == 'io_stream' else ', or io_stream'}"
        )
    return None


def _joins_wrongly(layer: Any, backend: str) -> bool:
    """Whether the vectors that `layer` concatenates are mixed up by hls4ml's template for streams.

    Catapult's reads both as long as the result; oneAPI's reads the first as often as the second is contained in it.
    """
    sizes = [math.prod(tensor.shape[1:]) for tensor in layer.input]
    return len(layer.output.shape) == 2 and (backend == "Catapult" or (backend == "oneAPI" and len(set(sizes)) > 1))


def _windows_overlap(layer: Any, kind: str) -> bool:
    """Whether the windows of a pooling overlap, leave gaps, or reach beyond the input."""
    if kind not in _POOLINGS or layer.data_format != "channels_last":
        return False
    sizes = layer.input.shape[1:-1]
    padded = layer.padding == "same" and any(
        size is not None and size % pool for size, pool in zip(sizes, layer.pool_size, strict=True)
    )
    return padded or tuple(layer.strides) != tuple(layer.pool_size)


def _reads_flattened(layer: Any, kind: str) -> bool:
    """Whether `layer` is only an activation, and reads several axes that were merged into one."""
    if kind not in ("Softmax", "Activation") or isinstance(layer.input, list):
        return False
    before = producer(layer.input)
    made_one = isinstance(before, keras.layers.Flatten | keras.layers.Reshape) and len(before.output.shape) == 2
    return made_one and len(before.input.shape) > 2


def _spreads(layer: Any, kind: str) -> bool:
    """Whether `layer` merges tensors of different shapes, of which the smaller are repeated as a whole."""
    shapes = [tuple(tensor.shape[1:]) for tensor in getattr(layer, "input", [])] if kind in _MERGES else []
    return kind != "Concatenate" and len(set(shapes)) > 1 and _tiles(shapes)


def _reason(layer: Any, kind: str) -> str | None:
    """Why hls4ml would not compute the same as Keras; None if it would."""
    if getattr(layer, "lora_enabled", False) or getattr(layer, "quantization_mode", None):
        return "LoRA or quantize() has split its weights: replace it by a layer with the whole kernel"
    reason = _activation_reason(layer)
    if reason is not None:
        return reason
    if kind == "TimeDistributed":
        return f"it applies a {type(layer.layer).__name__} to every step, {_NO_TEMPLATE}: give it the steps as they are"
    if getattr(layer, "data_format", None) == "channels_first":
        return "its data_format is 'channels_first'; only 'channels_last' has templates"
    rate = getattr(layer, "dilation_rate", 1)
    if any(r != 1 for r in (rate if isinstance(rate, tuple | list) else (rate,))):
        return f"it is dilated by {rate}, and {_NO_TEMPLATE}: widen the kernel with zeros instead"
    if getattr(layer, "groups", 1) != 1:
        return f"it has {layer.groups} groups, and {_NO_TEMPLATE}: split it with fp.split_groups first"
    if kind.startswith(("Depthwise", "Separable")) and layer.depth_multiplier != 1:
        return f"its depth multiplier is {layer.depth_multiplier}, and {_NO_TEMPLATE}: use 1"
    if kind == "UpSampling2D" and layer.interpolation != "nearest":
        return f"its interpolation is {layer.interpolation!r}, and {_NO_TEMPLATE}: use 'nearest'"
    if kind in ("Softmax", "BatchNormalization"):
        axes = layer.axis if isinstance(layer.axis, list | tuple) else [layer.axis]
        last = len(layer.input.shape) - 1
        if [axis % (last + 1) for axis in axes] != [last]:
            return f"it works along axis {layer.axis}, and hls4ml has templates for the last axis only: use that"
    if kind in _MERGES - {"Concatenate"} and not _tiles([tuple(tensor.shape[1:]) for tensor in layer.input]):
        shapes = " and ".join(str(tuple(tensor.shape[1:])) for tensor in layer.input)
        return f"it merges {shapes}, which hls4ml broadcasts in another way than Keras: give both one shape"
    if kind == "PReLU" and layer.shared_axes:
        return f"it shares its slopes along axes {layer.shared_axes}, and {_NO_TEMPLATE}: use LeakyReLU, or share none"
    if isinstance(layer, RECURRENT):
        return recurrent_reason(layer)
    return None


def _activation_reason(layer: Any) -> str | None:
    """Why hls4ml has no activation that computes what that of `layer` does; None if it has one."""
    known = activation_in(layer)
    # What applies the function: the layer itself, if it is nothing else.
    activation = layer if not hasattr(layer, "activation") else layer.activation
    if known is None and isinstance(layer, keras.layers.Softmax):
        # Which axis is the last one depends on what it reads.
        return None
    if known is None:
        return _unknown_reason(activation)
    if known.name == "prelu" and activation is not layer:
        return "its activation is a PReLU, whose slopes Keras does not save: put that after it as a layer of its own"
    if known.name not in _ACTIVATIONS | {"thresholded_relu", "prelu"}:
        return f"it knows no activation {known.name!r}; it knows {', '.join(sorted(_ACTIVATIONS))}"
    return None


def _unknown_reason(activation: Any) -> str:
    if keras_class(activation) is not keras.layers.ReLU:
        return f"its activation is {described(activation)}; fpgaprune knows {', '.join(sorted(_ACTIVATIONS))} of Keras"
    limit, slope, threshold = activation.max_value, activation.negative_slope, activation.threshold
    if sum(map(bool, (limit, slope, threshold))) > 1:
        return (
            f"it has max_value {limit}, negative_slope {slope} and threshold {threshold}, and hls4ml has no template "
            "for two of them together: use one of them"
        )
    return f"its max_value is {limit}, and {_NO_TEMPLATE}: use none, or 6"


def _kind(layer: Any) -> str:
    """The class of Keras that says what `layer` computes; its own class if that is none of Keras's."""
    return (keras_class(layer) or type(layer)).__name__


def _tiles(shapes: list[tuple[int, ...]]) -> bool:
    """Whether Keras broadcasts each of `shapes` to the largest by repeating it as a whole, as hls4ml does."""
    largest = max(shapes, key=math.prod)
    for shape in shapes:
        inner = list(shape)
        while inner and inner[0] == 1:
            inner.pop(0)
        if inner != list(largest[len(largest) - len(inner) :]):
            return False
    return True
