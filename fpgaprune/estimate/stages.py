"""From quantities of hardware to LUTs, flip-flops, DSPs and block RAMs at each stage."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from fpgaprune.estimate.hardware import Hardware

# The resources whose figures follow from coefficients.
CALIBRATED = ("lut", "ff")
# Logic synthesis leaves about half of what high-level synthesis counts for adders, control and buffers. Of other
# quantities it leaves another share: a comparison and a cast end in the reset of a register, all outputs share the
# choice of an input, and the choice of the operands of a shared multiplier is counted as it is.
_SELECT = {"compare_bit", "select_bit", "cast_bit", "cast_vivado_bit", "saturate_bit", "softmax_bit", "output_hold"}
_LANES = {"lane_select", "input_select_bit", "output_select_bit"}


def lut_share(name: str) -> str:
    """The coefficient of the share of a LUT quantity that logic synthesis leaves."""
    if name in _SELECT:
        return "synth.lut_select"
    if name in _LANES:
        return "synth.lut_lanes"
    return "synth.lut_share" if name == "share" else "synth.lut_logic"


def ff_share(_: str) -> str:
    """The coefficient of the share of a flip-flop quantity that logic synthesis leaves."""
    return "synth.ff"


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
