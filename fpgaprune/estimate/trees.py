"""Adder trees and chains: their width and depth, their pipeline stages, and the registers between the stages."""

from __future__ import annotations

import math

from fpgaprune.estimate.device import Speed, speed_of
from fpgaprune.estimate.features import DesignFeatures, LayerFeatures

# With more additions in one function, Vitis HLS no longer sums in trees (seen at 5,876, not at 5,482).
_BALANCED_ADDITIONS = 5600
# Most additions of a tree are at its leaves, so that on average a sum is hardly wider than a product.
_GROWTH = 1
# Operands up to this width multiply faster in a DSP slice.
_NARROW = 9


def sum_bits(layer: LayerFeatures) -> float:
    """Return the mean width of an output's additions: that of a product and a bit of growth, at most the sum's."""
    constant: float = layer.weight_bits
    products = layer.products
    if products and products.nonzero and layer.strategy != "resource":
        constant = products.magnitude_bits / products.nonzero
    sign = 1
    return min(layer.accum.bits, max(layer.inp.bits + constant - (layer.cut_bits or 0), 1) + sign + _GROWTH)


def _levels(layer: LayerFeatures) -> float:
    products = layer.products
    per_output = products.nonzero / layer.n_out if products and layer.n_out else 0.0
    return math.log2(per_output + 1)


def pipeline_registers(layer: LayerFeatures, design: DesignFeatures, multipliers: float, dsp: bool) -> dict[str, float]:
    """Count the bits that the registers in the pipeline of multipliers and sums hold.

    Registers after l levels of an adder tree hold one number for every 2**l products. If a multiplier and one addition
    do not fit into one period, registers hold the products too. If a multiplier takes several periods, registers also
    hold the products that need no multiplier. There are so many `multipliers`.
    """
    products = layer.products
    if products is None or not products.nonzero:
        return {}
    speed, period = speed_of(design.part), design.clock_ns - design.uncertainty_ns
    bits = sum_bits(layer)
    per_period = _adds_per_period(speed, period)
    multiply = _multiply_ns(layer, design, dsp)
    first = (period - multiply) / speed.add_ns if multiply else per_period
    alone = first < 1
    cut = per_period if alone else min(first, per_period)
    alive = 0.0
    while cut < _levels(layer):
        alive += products.nonzero * 2.0**-cut
        cut += per_period
    if products.total > _BALANCED_ADDITIONS:
        # A layer that pruning turned from a chain into a tree holds no more than the chain held.
        alive = min(alive, products.nonzero * _chain_depth(layer, design))
    if _is_chain(layer, design):
        alive = products.nonzero * _chain_depth(layer, design)
    held = multipliers if alone else 0.0
    waiting = (products.nonzero - products.distinct_many) / layer.reuse**2 if dsp and multiply > period else 0.0
    # A register that is read only every second cycle can hold two values in turn.
    turns = 1.0 if _is_chain(layer, design) else 0.8 + 0.2 / layer.reuse
    # A multiplier that takes several periods holds its whole product in each.
    product = max(layer.inp.bits + min(layer.weight_bits, products.constant_bits), bits) * max(
        math.ceil(math.ceil(multiply / period) / layer.reuse), 1
    )
    return {
        "tree_bit": alive * bits * turns,
        "product_bit": held * product * turns,
        "wait_bit": max(waiting, 0.0) * bits,
    }


def _chain_depth(layer: LayerFeatures, design: DesignFeatures) -> float:
    """Return the registers for each addition of a chain; Vivado HLS adds three numbers at once."""
    return (0.8 + 0.8 / layer.reuse) * (0.7 if design.tool == "vivado" else 1.0)


def _adds_per_period(speed: Speed, period: float) -> float:
    """Return the levels of additions between two registers; 1 where they are fewer than two."""
    ratio = period / speed.add_ns
    return ratio if ratio >= 2 else 1.0


def _multiply_ns(layer: LayerFeatures, design: DesignFeatures, dsp: bool) -> float:
    """Return the delay of a multiplier of this layer in ns; 0 if the layer needs none."""
    if layer.products is None or not layer.products.many:
        return 0.0
    speed = speed_of(design.part)
    if not dsp:
        return 1.3 * speed.add_ns
    # The declared widths count, because pruning must not make a multiplier faster.
    return speed.multiply_ns if max(layer.inp.bits, layer.constant_bits) <= _NARROW else speed.multiply_wide_ns


def _is_chain(layer: LayerFeatures, design: DesignFeatures) -> bool:
    """Return whether a chain of additions sums an output: its sums saturate, or are too many for a tree."""
    nonzero = layer.products.nonzero if layer.products else 0
    return layer.accum.saturates or (nonzero > _BALANCED_ADDITIONS and design.tool == "vitis")


def pipeline_stages(layer: LayerFeatures, design: DesignFeatures, dsp: bool) -> float:
    """Return the clock periods of the multipliers and sum of an output; each whole one becomes a pipeline stage."""
    speed = speed_of(design.part)
    period = design.clock_ns - design.uncertainty_ns
    products = layer.products
    nonzero = products.nonzero if products else 0
    if _is_chain(layer, design):
        step = speed.add_ns * (2.0 if layer.accum.saturates else 1.0)
        return nonzero / layer.n_out * step / period
    multiply = _multiply_ns(layer, design, dsp)
    # A multiplier that takes longer than a period has registers at its ports too.
    first = multiply / period * 0.35 if multiply < period else 2.5 if dsp else 1.0
    return _levels(layer) / _adds_per_period(speed, period) + first
