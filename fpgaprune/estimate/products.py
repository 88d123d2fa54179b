"""Multiplications of Dense and convolution layers: the hardware that makes one output position."""

from __future__ import annotations

import math

from fpgaprune.estimate.device import dsps_per_product, speed_of
from fpgaprune.estimate.features import DesignFeatures, LayerFeatures
from fpgaprune.estimate.hardware import Hardware
from fpgaprune.estimate.memory import rom_blocks

# A product whose operand widths multiply to no more than this is cheaper in look-up tables (in bits squared).
_FABRIC_BITS2 = {"vivado": 90, "vitis": 110}
# A multiplier that the project forces into look-up tables is built without the tool's own shortcuts.
_FORCED = 1.5
# Beyond this many additions in one function Vitis HLS no longer sums in trees (seen at 5,876, not at 2,648).
_BALANCED_ADDITIONS = 4096


def uses_dsp(layer: LayerFeatures, design: DesignFeatures) -> bool:
    """Whether a product of this layer that needs a multiplier goes to a DSP slice."""
    if design.multiplier is not None:
        return design.multiplier == "dsp"
    # By the declared type, not the largest constant: else pruning could move a layer to look-up tables, at more cost.
    folded = layer.strategy in ("resource", "resource_unrolled") and layer.reuse > 1
    bits = layer.weight_bits if folded else layer.constant_bits
    return layer.inp.bits * bits > _FABRIC_BITS2[design.tool]


def product_hardware(layer: LayerFeatures, design: DesignFeatures) -> Hardware:
    """The multipliers, adders and weight memories of `layer`, with the cycles that one position takes."""
    if layer.strategy in ("resource", "resource_unrolled") and layer.reuse > 1:
        return _shared(layer, design)
    return _unrolled(layer, design)


def _unrolled(layer: LayerFeatures, design: DesignFeatures) -> Hardware:
    """Every constant has its own shift, adder or multiplier, shared by equals on one input; zeros leave nothing.

    With a reuse factor the tool is told to share multipliers (`ALLOCATION ... limit`), which only binds where more
    multipliers are left than the limit.
    """
    products = layer.products
    if products is None:
        return Hardware()
    made = Hardware()
    wants = products.distinct_many
    limit = math.ceil(products.total / layer.reuse) - products.zero // layer.reuse
    kept = min(wants, max(limit, 1)) if layer.reuse > 1 else wants
    bits = min(layer.weight_bits, products.constant_bits)
    speed = speed_of(design.part)
    dsp = uses_dsp(layer, design)
    adds = products.nonzero
    sum_bits = _sum_bits(layer)
    made.lut["add_bit"] = adds * sum_bits
    if design.tool == "vivado":
        made.lut["add"] = adds
    made.lut["shift_add_bit"] = products.distinct_few * (layer.inp.bits + bits / 2)
    # Counted without the zeros, so that pruning never adds to it.
    shared = max(wants - math.ceil(products.total / layer.reuse), 0) if layer.reuse > 1 else 0
    made.lut["share"] = shared
    if layer.accum.saturates or layer.accum.rounds:
        made.lut["saturate_bit"] = adds * layer.accum.bits
    if dsp:
        made.dsp = kept * dsps_per_product(speed, layer.inp.bits, bits)
    else:
        made.lut["multiply_bit2"] = kept * layer.inp.bits * bits * (_FORCED if design.multiplier else 1.0)
    stages = _stages(layer, design, dsp)
    cycles = max(math.ceil(stages) - 1, 0)
    levels = _levels(layer)
    turns = wants / kept if kept else 0.0
    latency = cycles + max(turns - 2, 0) if turns > 2 else cycles
    made.latency_cycles = round(latency)
    made.interval_cycles = min(layer.reuse, made.latency_cycles + 1)
    # A register that is read only every second cycle can hold two values in turn; the last period is not used up.
    deep = min(max(stages - 0.25, 0.0) / max(levels, 1.0), 2.0) * (0.8 + 0.2 / layer.reuse)
    chain = 0.8 + 0.8 / layer.reuse
    if _is_chain(layer, design):
        deep = chain
    elif products.total > _BALANCED_ADDITIONS:
        # A pruned layer that has become a tree holds no more than the chain that it was.
        deep = min(deep, chain)
    if design.tool == "vivado":
        # Vivado HLS adds three numbers at once: every second sum needs no register.
        deep *= 0.7
    made.ff["tree_bit"] = adds * sum_bits * deep
    made.ff["input_bit"] = layer.n_in * layer.inp.bits * min(made.latency_cycles, 4)
    made.ff["turn_bit"] = shared * layer.accum.bits
    return made


def _sum_bits(layer: LayerFeatures) -> float:
    """Mean width of the additions of one output: a product and half of what the sum grows by, or the accumulator."""
    constant = layer.weight_bits
    if layer.products and layer.strategy != "resource":
        constant = min(constant, layer.products.constant_bits)
    return min(layer.accum.bits, layer.inp.bits + constant + _levels(layer) / 2)


def _levels(layer: LayerFeatures) -> float:
    products = layer.products
    per_output = products.nonzero / layer.n_out if products and layer.n_out else 0.0
    return math.log2(per_output + 1)


def _is_chain(layer: LayerFeatures, design: DesignFeatures) -> bool:
    """Whether the sums of an output are made one after another: saturation forbids a tree, and so does sheer size."""
    nonzero = layer.products.nonzero if layer.products else 0
    return layer.accum.saturates or (nonzero > _BALANCED_ADDITIONS and design.tool == "vitis")


def _stages(layer: LayerFeatures, design: DesignFeatures, dsp: bool) -> float:
    """Clock periods that the multipliers and the sum of one output take; the whole ones become pipeline stages."""
    speed = speed_of(design.part)
    period = design.clock_ns - design.uncertainty_ns
    products = layer.products
    nonzero = products.nonzero if products else 0
    if _is_chain(layer, design):
        step = speed.add_ns * (2.0 if layer.accum.saturates else 1.0)
        return nonzero / layer.n_out * step / period
    adds_per_cycle = max(period / speed.add_ns, 1.0)
    if adds_per_cycle < 2:
        adds_per_cycle = 1.0
    multiply = 0.0
    if products and products.many:
        multiply = speed.multiply_ns if dsp else 1.3 * speed.add_ns
    # A multiplier that does not fit a cycle has registers at its ports too.
    first = multiply / period * 0.35 if multiply < period else 2.5 if dsp else 1.0
    return _levels(layer) / adds_per_cycle + first


def _shared(layer: LayerFeatures, design: DesignFeatures) -> Hardware:
    """A row of multipliers that takes `reuse` turns, fed from a weight memory: zeros are stored and multiplied."""
    made = Hardware()
    total = layer.n_in * layer.n_out
    multipliers = math.ceil(total / layer.reuse)
    if layer.strategy == "resource_unrolled" and layer.live_blocks is not None:
        multipliers = layer.live_blocks
    speed = speed_of(design.part)
    made.lut["add_bit"] = multipliers * _sum_bits(layer)
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
    # Each turn picks one of `reuse` inputs per lane, and one output per product where turns outlast the inputs.
    made.lut["input_select_bit"] = min(layer.reuse, layer.n_in) * math.ceil(layer.n_in / layer.reuse) * layer.inp.bits
    if layer.n_in % 16 == 0 and layer.n_in <= 256 and 8 <= layer.reuse < layer.n_in and design.tool == "vivado":
        made.lut["lane_select"] = multipliers
    if layer.reuse > layer.n_in:
        made.lut["output_select_bit"] = multipliers * layer.reuse / layer.n_in * layer.accum.bits
    made.lut["output_bit"] = layer.n_out * layer.out.bits
    # The slower the device against the clock, the more registers a multiplier and its adder are cut by.
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
