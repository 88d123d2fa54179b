"""The backends that are emulated, and how much of each.

Vitis, Vivado and VivadoAccelerator share `ap_fixed` and one set of templates, all of which is emulated. Quartus and
Catapult have `ac_fixed`, with the same integers, rounding and overflow, but templates of their own: another order of
addition, sums of averages in the type of the data, other tables. What does not depend on these is emulated: exact sums,
and layers that compare, add or move values. Projects of oneAPI and Libero are compiled by the vendors' compilers only,
so nothing was compared with them.
"""

from __future__ import annotations

from fpgaprune.design import (
    FUNCTIONS,
    Concatenate,
    Convolution,
    Copy,
    Dense,
    Design,
    Input,
    LayerSpec,
    LookUp,
    Map,
    Merge,
    Pad,
    Pooling,
    Reshape,
    Resize,
    Scale,
    Softmax,
    Transpose,
    function_of,
)
from fpgaprune.errors import UnsupportedLayerError

AP_BACKENDS = ("Vitis", "Vivado", "VivadoAccelerator")
AC_BACKENDS = ("Quartus", "Catapult")
BACKENDS = (*AP_BACKENDS, *AC_BACKENDS)

_AC_OPERATIONS = (
    *(Input, Dense, Convolution, Map, LookUp, Scale, Pooling, Merge, Concatenate),
    *(Reshape, Copy, Transpose, Resize, Pad),
)
_OPERATIONS = {"Quartus": (*_AC_OPERATIONS, Softmax), "Catapult": _AC_OPERATIONS}
_AC_ROUNDINGS = ("TRN", "RND")
_AC_OVERFLOWS = ("WRAP", "SAT")
_AC_ACTIVATIONS = tuple(function.name for function in FUNCTIONS.values() if function.any_backend)
_AC_SOFTMAX = ("stable",)


def check_backend(design: Design) -> None:
    """Everything that `design` uses of its backend is emulated.

    Raises:
        UnsupportedLayerError: something is not; the message names the layer, or the backend.
    """
    if design.backend not in BACKENDS:
        raise UnsupportedLayerError(
            f"design {design.name!r} is for {design.backend}, whose arithmetic has no emulation; those that have: "
            f"{', '.join(BACKENDS)}"
        )
    if design.backend not in AC_BACKENDS:
        return
    for layer in design.layers:
        reason = _reason(layer, design.backend)
        if reason:
            raise UnsupportedLayerError(
                f"layer {layer.name!r} ({layer.kind}) has no emulation for backend {design.backend}: {reason}"
            )


def is_streamed(design: Design) -> bool:
    """Whether the design has the templates of `io_stream`; those of Quartus pad as in `io_parallel`."""
    return design.io_type == "io_stream" and design.backend != "Quartus"


def _reason(layer: LayerSpec, backend: str) -> str | None:
    operation = layer.operation
    depthwise = isinstance(operation, Convolution) and operation.depthwise
    if not isinstance(operation, _OPERATIONS[backend]) or (depthwise and backend == "Quartus"):
        return f"emulated are {', '.join(kind.__name__ for kind in _OPERATIONS[backend])}"
    if depthwise and len(layer.output_shape) == 2:
        return "of depthwise layers only two-dimensional ones were compared"
    if isinstance(operation, Pooling) and not operation.largest:
        return "it adds up averages in the type of the data, which can overflow; use max pooling"
    name = function_of(operation)
    if name and name not in _AC_ACTIVATIONS:
        return f"its table is not known here; emulated are {', '.join(_AC_ACTIVATIONS)}"
    if backend == "Catapult" and operation == Merge("average"):
        return "its template halves with a constant of a type that cannot hold one half"
    if isinstance(operation, Softmax) and operation.variant not in _AC_SOFTMAX:
        return f"of its variants only {', '.join(_AC_SOFTMAX)} was compared"
    kind = layer.types["result"]
    if kind.rounding not in _AC_ROUNDINGS or kind.overflow not in _AC_OVERFLOWS:
        return f"rounding {kind.rounding} with overflow {kind.overflow} was not compared with ac_fixed"
    return None
