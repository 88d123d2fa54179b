"""GRU and LSTM: the hardware computes one step, and the steps of a sample go through it one after another.

The two products of a step follow the laws of any matrix product. Beside them stand one table for every two numbers of
each gate, and three multiplications of two variables for every unit. What a step takes beyond its products comes
from eleven published reports of hls4ml's recurrent layers (Vivado HLS 2019.1 and 2019.2), and differs from
them by up to an eighth; there was no report of Vitis HLS.
"""

from __future__ import annotations

import math

from fpgaprune.estimate.device import dsps_per_product, speed_of
from fpgaprune.estimate.features import DesignFeatures, LayerFeatures
from fpgaprune.estimate.hardware import Hardware
from fpgaprune.estimate.memory import table_blocks
from fpgaprune.estimate.multiplications import product_hardware
from fpgaprune.estimate.window import pace

# Cycles of a step beyond the turns of its products: for the hand-over, and for additions that wait a clock period.
_HANDOVER = 4
_DELAYS = 30
# No coefficient was fitted to recurrent layers: of the eleven reports at hand, the LUTs of one lay 3.4 times above the
# estimate, those of the others between 0.7 and 2.5.
RECURRENT_DOUBT = 2.0
# Multiplications of two variables for every unit: a GRU's reset gate and its mean of two, an LSTM's three gates.
_GATED = 3


def recurrent(layer: LayerFeatures, design: DesignFeatures) -> Hardware:
    """Both products, the gates' tables and multipliers, and as many turns of them as the sample has steps."""
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
    if design.multiplier == "fabric":
        _put(made.lut, "multiply_bit2", _GATED * units * gate_bits * bits)
    else:
        made.dsp += _GATED * units * dsps_per_product(speed_of(design.part), gate_bits, bits)
    _put(made.lut, "table_index_bit", layer.n_out * bits)
    _put(made.ff, "table_index_bit", layer.n_out * bits)
    # The two products are added gate by gate, and a new state is a sum of two.
    _put(made.lut, "add_bit", (gates + 2) * units * bits)
    _put(made.ff, "hold_bit", 2 * layer.n_out * bits + 2 * units * layer.out.bits)
    # Each step selects its inputs from those of all steps.
    _put(made.lut, "input_select_bit", layer.positions_in * layer.n_in * layer.inp.bits)
    if design.io_type == "io_stream":
        made.lut["process"] = made.ff["process"] = 1
        made.lut["stream_bit"] = units * layer.out.bits
    turns = max(made.interval_cycles, other.interval_cycles)
    made.latency_cycles = layer.positions_in * round(turns + _HANDOVER + _DELAYS * pace(design)) + 1
    made.interval_cycles = made.latency_cycles
    return made


def _put(quantities: dict[str, float], name: str, amount: float) -> None:
    quantities[name] = quantities.get(name, 0.0) + amount
