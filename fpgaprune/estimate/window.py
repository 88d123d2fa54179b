"""Layers that slide a window over a map (convolutions, pooling), and layers that only move its pixels."""

from __future__ import annotations

import math

from fpgaprune.estimate.device import speed_of
from fpgaprune.estimate.features import DesignFeatures, LayerFeatures
from fpgaprune.estimate.hardware import Hardware
from fpgaprune.estimate.memory import fifo_blocks
from fpgaprune.estimate.multiplications import multiplier_turns, product_hardware, sum_cycles

# A shift register of this depth fits one look-up table.
_SHIFT_DEPTH = 32


def pace(design: DesignFeatures) -> float:
    """Return the delay of a 16-bit addition as a fraction of the usable clock period."""
    period = max(design.clock_ns - design.uncertainty_ns, 0.1)
    return speed_of(design.part).add_ns / period


def convolution(layer: LayerFeatures, design: DesignFeatures) -> Hardware:
    """Estimate window, line buffers and products; a stream computes one position after another, `reuse` turns each."""
    made = Hardware()
    core = product_hardware(layer, design)
    made.add(core)
    if not design.streams:
        # hls4ml computes the partitions of a parallel convolution one after another, with one set of products.
        made.repeat(layer.copies_in_parallel)
        parts = math.ceil(layer.positions_out / layer.copies_in_parallel)
        window = layer.n_in * layer.inp.bits * layer.copies_in_parallel
        image = layer.positions_in * layer.channels_in * layer.inp.bits
        made.latency_cycles = parts * max(core.interval_cycles, 1) + core.latency_cycles
        made.interval_cycles = parts * max(core.interval_cycles, 1)
        made.ff["hold_bit"] = image if parts > 1 else 0
        # Multiplexers choose each number of the window for the current position.
        made.lut["input_select_bit"] = made.lut.get("input_select_bit", 0.0) + (window * parts if parts > 1 else 0)
        return made
    made.add(_buffers(layer))
    made.lut["window_process"] = made.ff["window_process"] = 1
    made.lut["stream_bit"] = layer.channels_out * layer.out.bits
    if layer.strategy == "resource":
        made.lut["gather"] = layer.n_in if layer.reuse > 1 else 0
    else:
        # The registers of the pipeline hold the window beside its products.
        made.ff["window_copy_bit"] = math.prod(layer.kernel) * layer.channels_in * layer.inp.bits
    made.latency_cycles = _stream_cycles(layer, design)
    made.interval_cycles = made.latency_cycles
    return made


def _stream_cycles(layer: LayerFeatures, design: DesignFeatures) -> int:
    """Count the cycles from the first pixel to the last; what a pixel takes depends on the tool and the strategy."""
    pixels, reuse, cycles = layer.positions_in, layer.reuse, sum_cycles(layer, design)
    # The unrolled strategy takes as many turns; it only leaves out the multipliers whose weights are all zero.
    folded = layer.strategy == "resource" or (layer.strategy == "resource_unrolled" and reuse > 1)
    if folded and (reuse > 1 or design.tool == "vivado"):
        sums = math.log2(max(layer.n_in / reuse, 1.0))
        overhead = (4.4 if design.tool == "vitis" else 3.2) + (8 + sums) * pace(design)
        if layer.accum.saturates:
            overhead += 5 if reuse > 1 else 2
        return pixels * round(reuse + overhead)
    if design.tool == "vitis" and math.prod(layer.kernel) > 1:
        # The tool starts the function of one output anew for every pixel (reports of hls4ml 0.8 to 1.2).
        return pixels * max(cycles + 2, reuse) + 2
    if reuse > 1 and multiplier_turns(layer) + cycles + 2 < reuse:
        # A pixel starts as soon as the turns of the previous pixel are done.
        return pixels * (multiplier_turns(layer) + cycles + 2) + 2
    return pixels * reuse + cycles + 3


def _buffers(layer: LayerFeatures) -> Hardware:
    """Estimate the registers of the window, and the shift registers of the lines above it."""
    height, width = layer.kernel
    made = Hardware()
    window = height * width * layer.channels_in
    if height * width == 1:
        return made
    if layer.encoded:
        depth = max(layer.positions_out, 1)
        made.bram18 = made.bram18_placed = window * fifo_blocks(layer.inp.bits, depth)
        made.lut["window_fifo"] = window
        made.ff["window_fifo"] = window
        return made
    made.ff["window_entry"] = window
    lines = (height - 1) * layer.channels_in * layer.inp.bits
    made.lut["line_shift"] = lines * math.ceil(layer.width_in / _SHIFT_DEPTH)
    return made


def pooling(layer: LayerFeatures, design: DesignFeatures) -> Hardware:
    """Estimate window and line buffers, and a channel's tree of comparisons, or adder tree and division."""
    height, width = layer.kernel
    made = Hardware()
    steps = (height * width - 1) * layer.channels_in * layer.inp.bits
    if not design.streams:
        made.lut["compare_bit"] = steps * layer.positions_out
        made.lut["select_bit"] = steps * layer.positions_out
        return made
    made.add(_buffers(layer))
    made.lut["pool_step"] = made.ff["pool_step"] = steps / layer.inp.bits
    made.lut["pool_bit"] = steps
    # Comparisons follow one another: in each of their cycles, half of the window waits in registers.
    made.ff["pool_bit"] = steps * height * width * pace(design) / 2 * min(layer.inp.bits / 16, 1.0)
    made.lut["window_process"] = made.ff["window_process"] = 1
    # If counting a pixel takes more than half a period, the next pixel waits.
    made.latency_cycles = layer.positions_in * (2 if pace(design) > 0.5 else 1) + 3
    made.interval_cycles = made.latency_cycles
    return made


def global_pooling(layer: LayerFeatures, design: DesignFeatures) -> Hardware:
    """Return one running comparison or sum for each channel."""
    made = Hardware()
    bits = layer.channels_in * max(layer.inp.bits, layer.accum.bits if "av" in layer.operation else 0)
    if not design.streams:
        made.lut["compare_bit"] = made.lut["select_bit"] = bits * max(layer.positions_in - 1, 1)
        return made
    made.lut["compare_bit"] = made.lut["select_bit"] = made.lut["stream_bit"] = bits
    made.lut["process"] = made.ff["process"] = 1
    made.ff["hold_bit"] = 2 * bits
    made.latency_cycles = layer.positions_in + 1
    made.interval_cycles = layer.positions_in
    return made


def reordering(layer: LayerFeatures, design: DesignFeatures) -> Hardware:
    """Estimate padding, cropping, resizing or transposing: pixels move, repeat or drop out, without arithmetic."""
    made = Hardware()
    if not design.streams:
        return made
    made.lut["process"] = made.ff["process"] = 1
    made.lut["pad_bit"] = layer.channels_out * layer.out.bits
    made.latency_cycles = max(layer.positions_in, layer.positions_out) + 2
    made.interval_cycles = made.latency_cycles
    if layer.family == "transpose":
        made.ff["hold_bit"] = layer.positions_in * layer.channels_in * layer.inp.bits
    return made
