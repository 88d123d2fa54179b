"""From quantities of hardware to LUTs, flip-flops, DSPs and block RAMs at each stage."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fpgaprune.estimate.hardware import Hardware

# The resources whose figures follow from coefficients.
CALIBRATED = ("lut", "ff")
# Logic synthesis leaves a share of the csynth LUTs, by what they do. Quantities without a name here select and control.
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
    """The coefficient that says how much of a flip-flop quantity logic synthesis leaves."""
    return "synth.ff_memory" if name in _MEMORY else "synth.ff_arithmetic"


@dataclass(frozen=True, slots=True)
class Rates:
    """LUTs, and flip-flops, per unit of each quantity: (in the HLS report, after logic synthesis)."""

    lut: Mapping[str, tuple[float, float]]
    ff: Mapping[str, tuple[float, float]]

    @classmethod
    def of(cls, values: Mapping[str, float]) -> Rates:
        """The rates of coefficients, which have full names such as `lut.add_bit`."""

        def by(prefix: str, share: Mapping[str, str]) -> dict[str, tuple[float, float]]:
            return {
                name: (values[f"{prefix}.{name}"], values[f"{prefix}.{name}"] * values[share[name]]) for name in share
            }

        luts = {n.removeprefix("lut."): lut_share(n.removeprefix("lut.")) for n in values if n.startswith("lut.")}
        ffs = {n.removeprefix("ff."): ff_share(n.removeprefix("ff.")) for n in values if n.startswith("ff.")}
        return cls(by("lut", luts), by("ff", ffs))


def stage_figures(hardware: Hardware, rates: Rates) -> dict[str, dict[str, float]]:
    """Resources by stage: `csynth`, what the HLS report will say, and `synth`, what logic synthesis will leave."""
    lut = lut_left = ff = ff_left = 0.0
    for name, amount in hardware.lut.items():
        reported, left = rates.lut[name]
        lut += amount * reported
        lut_left += amount * left
    for name, amount in hardware.ff.items():
        reported, left = rates.ff[name]
        ff += amount * reported
        ff_left += amount * left
    return {
        "csynth": {"lut": lut, "ff": ff, "dsp": hardware.dsp, "bram18": hardware.bram18},
        "synth": {"lut": lut_left, "ff": ff_left, "dsp": hardware.dsp, "bram18": hardware.bram18_placed},
    }
