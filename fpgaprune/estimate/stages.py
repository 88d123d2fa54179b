"""From quantities of hardware to LUTs, flip-flops, DSPs and block RAMs at each stage."""

from __future__ import annotations

from collections.abc import Mapping

from fpgaprune.estimate.hardware import Hardware

# Which share of its csynth LUTs logic synthesis leaves, by what they do. What is not named here is choice and control.
_ARITHMETIC = {"add_bit", "add", "shift_add_bit", "multiply_bit2", "softmax_bit"}
_LANES = {"lane_select", "input_select_bit", "output_select_bit"}
_MEMORY = {"line_shift", "window_fifo", "fifo_block", "fifo_block_bit", "fifo_shift", "fifo_shift_bit"}


def lut_share(name: str) -> str:
    """The coefficient that says how much of a LUT quantity logic synthesis leaves."""
    if name in _ARITHMETIC:
        return "synth.lut_arithmetic"
    if name in _LANES:
        return "synth.lut_lanes"
    if name == "saturate_bit":
        return "synth.lut_saturate"
    return "synth.lut_memory" if name in _MEMORY else "synth.lut_select"


def ff_share(name: str) -> str:
    """The same for flip-flops."""
    return "synth.ff_memory" if name in _MEMORY else "synth.ff_arithmetic"


def csynth_figures(hardware: Hardware, values: Mapping[str, float]) -> dict[str, float]:
    """What the HLS report will say, by resource."""
    return {
        "lut": sum(amount * values[f"lut.{name}"] for name, amount in hardware.lut.items()),
        "ff": sum(amount * values[f"ff.{name}"] for name, amount in hardware.ff.items()),
        "dsp": hardware.dsp,
        "bram18": hardware.bram18,
    }


def synth_figures(hardware: Hardware, values: Mapping[str, float]) -> dict[str, float]:
    """What logic synthesis will leave, by resource."""
    return {
        "lut": sum(amount * values[f"lut.{name}"] * values[lut_share(name)] for name, amount in hardware.lut.items()),
        "ff": sum(amount * values[f"ff.{name}"] * values[ff_share(name)] for name, amount in hardware.ff.items()),
        "dsp": hardware.dsp,
        "bram18": hardware.bram18_placed,
    }
