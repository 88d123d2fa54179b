"""`build`: the hardware of a whole design: its layers, what lies between them, latency and interval."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fpgaprune.estimate import layer_hardware, window
from fpgaprune.estimate.families import UNPRICED
from fpgaprune.estimate.features import DesignFeatures, LayerFeatures
from fpgaprune.estimate.hardware import Hardware
from fpgaprune.estimate.memory import FIFO_REGISTER_BITS, VITIS_FIFO_REGISTER_BITS, fifo_blocks, fifo_blocks_placed

_MODELS: dict[str, Callable[[LayerFeatures, DesignFeatures], Hardware]] = {
    "input": layer_hardware.passing,
    "reshape": layer_hardware.passing,
    "clone": layer_hardware.passing,
    "dense": layer_hardware.dense,
    "conv": window.convolution,
    "depthwise": window.convolution,
    "recurrent": layer_hardware.recurrent,
    "scale": layer_hardware.scale,
    "activation": layer_hardware.activation,
    "softmax": layer_hardware.softmax,
    "merge": layer_hardware.merge,
    "concatenation": layer_hardware.concatenation,
    "pooling": window.pooling,
    "global_pooling": window.global_pooling,
    "padding": window.reordering,
    "resize": window.reordering,
    "transpose": window.reordering,
    UNPRICED: layer_hardware.passing,
}
# Layers without hardware: they have no process and no FIFO.
_WIRES = ("input", "reshape", UNPRICED)
# Stages of a pipeline, for each Dense layer, whose registers hold the result of a layer.
_STAGES = 3


@dataclass(slots=True)
class Parts:
    """The hardware of a design, and its latency and interval.

    Attributes:
        layers: the hardware of each layer.
        between: the FIFOs or registers between layers.
        latency_cycles: from the first input to the last output.
        interval_cycles: between two samples.
    """

    layers: list[Hardware]
    between: Hardware
    latency_cycles: int
    interval_cycles: int


def build(design: DesignFeatures) -> Parts:
    """Return the hardware of `design`, layer by layer, with latency and interval."""
    layers = [_MODELS[layer.family](layer, design) for layer in design.layers]
    if not design.streams and not design.pipelined:
        for layer, hardware in zip(design.layers, layers, strict=True):
            # The accumulators of a folded layer hold its results already.
            if layer.family not in _WIRES and "output_bit" not in hardware.ff:
                _hold_outputs(layer, hardware)
    latency, interval = _schedule(design, layers)
    between = _registers(design, layers, latency) if design.pipelined else _fifos(design)
    return Parts(layers, between, latency, interval)


def _registers(design: DesignFeatures, layers: Sequence[Hardware], latency: int) -> Hardware:
    """Return the registers of the input, and those between the stages of the pipeline."""
    made = Hardware()
    active = [(x, h) for x, h in zip(design.layers, layers, strict=True) if x.family not in _WIRES]
    if not active:
        return made
    first = active[0][0]
    made.ff["hold_bit"] = first.positions_in * first.channels_in * first.inp.bits
    results = sum(x.live_out * x.positions_out * x.channels_out * x.out.bits for x, _ in active if x.products)
    sums = sum(x.family == "dense" for x, _ in active)
    # With more stages than these, the others lie within a layer, whose model counts them.
    made.ff["boundary_bit"] = results * min(latency / max(sums, 1), _STAGES)
    return made


def _hold_outputs(layer: LayerFeatures, hardware: Hardware) -> None:
    """Add a register and a multiplexer for each number of a process that writes all of its numbers at once."""
    numbers = layer.positions_out * layer.channels_out
    hardware.lut["output_hold"] = numbers
    hardware.ff["hold_bit"] = hardware.ff.get("hold_bit", 0.0) + numbers * layer.out.bits


def _fifos(design: DesignFeatures) -> Hardware:
    """Return the FIFOs between layers, one for each channel; the first and the last stream are ports and have none."""
    made = Hardware()
    for layer in [layer for layer in design.layers if layer.family not in _WIRES][:-1]:
        depth = layer.fifo_depth or layer.positions_out
        count = layer.channels_out * layer.copies
        bits = layer.out.bits
        if not design.streams:
            depth, count = 2, layer.positions_out * layer.channels_out
        if design.tool == "vitis" and design.streams:
            # Vitis HLS packs the channels of one transfer into one FIFO.
            count, bits = layer.copies, bits * layer.channels_out
        threshold = VITIS_FIFO_REGISTER_BITS if design.tool == "vitis" else FIFO_REGISTER_BITS
        blocks = fifo_blocks(bits, depth, threshold)
        made.bram18 += count * blocks
        made.bram18_placed += count * fifo_blocks_placed(bits, depth)
        kind = "fifo_block" if blocks else "fifo_shift"
        for quantities in (made.lut, made.ff):
            quantities[kind] = quantities.get(kind, 0.0) + count
            quantities[f"{kind}_bit"] = quantities.get(f"{kind}_bit", 0.0) + count * bits
            if not design.streams:
                # Every number has a FIFO and a handshake of its own.
                quantities["handshake"] = quantities.get("handshake", 0.0) + count
        if design.tool == "vitis" and depth <= 2:
            # Two entries, the fewest that there are, stand in flip-flops.
            made.ff["hold_bit"] = made.ff.get("hold_bit", 0.0) + count * bits * 2
    return made


def _schedule(design: DesignFeatures, layers: Sequence[Hardware]) -> tuple[int, int]:
    active = [(x, h) for x, h in zip(design.layers, layers, strict=True) if x.family not in _WIRES]
    if not active:
        return 0, 1
    latencies = [h.latency_cycles for _, h in active]
    if design.streams:
        longest = max(latencies)
        return round(longest + 6 + len(active)), round(longest + 1)
    if not design.pipelined:
        # Between two layers passes a cycle.
        total = round(sum(latencies) + len(active) - 1)
        return total, round(max(h.interval_cycles for _, h in active)) if design.overlaps else total
    products = [x for x, h in active if x.family == "dense"]
    interval = max([1.0, *(h.interval_cycles for _, h in active)])
    if any(x.family == "recurrent" for x, _ in active):
        # The steps of a recurrent layer are no pipeline: the tool starts a sample once the previous one has ended.
        total = round(sum(latencies) + len(products) + 1)
        return total, total
    # A register stands between two layers unless both fit into one clock period.
    if design.tool == "vitis":
        handover = (len(active) - 1 + (len(products) if interval == 1 else 0)) * min(2 * window.pace(design), 1.0)
    else:
        handover = len(active) * (0.1 + 2.6 * window.pace(design))
    return round(sum(latencies) + handover), round(interval)
