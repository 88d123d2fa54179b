"""From quantities of hardware to LUTs, flip-flops, DSPs and block RAMs at each stage."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from fpgaprune.estimate.hardware import Hardware

# The resources whose figures follow from coefficients.
CALIBRATED = ("lut", "ff")
# The share of the csynth LUTs that logic synthesis leaves depends on what they do; all other ones select or control.
_ARITHMETIC = {"add_bit", "multiply_dsp", "shift_add_bit", "multiply_bit2", "softmax_bit"}
_LANES = {"lane_select", "input_select_bit", "output_select_bit"}
_MEMORY = {"line_shift", "window_fifo", "fifo_block", "fifo_block_bit", "fifo_shift", "fifo_shift_bit"}


def lut_share(name: str) -> str:
    """The coefficient of the share of a LUT quantity that logic synthesis leaves."""
    if name in _ARITHMETIC:
        return "synth.lut_arithmetic"
    if name in _LANES:
        return "synth.lut_lanes"
    if name == "saturate_bit":
        return "synth.lut_saturate"
    return "synth.lut_memory" if name in _MEMORY else "synth.lut_select"


def ff_share(name: str) -> str:
    """The coefficient of the share of a flip-flop quantity that logic synthesis leaves."""
    return "synth.ff_memory" if name in _MEMORY else "synth.ff_arithmetic"


@dataclass(frozen=True, slots=True)
class Rates:
    """LUTs and flip-flops for a unit of each quantity, as pairs: in the HLS report, and after logic synthesis."""

    lut: Mapping[str, tuple[float, float]]
    ff: Mapping[str, tuple[float, float]]

    @classmethod
    def of(cls, values: Mapping[str, float]) -> Rates:
        """The rates that the coefficients give, whose full names are as `lut.add_bit`."""

        def by(prefix: str, share: Callable[[str], str]) -> dict[str, tuple[float, float]]:
            names = [name.removeprefix(prefix) for name in values if name.startswith(prefix)]
            return {name: (values[prefix + name], values[prefix + name] * values[share(name)]) for name in names}

        return cls(by("lut.", lut_share), by("ff.", ff_share))


def stage_figures(hardware: Hardware, rates: Rates) -> dict[str, dict[str, float]]:
    """Resources by stage: `csynth`, what the HLS report will say, and `synth`, what logic synthesis will leave."""
    return {
        stage: {
            "lut": sum(amount * rates.lut[name][at] for name, amount in hardware.lut.items()),
            "ff": sum(amount * rates.ff[name][at] for name, amount in hardware.ff.items()),
            "dsp": hardware.dsp,
            "bram18": blocks,
        }
        for at, (stage, blocks) in enumerate((("csynth", hardware.bram18), ("synth", hardware.bram18_placed)))
    }
