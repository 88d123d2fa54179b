"""How the templates of hls4ml's backends and io types compute a layer, as far as it is known here.

Vitis, Vivado and VivadoAccelerator share `ap_fixed` and one set of templates, of which everything is known.
Catapult has `ac_fixed`, whose integers, rounding and overflow are the same, but templates of its own: another order of
addition, sums of averages in the type of the data, other tables. Of these, what does not depend on them is known: sums
that are exact, and layers that compare, add or move values. Projects of oneAPI and Libero cannot be
compiled without the vendors' compilers, so that nothing was compared with them.
"""

from __future__ import annotations

from dataclasses import replace

import fpgaprune.design as op
from fpgaprune.backends.backend import CATAPULT, KNOWN_BACKENDS, VERILOG
from fpgaprune.design import Design, LayerSpec
from fpgaprune.values import FixedType

_CATAPULT_OPERATIONS = (
    *(op.Input, op.Dense, op.Convolution, op.Map, op.LookUp, op.Scale, op.Pooling, op.Merge, op.Concatenate),
    *(op.Reshape, op.Copy, op.Transpose, op.Resize, op.Pad),
)
_CATAPULT_ROUNDINGS = ("TRN", "RND")
_CATAPULT_OVERFLOWS = ("WRAP", "SAT")
_CATAPULT_ACTIVATIONS = ("linear", "relu", "relu6", "leaky_relu", "thresholded_relu", "prelu")
# ap_ufixed<16, 1> lambda = 1.0507..., in nnet::selu of io_parallel.
_SELU_SCALE_TYPE = FixedType(16, 1, signed=False)


def as_built(design: Design) -> Design:
    """Return `design`, each layer as hls4ml's templates for the design's backend and io type compute it.

    The order of addition, the form of tables and what is rounded first stand in the operations. `faults_of` names the
    layers whose templates compute something else, `unknown_of` those of which that is not known here.
    """
    return replace(design, layers=tuple(replace(layer, operation=_operation(layer, design)) for layer in design.layers))


def _operation(layer: LayerSpec, design: Design) -> op.Operation:
    operation, streams = layer.operation, design.io_type == "io_stream"
    if isinstance(operation, op.Dense | op.Convolution | op.Recurrent):
        return replace(operation, order=_order(layer, design.backend))
    if isinstance(operation, op.Pooling):
        return replace(operation, assigns_first=streams)
    if isinstance(operation, op.LookUp) and operation.function == "selu":
        return replace(operation, scale_type=None if streams else _SELU_SCALE_TYPE, signed_index=not streams)
    return operation


def _order(layer: LayerSpec, backend: str) -> op.Order:
    if backend == CATAPULT:
        return "unknown"
    if layer.strategy in ("resource_unrolled", "distributed_arithmetic") and not layer.is_depthwise:
        return "unknown"
    return "by_reuse" if layer.strategy == "resource" else "in_order"


def unknown_of(layer: LayerSpec, design: Design) -> str | None:
    """Say why it is not known which bits hls4ml's template for `layer` computes; None if it is known."""
    name = op.function_of(layer.operation)
    if design.backend not in KNOWN_BACKENDS:
        return (
            f"it is for backend {design.backend}, whose arithmetic has no emulation; those that have: "
            f"{', '.join(name for name in KNOWN_BACKENDS if name != VERILOG)}"
        )
    if design.backend == CATAPULT:
        reason = _unknown_of_catapult(layer, name)
        return None if reason is None else f"it has no emulation for backend {design.backend}: {reason}"
    return None


def _unknown_of_catapult(layer: LayerSpec, name: str) -> str | None:
    operation = layer.operation
    if not isinstance(operation, _CATAPULT_OPERATIONS):
        return f"emulated are {', '.join(kind.__name__ for kind in _CATAPULT_OPERATIONS)}"
    if layer.is_depthwise and len(layer.output_shape) == 2:
        return "of depthwise layers only two-dimensional ones were compared"
    if name and name not in _CATAPULT_ACTIVATIONS:
        return f"its table is not known here; emulated are {', '.join(_CATAPULT_ACTIVATIONS)}"
    kind = layer.types["result"]
    if kind.rounding not in _CATAPULT_ROUNDINGS or kind.overflow not in _CATAPULT_OVERFLOWS:
        return f"rounding {kind.rounding} with overflow {kind.overflow} was not compared with ac_fixed"
    return None
