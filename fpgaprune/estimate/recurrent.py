"""GRU and LSTM: the hardware computes one step, and all steps of a sample use it in turn.

The two products of a step follow the laws of any matrix product. In addition there are one table for every two numbers
of each gate, and three multiplications of two variables for every unit. The cycles of a step beyond its products were
read off eleven published reports of hls4ml's recurrent layers (Vivado HLS 2019.1 and 2019.2), which they meet within
an eighth; there was no report of Vitis HLS.
"""

from __future__ import annotations

import math

from fpgaprune.estimate.device import dsps_per_product, speed_of
from fpgaprune.estimate.features import DesignFeatures, LayerFeatures
from fpgaprune.estimate.hardware import Hardware
from fpgaprune.estimate.memory import table_blocks
from fpgaprune.estimate.multiplications import product_hardware
from fpgaprune.estimate.window import pace

# A step takes so many cycles beyond the turns of its products, and so many delays of an addition.
_HANDOVER = 4
_DELAYS = 30
# No coefficient was fitted to recurrent layers: of the eleven reports, one has 3.4 times the LUTs of its estimate, the
# others have 0.7 to 2.5 times.
RECURRENT_DOUBT = 2.0
# Multiplications of two variables for every unit: a GRU's reset gate and its mean of two, an LSTM's three gates.
_GATED = 3


def recurrent(layer: LayerFeatures, design: DesignFeatures) -> Hardware:
    """Both products, the gates' tables and multipliers; each step of the sample takes one turn of them."""
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
