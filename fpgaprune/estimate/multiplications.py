"""Multiplications of Dense and convolution layers: the hardware that computes one output position."""

from __future__ import annotations

import math

from fpgaprune.estimate.device import dsps_per_product, speed_of
from fpgaprune.estimate.digits import Products
from fpgaprune.estimate.features import DesignFeatures, LayerFeatures
from fpgaprune.estimate.hardware import Hardware
from fpgaprune.estimate.memory import rom_blocks
from fpgaprune.estimate.trees import pipeline_registers, pipeline_stages, sum_bits

# A product goes to look-up tables if the widths of its operands multiply to no more than this (bits squared).
_FABRIC_BITS2 = {"vivado": 90, "vitis": 110}
# A multiplier that the project forces into look-up tables costs so many times as much: the tool takes no shortcuts.
_FORCED = 1.5


def uses_dsp(layer: LayerFeatures, design: DesignFeatures) -> bool:
    """Whether the products of this layer that need a multiplier take DSP slices."""
    if design.multiplier is not None:
        return design.multiplier == "dsp"
    # The declared type decides, not the largest constant: otherwise pruning could move a layer to look-up tables.
    folded = layer.strategy in ("resource", "resource_unrolled") and layer.reuse > 1
    bits = layer.weight_bits if folded else layer.constant_bits
    return layer.inp.bits * bits > _FABRIC_BITS2[design.tool]


def product_hardware(layer: LayerFeatures, design: DesignFeatures) -> Hardware:
    """The multipliers, adders and weight memories of `layer`, and the cycles that one position takes."""
    if layer.strategy in ("resource", "resource_unrolled") and layer.reuse > 1:
        return _shared(layer, design)
    return _unrolled(layer, design)


def _unrolled(layer: LayerFeatures, design: DesignFeatures) -> Hardware:
    """The hardware of an unrolled layer: a shift, adder or multiplier for every constant that is not zero.

    Equal constants on one input share it. A reuse factor sets a limit to the multipliers (`ALLOCATION ... limit`),
    which has an effect only if there are more multipliers than that.
    """
    products = layer.products
    if products is None:
        return Hardware()
    made = Hardware()
    wants = products.distinct_many
    kept = _kept(products, layer.reuse)
    bits = min(layer.weight_bits, products.constant_bits)
    speed = speed_of(design.part)
    dsp = uses_dsp(layer, design)
    adds = products.nonzero
    width = sum_bits(layer)
    made.lut["add_bit"] = adds * width
    if design.tool == "vivado":
        made.lut["add"] = adds
    made.lut["shift_add_bit"] = products.distinct_few * (layer.inp.bits + bits / 2)
    # Zeros do not count, because pruning must not add to it.
    shared = max(wants - math.ceil(products.total / layer.reuse), 0) if layer.reuse > 1 else 0
    made.lut["share"] = shared
    if layer.accum.saturates or layer.accum.rounds:
        made.lut["saturate_bit"] = adds * layer.accum.bits
    if dsp:
        made.dsp = kept * dsps_per_product(speed, layer.inp.bits, bits)
    else:
        made.lut["multiply_bit2"] = kept * layer.inp.bits * bits * (_FORCED if design.multiplier else 1.0)
    cycles = sum_cycles(layer, design)
    turns = wants / kept if kept else 0.0
    latency = cycles + max(turns - 2, 0) if turns > 2 else cycles
    made.latency_cycles = round(latency)
    made.interval_cycles = min(layer.reuse, made.latency_cycles + 1)
    made.ff.update(pipeline_registers(layer, design, dsp))
    made.ff["input_bit"] = layer.n_in * layer.inp.bits * min(cycles, 4)
    # Results of an early turn wait in registers, unless the registers of the sum already hold them.
    made.ff["turn_bit"] = max(shared * layer.accum.bits - made.ff.get("tree_bit", 0.0) / 2, 0.0)
    return made


def _kept(products: Products, reuse: int) -> float:
    """Multipliers of an unrolled layer at reuse factor `reuse`; hls4ml's limit falls with the zeros."""
    if reuse == 1:
        return products.distinct_many
    limit = math.ceil(products.total / reuse) - products.zero // reuse
    return min(products.distinct_many, max(limit, 1))


def multiplier_turns(layer: LayerFeatures) -> int:
    """How often the busiest multiplier of an unrolled layer works for one position; 1 if none is shared."""
    if layer.products is None or not layer.products.distinct_many:
        return 1
    return math.ceil(layer.products.distinct_many / _kept(layer.products, layer.reuse))


def sum_cycles(layer: LayerFeatures, design: DesignFeatures) -> int:
    """Registers from the input of an unrolled layer's products to the output of their sums."""
    return max(math.ceil(pipeline_stages(layer, design, uses_dsp(layer, design))) - 1, 0)


def _shared(layer: LayerFeatures, design: DesignFeatures) -> Hardware:
    """The hardware of a folded layer: a weight memory feeds a row of multipliers for `reuse` turns, zeros included."""
    made = Hardware()
    total = layer.n_in * layer.n_out
    multipliers = math.ceil(total / layer.reuse)
    if layer.strategy == "resource_unrolled" and layer.live_blocks is not None:
        multipliers = layer.live_blocks
    speed = speed_of(design.part)
    made.lut["add_bit"] = multipliers * sum_bits(layer)
    if design.tool == "vivado":
        made.lut["add"] = multipliers
    if layer.accum.saturates or layer.accum.rounds:
        made.lut["saturate_bit"] = multipliers * layer.accum.bits
    if uses_dsp(layer, design):
        made.dsp = multipliers * dsps_per_product(speed, layer.inp.bits, layer.weight_bits)
    else:
        made.lut["multiply_bit2"] = multipliers * layer.inp.bits * layer.weight_bits
        # A DSP slice holds and chooses its operands itself.
        made.lut["folded"] = multipliers
    # In each turn a lane chooses one of `reuse` inputs; with more turns than inputs, a product also chooses its output.
    made.lut["input_select_bit"] = min(layer.reuse, layer.n_in) * math.ceil(layer.n_in / layer.reuse) * layer.inp.bits
    # The reports show that Vivado HLS shares that choice between outputs, except at these sizes; we do not know why.
    if layer.n_in % 16 == 0 and layer.n_in <= 256 and 8 <= layer.reuse < layer.n_in and design.tool == "vivado":
        made.lut["lane_select"] = multipliers
    if layer.reuse > layer.n_in:
        made.lut["output_select_bit"] = multipliers * layer.reuse / layer.n_in * layer.accum.bits
    made.lut["output_bit"] = layer.n_out * layer.out.bits
    # A device that is slow against the clock has more registers in a multiplier and its adder.
    period = max(design.clock_ns - design.uncertainty_ns, 0.1)
    made.ff["multiplier_bit"] = multipliers * layer.accum.bits * (0.6 + speed.add_ns / period)
    made.ff["input_hold_bit"] = layer.n_in * layer.inp.bits
    made.ff["output_bit"] = layer.n_out * layer.accum.bits * (2 if layer.reuse > layer.n_in else 1)
    if multipliers > 2:
        made.bram18 = rom_blocks(multipliers * layer.weight_bits, layer.reuse)
        made.bram18_placed = made.bram18 if layer.reuse > 16 else 0
    made.latency_cycles = layer.reuse + 2
    made.interval_cycles = layer.reuse
    return made
