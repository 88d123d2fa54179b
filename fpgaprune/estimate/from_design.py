"""Features of a `Design`, counted from its integer weights."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from fpgaprune.backends import VERILOG
from fpgaprune.design import (
    Concatenate,
    Convolution,
    Copy,
    Crop,
    Dense,
    Design,
    Input,
    LayerSpec,
    LookUp,
    Map,
    Merge,
    Operation,
    Pad,
    Pooling,
    Quantise,
    Recurrent,
    Reshape,
    Resize,
    Scale,
    Softmax,
    Transpose,
    settle_reuse,
)
from fpgaprune.errors import EstimateError
from fpgaprune.estimate.digits import Products, count_products, multiplier_blocks
from fpgaprune.estimate.families import UNPRICED, unpriced
from fpgaprune.estimate.features import UNCERTAINTY, DesignFeatures, LayerFeatures, Port, cut_bits, with_live_shares
from fpgaprune.estimate.verilog.fabrics import priced_families
from fpgaprune.target import Target
from fpgaprune.values import FixedType

# Backends whose vendor reports the model was fitted to, and the tool that each drives.
_TOOLS = {
    "vivado": "vivado",
    "vivadoaccelerator": "vivado",
    "vitis": "vitis",
    "vitisunified": "vitis",
    "vitisaccelerator": "vitis",
}
_FAMILIES: Mapping[type[Operation], str] = {
    Input: "input",
    Reshape: "reshape",
    Dense: "dense",
    Recurrent: "recurrent",
    Scale: "scale",
    Map: "activation",
    LookUp: "activation",
    Quantise: "activation",
    Softmax: "softmax",
    Pad: "padding",
    Crop: "padding",
    Resize: "resize",
    Merge: "merge",
    Concatenate: "concatenation",
    Copy: "clone",
    Transpose: "transpose",
}
# Hardware that holds rows of a map.
_WINDOWED = ("conv", "depthwise", "pooling")


def _as_verilog() -> str:
    return f"with fp.verilog_price(design, family) of {priced_families()}, or fpgaprune estimate --verilog"


def design_features(design: Design, target: Target | None = None) -> DesignFeatures:
    """Return the features of `design` on `target`; without one, on the part and clock that the design names.

    A layer that no model prices is left out, and `left_out` names it.

    Raises:
        EstimateError: no layer has a hardware model, a layer lacks what its model needs, the backend was never
            calibrated, or the design or the part is for our Verilog, which `verilog_price` estimates.
    """
    if design.backend == VERILOG:
        raise EstimateError(
            f"design {design.name!r} was made for our Verilog, which is no hls4ml project: estimate it {_as_verilog()}"
        )
    if target is not None and not target.part.compiles_hls:
        raise EstimateError(
            f"no tool of {target.part.vendor} builds an hls4ml project for {target.part.name}: estimate our Verilog of "
            f"design {design.name!r} {_as_verilog()}"
        )
    tool = _TOOLS.get(design.backend.lower())
    if tool is None:
        raise EstimateError(
            f"design {design.name!r} was made for backend {design.backend!r}, for which no reports were calibrated; "
            f"wanted Vivado or Vitis"
        )
    streams = design.io_type == "io_stream"
    clock = target.clock_ns if target else design.clock_ns
    part = target.order_number if target else (design.part or "")
    known: dict[str, int] = {}
    layers: list[LayerFeatures] = []
    notes: list[str] = []
    for spec in design.layers:
        layers.append(_layer(spec, design, known, layers, streams, notes))
        known[spec.name] = len(layers) - 1
    if notes and all(layer.family in ("input", UNPRICED) for layer in layers):
        raise EstimateError(notes[-1])
    split = any(x.family == "conv" and x.positions_out > x.copies_in_parallel for x in layers)
    folded = split or any(spec.strategy == "resource" for spec in design.layers)
    pipelined = not streams and not folded
    chain = all(spec.inputs == (before.name,) for before, spec in pairwise(design.layers))
    return DesignFeatures(
        name=design.name,
        layers=tuple(with_live_shares(layers) if pipelined and chain else layers),
        streams=streams,
        tool=tool,
        clock_ns=clock,
        uncertainty_ns=clock * UNCERTAINTY[tool],
        part=part.lower(),
        pipelined=pipelined,
        left_out=tuple(notes),
    )


def _layer(
    spec: LayerSpec,
    design: Design,
    known: Mapping[str, int],
    before: list[LayerFeatures],
    streams: bool,
    notes: list[str],
) -> LayerFeatures:
    where = f"layer {spec.name!r}"
    operation = spec.operation
    family = _family(operation)
    if family == UNPRICED:
        notes.append(unpriced(spec.kind, where))
    source = before[known[spec.inputs[0]]] if spec.inputs else None
    if source is None and family != "input":
        raise EstimateError(f"{where} ({spec.kind}) reads no layer; wanted one input at least")
    shape = spec.output_shape or (1,)
    positions, channels = math.prod(shape[:-1]), shape[-1]
    if family == "reshape" and streams and source and operation == Reshape():
        positions, channels = source.positions_out, source.channels_out
    out = _port(spec.types.get("result"), source.out if source else Port(16))
    inp = source.out if source else out
    weight = spec.weights.get("scale" if family == "scale" else "weight")
    products: Products | None = None
    n_in = n_out = 0
    if family in ("dense", "conv", "depthwise", "scale", "recurrent"):
        if weight is None:
            raise EstimateError(f"{where} ({spec.kind}) has no weights; wanted raw integers under 'weight' or 'scale'")
        alone = family in ("scale", "depthwise")
        n_out = channels if alone else weight.shape[-1]
        n_in = max(weight.size // n_out, 1)
        # Constants share a multiplier only on the same input: within a row.
        meet = max(channels // source.channels_out, 1) if alone and source else n_out
        products = count_products(weight.reshape(-1, meet if weight.size % meet == 0 else 1))
    accum = _port(spec.types.get("accum"), replace(out, rounds=False, saturates=False))
    weight_type = spec.types.get("scale" if family == "scale" else "weight")
    state = spec.weights.get("recurrent_weight")
    if family == "recurrent" and state is None:
        raise EstimateError(f"{where} ({spec.kind}) has no weights of its state; wanted them under 'recurrent_weight'")
    reuse = _reuse(spec, [(n_in, n_out), *([] if state is None else [(state.shape[0], state.shape[1])])], notes)
    table = next((spec.types[r] for r in ("exp_table", "table", "inv_table") if r in spec.types), None)
    features = LayerFeatures(
        name=spec.name,
        kind=spec.kind,
        family=family,
        operation=_function(operation).replace("_", ""),
        positions_in=source.positions_out if source else positions,
        positions_out=positions,
        channels_in=source.channels_out if source else channels,
        channels_out=channels,
        kernel=_kernel(spec),
        width_in=design[spec.inputs[0]].output_shape[-2] if family in _WINDOWED else 1,
        n_in=n_in,
        n_out=n_out,
        reuse=reuse,
        strategy="latency" if spec.strategy == "distributed_arithmetic" else spec.strategy,
        inp=inp,
        out=out,
        accum=accum,
        weight_bits=weight_type.width if weight_type else inp.bits,
        constant_bits=max(min(weight_type.width, weight_type.fraction + 2), 1) if weight_type else inp.bits,
        cut_bits=cut_bits(inp, _port(weight_type, inp), accum),
        products=products,
        table_size=getattr(operation, "table_size", None) or 1024,
        table_bits=table.width if table else 18,
        copies=2 if family == "clone" else 1,
        copies_in_parallel=max(positions // (getattr(operation, "partitions", None) or positions or 1), 1),
        live_blocks=_live_blocks(spec, weight, reuse),
        encoded=getattr(operation, "encoded", False),
    )
    if family != "recurrent" or state is None:
        return features
    kind = spec.types["recurrent_weight"]
    return replace(
        features,
        state=replace(
            features,
            n_in=state.shape[0],
            inp=out,
            weight_bits=kind.width,
            constant_bits=max(min(kind.width, kind.fraction + 2), 1),
            cut_bits=cut_bits(out, _port(kind, out), accum),
            products=count_products(state),
            live_blocks=_live_blocks(spec, state, reuse),
        ),
    )


def _reuse(spec: LayerSpec, sizes: list[tuple[int, int]], notes: list[str]) -> int:
    """Return the layer's reuse factor; where it divides products unevenly, the nearest that hls4ml can build."""
    wanted, strategy = spec.reuse_factor, str(spec.strategy)
    if wanted < 1:
        raise EstimateError(f"layer {spec.name!r} has reuse factor {wanted}; wanted 1 or more")
    if not strategy.startswith("resource") or not any(n_in * n_out % wanted for n_in, n_out in sizes):
        return wanted
    settled = settle_reuse(sizes, strategy, wanted)
    factor = settled.factor or 1
    notes.append(str(replace(settled, factor=factor).note(spec.name, strategy)))
    return factor


def _live_blocks(spec: LayerSpec, weight: NDArray[np.int64] | None, reuse: int) -> int | None:
    """Count the multipliers of `resource_unrolled` that have a weight other than zero; None for another strategy."""
    if spec.strategy != "resource_unrolled" or weight is None:
        return None
    blocks = multiplier_blocks(weight, reuse)
    return None if blocks is None else int(np.count_nonzero(blocks.any(axis=1)))


def _kernel(spec: LayerSpec) -> tuple[int, int]:
    operation = spec.operation
    window = operation.window if isinstance(operation, Convolution | Pooling) else None
    return (1, 1) if window is None else window.size


def _family(operation: Operation) -> str:
    """Return the hardware model of an operation."""
    if isinstance(operation, Convolution):
        return "depthwise" if operation.depthwise else "conv"
    if isinstance(operation, Pooling):
        return "global_pooling" if operation.window is None else "pooling"
    return _FAMILIES.get(type(operation), UNPRICED)


def _function(operation: Operation) -> str:
    """Return the function of an activation, a pooling or a merge."""
    if isinstance(operation, Pooling):
        return "max" if operation.largest else "average"
    return operation.function if isinstance(operation, Map | LookUp | Merge | Recurrent) else ""


def _port(kind: FixedType | None, fallback: Port) -> Port:
    if kind is None:
        return fallback
    return Port(kind.width, kind.rounding.startswith("RND"), kind.overflow.startswith("SAT"), kind.integer)
