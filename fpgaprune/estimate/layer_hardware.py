"""Hardware of element-wise layers, Dense layers, look-up tables of functions, softmax, GRU and LSTM."""

from __future__ import annotations

import math

from fpgaprune.design import function_named
from fpgaprune.estimate.device import dsps_per_product, speed_of
from fpgaprune.estimate.features import DesignFeatures, LayerFeatures
from fpgaprune.estimate.hardware import Hardware
from fpgaprune.estimate.memory import table_blocks
from fpgaprune.estimate.multiplications import dsp_share, multiplier_turns, product_hardware, sum_cycles
from fpgaprune.estimate.window import pace


def dense(layer: LayerFeatures, design: DesignFeatures) -> Hardware:
    """Estimate the products of a Dense layer; in a stream it collects inputs first, and all outputs leave together."""
    made = product_hardware(layer, design)
    if not design.streams:
        return made
    made.lut["process"] = made.ff["process"] = 1
    made.lut["stream_bit"] = layer.n_out * layer.out.bits
    gather = layer.positions_in if layer.positions_in > 1 else 0
    made.ff["gather_bit"] = layer.n_in * layer.inp.bits
    if layer.strategy == "resource":
        # Each number chooses between the pixel that arrives and its own register.
        made.lut["gather"] = layer.n_in if gather else 0
        extra = 9 * pace(design) + (5 if layer.accum.saturates else 0)
        made.latency_cycles = gather + layer.reuse + round(extra)
    else:
        turns = multiplier_turns(layer)
        made.latency_cycles = gather + sum_cycles(layer, design) + 1 + (turns if turns > 1 else 0)
    made.interval_cycles = made.latency_cycles
    return made


def scale(layer: LayerFeatures, design: DesignFeatures) -> Hardware:
    """Return a product with a constant and an addition for each channel."""
    made = product_hardware(layer, design) if layer.products else Hardware()
    if not design.streams:
        # A vector in parallel: every position has its own products.
        made.repeat(layer.positions_in)
    if design.streams:
        made.lut["process"] = made.ff["process"] = 1
        made.lut["stream_bit"] = layer.channels_out * layer.out.bits
        made.latency_cycles = layer.positions_in + 1 + made.latency_cycles
        made.interval_cycles = made.latency_cycles
    return made


def activation(layer: LayerFeatures, design: DesignFeatures) -> Hardware:
    """Return a comparison and a selection for each number, or a look-up table for a curved function."""
    made = Hardware()
    numbers = layer.live * (layer.channels_in if design.streams else layer.positions_in * layer.channels_in)
    function = function_named(layer.operation)
    if not layer.operation or (function is not None and function.table is None):
        made = _compared(layer, design, numbers)
    else:
        copies = math.ceil(numbers / 2)
        made.bram18 = made.bram18_placed = copies * table_blocks(layer.table_size, layer.out.bits)
        made.lut["table_index_bit"] = numbers * layer.inp.bits
        made.latency_cycles = 2
    if design.streams:
        made.lut["process"] = made.ff["process"] = 1
        made.lut["stream_bit"] = numbers * layer.out.bits
        if pace(design) > 0.25 and not layer.operation.startswith("linear"):
            made.ff["hold_bit"] = made.ff.get("hold_bit", 0.0) + numbers * layer.out.bits
        made.latency_cycles += layer.positions_in + 2 if layer.positions_in > 1 else 0
        made.interval_cycles = max(made.latency_cycles, 1)
    return made


def _compared(layer: LayerFeatures, design: DesignFeatures, numbers: float) -> Hardware:
    made = Hardware()
    rounds, saturates = layer.out.rounds, layer.out.saturates
    steps = 0.0
    if not layer.operation.startswith("linear"):
        made.lut["compare_bit"] = numbers * layer.inp.bits
        made.lut["select_bit"] = numbers * layer.out.bits
        steps = 1.0
    if layer.operation.startswith("leaky"):
        made.dsp = numbers if layer.inp.bits > 9 else 0
    if rounds or saturates:
        kind = "cast_bit" if design.tool == "vitis" else "cast_vivado_bit"
        made.lut[kind] = numbers * (layer.inp.bits + layer.out.bits)
        steps += 0.5
    made.latency_cycles = math.floor(steps * pace(design))
    made.ff["hold_bit"] = numbers * (layer.inp.bits + layer.out.bits) * made.latency_cycles
    return made


def softmax(layer: LayerFeatures, design: DesignFeatures) -> Hardware:
    """Estimate tables of exp and 1/x, a tree for the maximum, an adder tree for the sum, a product for each class."""
    made = Hardware()
    classes = layer.channels_in if design.streams else layer.positions_in * layer.channels_in
    ratio = pace(design)
    block = max(table_blocks(layer.table_size, layer.table_bits), 1)
    # In a stream the classes of one sample share their hardware, as the reuse factor says.
    lanes = math.ceil(classes / layer.reuse) if design.streams else classes
    # Each table has two ports; Vivado HLS keeps three copies of the exp table, Vitis HLS as many as the classes need.
    made.bram18 = block * (classes if design.tool == "vitis" else min(math.ceil(lanes / 2) + 1, 4))
    made.bram18_placed = made.bram18
    if design.multiplier == "fabric":
        made.lut["multiply_bit2"] = 1.5 * lanes * layer.table_bits * layer.table_bits
    else:
        made.dsp = lanes
    made.lut["softmax_bit"] = classes * layer.table_bits
    multiply = 0 if design.multiplier == "fabric" else 2 * ratio
    cycles = 1.3 + 8.4 * ratio - 2 + multiply + min(4.5 * ratio, 2.8) * math.log2(max(classes, 2)) + 2
    made.latency_cycles = max(round(cycles - 2 * ratio), 1)
    made.ff["softmax_bit"] = classes * layer.table_bits * made.latency_cycles
    if design.streams:
        made.lut["process"] = made.ff["process"] = 1
        made.lut["stream_bit"] = classes * layer.out.bits
        made.latency_cycles += 2
        made.latency_cycles *= layer.positions_in
        made.interval_cycles = made.latency_cycles
    return made


def merge(layer: LayerFeatures, design: DesignFeatures) -> Hardware:
    """Return an addition, comparison or product for each number, and what it takes to join two streams."""
    made = concatenation(layer, design)
    numbers = layer.channels_out if design.streams else layer.positions_out * layer.channels_out
    if layer.operation.startswith("mult"):
        made.dsp = numbers * dsp_share(layer, design)
    else:
        made.lut["add_bit"] = numbers * layer.out.bits
    return made


def concatenation(layer: LayerFeatures, design: DesignFeatures) -> Hardware:
    """Estimate wires; in a stream, a process that reads two."""
    made = Hardware()
    if design.streams:
        made.lut["process"] = made.ff["process"] = 1
        made.lut["stream_bit"] = layer.channels_out * layer.out.bits
        made.latency_cycles = layer.positions_out + 2
        made.interval_cycles = made.latency_cycles
    return made


def passing(layer: LayerFeatures, design: DesignFeatures) -> Hardware:
    """Estimate wires; in a stream, a clone is a process that copies the data."""
    made = Hardware()
    if design.streams and layer.family == "clone":
        made.lut["process"] = made.ff["process"] = 1
        made.lut["stream_bit"] = layer.channels_out * layer.out.bits
        made.latency_cycles = layer.positions_in + 2
        made.interval_cycles = made.latency_cycles
    return made


# A step takes so many cycles beyond the turns of its products, and so many delays of an addition.
_HANDOVER = 4
_DELAYS = 30
# No coefficient was fitted to recurrent layers: of the eleven reports, one has 3.4 times the LUTs of its estimate, the
# others have 0.7 to 2.5 times.
RECURRENT_DOUBT = 2.0
# Multiplications of two variables for every unit: a GRU's reset gate and its mean of two, an LSTM's three gates.
_GATED = 3


def recurrent(layer: LayerFeatures, design: DesignFeatures) -> Hardware:
    """Return both products, the gates' tables and multipliers; each step of the sample takes one turn of them.

    The hardware computes one step, and all steps of a sample use it in turn. The two products of a step follow the laws
    of any matrix product. In addition there are one table for every two numbers of each gate, and three multiplications
    of two variables for every unit. The cycles of a step beyond its products were read off eleven published reports of
    hls4ml's recurrent layers (Vivado HLS 2019.1 and 2019.2), which they meet within an eighth; there was no report of
    Vitis HLS.
    """
    if layer.state is None:
        return Hardware()
    made, other = product_hardware(layer, design), product_hardware(layer.state, design)
    made.add(other)
    units = layer.state.n_in
    gates = layer.n_out // units
    bits = layer.accum.bits
    made.bram18 += math.ceil(layer.n_out / 2) * table_blocks(layer.table_size, layer.table_bits)
    made.bram18_placed += math.ceil(layer.n_out / 2) * table_blocks(layer.table_size, layer.table_bits)
    gate_bits = min(layer.table_bits, bits)
    beside = Hardware(
        lut={
            "table_index_bit": layer.n_out * bits,
            # The two products are added gate by gate, and a new state is a sum of two.
            "add_bit": (gates + 2) * units * bits,
            # Each step selects its inputs from those of all steps.
            "input_select_bit": layer.positions_in * layer.n_in * layer.inp.bits,
        },
        ff={"hold_bit": 2 * layer.n_out * bits + 2 * units * layer.out.bits},
    )
    if design.multiplier == "fabric":
        beside.lut["multiply_bit2"] = _GATED * units * gate_bits * bits
    else:
        beside.dsp = _GATED * units * dsps_per_product(speed_of(design.part), gate_bits, bits)
    made.add(beside)
    if design.streams:
        made.lut["process"] = made.ff["process"] = 1
        made.lut["stream_bit"] = units * layer.out.bits
    turns = max(made.interval_cycles, other.interval_cycles)
    made.latency_cycles = layer.positions_in * round(turns + _HANDOVER + _DELAYS * pace(design)) + 1
    made.interval_cycles = made.latency_cycles
    return made
