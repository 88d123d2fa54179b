"""Lists which layers of a `Design` a back end would build wrongly or not at all: the known faults of hls4ml 1.3.

Each fault stands here once, as a check on the design: before training on one without types and weights, and again
before a design is emulated or rendered. Our own Verilog has limits of its own, which stand here too.
"""

from __future__ import annotations

from collections.abc import Sequence

import fpgaprune.design as op
from fpgaprune.backends.backend import AP_BACKENDS, KNOWN_BACKENDS, VERILOG
from fpgaprune.design import FUNCTIONS, Design, LayerSpec, ScalarFunction

# Backends with a template for types of single channels.
QUANTISING = ("Vivado", "Vitis")
_OURS = "our Verilog (target.route 'verilog', backend 'Verilog')"
# Functions for which hls4ml has classes of layers of their own.
_OWN_CLASSES = ("elu", "prelu", "thresholded_relu")
_ELSEWHERE = "choose another backend, for example 'Vitis'"


def faults_of(design: Design) -> list[str]:
    """Return a line for each layer that the backend builds wrongly or not at all: name, reason, what to do."""
    by_name = {layer.name: layer for layer in design.layers}
    found = []
    for layer in design.layers:
        fault = _fault(layer, [by_name[name] for name in layer.inputs], design)
        if fault is not None:
            found.append(f"layer {layer.name!r} ({layer.kind}): {fault}")
    return found


def has_template(function: ScalarFunction, backend: str, io_type: str) -> bool:
    """Return whether a project of `backend` for `io_type` has a template of `function`, hls4ml's or ours."""
    if function.has_exact_table:
        return backend in AP_BACKENDS
    # Of these hls4ml has no template for streams, and ours are for the backends of these names.
    return function.name != "relu6" or io_type != "io_stream" or backend in KNOWN_BACKENDS


def _fault(layer: LayerSpec, sources: Sequence[LayerSpec], design: Design) -> str | None:
    shapes = [source.output_shape for source in sources]
    if design.backend == VERILOG:
        return None
    wrong = _fault_of_backend(layer, shapes, design)
    if wrong is not None:
        return wrong
    if design.io_type == "io_parallel":
        return _fault_in_parallel(layer, design)
    return _fault_in_stream(layer, sources, design)


def _fault_of_backend(layer: LayerSpec, shapes: Sequence[tuple[int, ...]], design: Design) -> str | None:
    """Return the fault of the back end in `layer` with either io type; None if there is none."""
    backend, operation = design.backend, layer.operation
    if backend == "Libero" and not _is_in_libero(operation):
        return (
            "backend Libero has templates for Dense layers of vectors and for activations without a parameter, and "
            "leaves out other layers: choose another backend"
        )
    function = FUNCTIONS.get(op.function_of(operation))
    if function is not None and not has_template(function, backend, design.io_type):
        instead = "choose backend 'Vitis' or 'Vivado'" if function.has_exact_table else "choose io_parallel"
        return f"backend {backend} has no template of {function.name} in {design.io_type}: {instead}, or relu"
    match operation:
        case op.Quantise() if backend not in QUANTISING:
            return (
                f"each channel has a type of its own, for which backend {backend} has no template: choose backend "
                f"{' or '.join(map(repr, QUANTISING))}"
            )
        case op.Reverse():
            return f"steps are read from the last to the first, for which hls4ml has no layer: choose {_OURS}"
        case op.Recurrent("rnn"):
            return f"backend {backend} has no template of a plain RNN: choose {_OURS}, or GRU"
        case op.Merge() if len(set(shapes)) > 1 and (design.io_type == "io_stream" or backend not in AP_BACKENDS):
            return (
                f"it merges {' and '.join(map(str, shapes))}, and the template reads past the end of the shorter "
                "input; only the templates of Vitis and Vivado for io_parallel broadcast: choose these, give both "
                f"inputs one shape, or choose {_OURS}"
            )
    if backend not in ("oneAPI", "Catapult"):
        return None
    match operation:
        case op.Pooling(largest=False):
            return f"backend {backend} adds up averages in the type of the data, where they overflow: {_ELSEWHERE}"
        case op.Crop():
            return f"backend {backend} leaves the output unset, for lack of a template: {_ELSEWHERE}"
        case op.Merge("average") if backend == "Catapult":
            return f"backend Catapult halves with a constant of a type that cannot hold one half: {_ELSEWHERE}"
        case op.Recurrent():
            return (
                f"fpgaprune cannot choose the types for its templates of backend {backend} yet: choose backend 'Vitis' "
                "or 'Vivado'"
            )
    return None


def _is_in_libero(operation: op.Operation) -> bool:
    """Return whether Libero's project has a line for a layer of `operation`; it silently leaves out any other."""
    if isinstance(operation, op.Map | op.LookUp):
        return operation.parameter is None and operation.function not in _OWN_CLASSES
    return isinstance(operation, op.Input | op.Dense | op.Reshape)


def _fault_in_parallel(layer: LayerSpec, design: Design) -> str | None:
    match layer.operation:
        case op.Softmax() if len(layer.output_shape) > 1 and design.backend not in AP_BACKENDS:
            return (
                f"it is a softmax over the last of several axes, which backend {design.backend} computes over all axes "
                "in io_parallel: choose io_stream, or backend 'Vitis'"
            )
        case op.Convolution(depthwise=True) if layer.strategy == "resource":
            return (
                f"strategy 'resource' has no template in io_parallel of backend {design.backend}: choose strategy "
                "'latency', or io_stream"
            )
        case op.Convolution(depthwise=True) if layer.kind == "DepthwiseConv2D" and any(
            other.kind == "DepthwiseConv1D" for other in design.layers
        ):
            return (
                "a project for io_parallel cannot have a DepthwiseConv1D and a DepthwiseConv2D, because their headers "
                "in hls4ml share an include guard: choose io_stream"
            )
    return None


def _fault_in_stream(layer: LayerSpec, sources: Sequence[LayerSpec], design: Design) -> str | None:
    shape, backend = layer.output_shape, design.backend
    shapes = [source.output_shape for source in sources]
    match layer.operation:
        case op.Convolution(op.Window((1, _), (stride, _))) if (
            stride > 1 and len(shape) == 3 and not _reads_one_place(layer.operation, backend)
        ):
            return (
                "a kernel of height 1 with a vertical stride is wrong in io_stream, because hls4ml ignores that "
                f"stride: choose io_parallel, or {_OURS}"
            )
        case op.Convolution(depthwise=True) if layer.strategy == "resource" and backend == "Catapult":
            return "strategy 'resource' has no template in io_stream of backend Catapult: choose strategy 'latency'"
        case op.Quantise(places=places) if len(shape) > 1 and len(places) > shape[-1]:
            return (
                "its types differ from pixel to pixel, of which io_stream takes one after another: choose io_parallel, "
                "or train one type for each channel (in HGQ2 heterogeneous_axis=(-1,))"
            )
        case op.Softmax() if len(shape) == 1 and len(_packets(sources[0], design)) > 1:
            return (
                "it is a softmax right after a flattened tensor, and in io_stream hls4ml computes it for each packet "
                f"alone: put a layer between, choose io_parallel, or {_OURS}"
            )
        case op.Pooling(op.Window(size, stride, pad)) if backend in KNOWN_BACKENDS and (any(pad) or size != stride):
            return (
                "pooling with padding, or with strides other than the pool size, has no template in io_stream of "
                f"hls4ml: choose io_parallel, a pool size and strides that divide the input, or {_OURS}"
            )
        case op.Transpose() | op.Merge("maximum" | "minimum") if backend == "Catapult":
            return "its template of backend Catapult for io_stream does not compile: choose io_parallel"
        # Catapult's reads both as long as the result; oneAPI's the first as often as the second is contained in it.
        case op.Concatenate() if len(shape) == 1 and (
            backend == "Catapult" or (backend == "oneAPI" and len(set(shapes)) > 1)
        ):
            return (
                f"the template of backend {backend} for io_stream does not read each of the two vectors to its end: "
                "choose io_parallel"
            )
        case op.Resize() if any(new % old for old, new in zip(shapes[0], shape, strict=False)):
            return f"io_stream resizes only by whole factors; got {shapes[0]} to {shape}: choose io_parallel"
    return None


def _reads_one_place(operation: op.Convolution, backend: str) -> bool:
    """Return whether hls4ml's template for it has windows of one place, or heeds the stride of such windows."""
    one = operation.window.size == (1, 1) and not operation.depthwise
    return operation.pointwise or (one and backend == "oneAPI")


def _packets(layer: LayerSpec, design: Design) -> tuple[int, ...]:
    """Return the shape of the packets in a layer's stream: a flattened stream keeps those of the layer before it."""
    while layer.operation == op.Reshape() or isinstance(layer.operation, op.Copy):
        layer = design[layer.inputs[0]]
    return layer.output_shape
