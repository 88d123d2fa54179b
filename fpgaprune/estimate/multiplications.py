"""Multiplications of Dense and convolution layers: the hardware that computes one output position."""

from __future__ import annotations

import math
from dataclasses import replace

from fpgaprune.estimate.device import dsps_per_product, speed_of
from fpgaprune.estimate.digits import Products, scaled
from fpgaprune.estimate.features import DesignFeatures, LayerFeatures
from fpgaprune.estimate.hardware import Hardware
from fpgaprune.estimate.memory import rom_blocks
from fpgaprune.estimate.trees import pipeline_registers, pipeline_stages, sum_bits

# An operand of so many bits makes a product a DSP slice's; in the resource strategy of Vitis HLS, the widths of both
# operands must multiply to more than the second number (bits squared).
_DSP_BITS = 12
_VITIS_FABRIC_BITS2 = 110
# The reports count so many look-up tables more for an addition than it has bits.
_CARRY = 7
# The reports count the choice of one of so many inputs, whatever the number beyond.
_LANES = 64
# A multiplier that the project forces into look-up tables costs so many times as much: the tool takes no shortcuts.
_FORCED = 1.5


def dsp_share(layer: LayerFeatures, design: DesignFeatures) -> float:
    """Return the share of this layer's multipliers that take DSP slices; the others are made of look-up tables."""
    if design.multiplier is not None:
        return float(design.multiplier == "dsp")
    widest = max(layer.inp.bits, layer.weight_bits)
    products = layer.products
    if not is_folded(layer):
        if layer.inp.bits >= _DSP_BITS or products is None:
            return float(widest >= _DSP_BITS)
        kept = _kept(products, layer.reuse)
        return min(products.distinct_wide / kept, 1.0) if kept else 0.0
    if widest >= _DSP_BITS and (design.tool == "vivado" or layer.inp.bits * layer.weight_bits > _VITIS_FABRIC_BITS2):
        return 1.0
    if layer.cut_bits is None or layer.cut_bits > 0:
        return 0.0
    # A slice adds as well as it multiplies: a small product whose bits all reach the sum takes one for its addition,
    # and of two products that are added in one turn, one.
    turn = layer.n_in / layer.reuse
    return math.ceil(turn / 2) / turn if turn > 1 else 1.0


def is_folded(layer: LayerFeatures) -> bool:
    """Return whether the products of this layer take turns on multipliers that read their weights from a memory."""
    return layer.strategy in ("resource", "resource_unrolled") and layer.reuse > 1


def product_hardware(layer: LayerFeatures, design: DesignFeatures) -> Hardware:
    """Return the multipliers, adders and weight memories of `layer`, and the cycles that one position takes."""
    if is_folded(layer):
        return _shared(layer, design)
    if layer.live < 1 and layer.products is not None:
        layer = replace(layer, products=scaled(layer.products, layer.live))
    return _unrolled(layer, design)


def _unrolled(layer: LayerFeatures, design: DesignFeatures) -> Hardware:
    """Return the hardware of an unrolled layer: a shift, adder or multiplier for every constant that is not zero.

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
    share = dsp_share(layer, design)
    adds = products.nonzero
    width = sum_bits(layer)
    made.lut["add_bit"] = adds * (width + _CARRY)
    made.lut["shift_add_bit"] = products.distinct_few * (layer.inp.bits + bits / 2)
    # Zeros do not count, because pruning must not add to it.
    shared = max(wants - math.ceil(products.total / layer.reuse), 0) if layer.reuse > 1 else 0
    made.lut["share"] = shared
    if layer.accum.saturates or layer.accum.rounds:
        made.lut["saturate_bit"] = adds * layer.accum.bits
    made.dsp = share * kept * dsps_per_product(speed, layer.inp.bits, bits)
    made.lut["multiply_dsp"] = made.dsp
    made.lut["multiply_bit2"] = (1 - share) * kept * layer.inp.bits * bits * (_FORCED if design.multiplier else 1.0)
    cycles = sum_cycles(layer, design)
    turns = wants / kept if kept else 0.0
    latency = cycles + max(turns - 2, 0) if turns > 2 else cycles
    made.latency_cycles = round(latency)
    made.interval_cycles = min(layer.reuse, made.latency_cycles + 1)
    made.ff.update(pipeline_registers(layer, design, kept * (share or 1.0), share > 0))
    # The results of all turns but the last wait in registers.
    made.ff["turn_bit"] = shared * width * (1 - 1 / turns) if turns > 1 else 0.0
    return made


def _kept(products: Products, reuse: int) -> float:
    """Count the multipliers of an unrolled layer at reuse factor `reuse`; hls4ml's limit falls with the zeros."""
    if reuse == 1:
        return products.distinct_many
    limit = math.ceil(products.total / reuse) - products.zero // reuse
    return min(products.distinct_many, max(limit, 1))


def multiplier_turns(layer: LayerFeatures) -> int:
    """Return how often the busiest multiplier of an unrolled layer works for one position; 1 if none is shared."""
    if layer.products is None or not layer.products.distinct_many:
        return 1
    return math.ceil(layer.products.distinct_many / _kept(layer.products, layer.reuse))


def sum_cycles(layer: LayerFeatures, design: DesignFeatures) -> int:
    """Count the registers from the input of an unrolled layer's products to the output of their sums."""
    return max(math.ceil(pipeline_stages(layer, design, dsp_share(layer, design) > 0)) - 1, 0)


def _shared(layer: LayerFeatures, design: DesignFeatures) -> Hardware:
    """Estimate a folded layer: a weight memory feeds a row of multipliers for `reuse` turns, zeros included."""
    made = Hardware()
    total = layer.n_in * layer.n_out
    multipliers = math.ceil(total / layer.reuse)
    if layer.strategy == "resource_unrolled" and layer.live_blocks is not None:
        multipliers = layer.live_blocks
    speed = speed_of(design.part)
    made.lut["add_bit"] = multipliers * (sum_bits(layer) + _CARRY)
    if layer.accum.saturates or layer.accum.rounds:
        made.lut["saturate_bit"] = multipliers * layer.accum.bits
    share = dsp_share(layer, design)
    made.dsp = math.ceil(share * multipliers - 1e-9) * dsps_per_product(speed, layer.inp.bits, layer.weight_bits)
    made.lut["multiply_bit2"] = (1 - share) * multipliers * layer.inp.bits * layer.weight_bits
    # A DSP slice holds and chooses its operands itself.
    made.lut["folded"] = (1 - share) * multipliers
    # In each turn a lane chooses one of `reuse` inputs; with more turns than inputs, a product also chooses its output.
    made.lut["input_select_bit"] = min(layer.reuse, layer.n_in) * math.ceil(layer.n_in / layer.reuse) * layer.inp.bits
    # The reports show that Vivado HLS shares that choice between outputs, except at these sizes; we do not know why.
    if layer.n_in % 16 == 0 and layer.n_in <= 256 and 8 <= layer.reuse < layer.n_in and design.tool == "vivado":
        made.lut["lane_select"] = multipliers * min(layer.n_in / _LANES, 1)
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
