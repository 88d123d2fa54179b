"""`Hardware`: quantities of a layer, and the coefficients that turn them into LUTs, flip-flops, DSPs and block RAMs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field


@dataclass(slots=True)
class Hardware:
    """The hardware of one layer.

    Attributes:
        lut: name of a coefficient -> quantity, as `{"add_bit": 1024}`; the coefficient states the unit.
        ff: as `lut`, for flip-flops.
        dsp: DSP slices.
        bram18: block RAMs that high-level synthesis reports.
        bram18_placed: block RAMs that logic synthesis leaves.
        latency_cycles: from the first input to the last output.
        interval_cycles: between two samples.
    """

    lut: dict[str, float] = field(default_factory=dict)
    ff: dict[str, float] = field(default_factory=dict)
    dsp: float = 0.0
    bram18: float = 0.0
    bram18_placed: float = 0.0
    latency_cycles: float = 0.0
    interval_cycles: float = 1.0

    def add(self, other: Hardware) -> None:
        """Add the quantities of `other`; latency and interval stay."""
        for mine, theirs in ((self.lut, other.lut), (self.ff, other.ff)):
            for name, amount in theirs.items():
                mine[name] = mine.get(name, 0.0) + amount
        self.dsp += other.dsp
        self.bram18 += other.bram18
        self.bram18_placed += other.bram18_placed

    def repeat(self, times: int) -> None:
        """Multiply the quantities by `times`; latency and interval stay."""
        for quantities in (self.lut, self.ff):
            for name in quantities:
                quantities[name] *= times
        self.dsp *= times
        self.bram18 *= times
        self.bram18_placed *= times


# The resources whose figures follow from coefficients.
CALIBRATED = ("lut", "ff")
# Logic synthesis leaves about half of what high-level synthesis counts for adders, control and buffers. Of other
# quantities it leaves another share: a comparison and a cast end in the reset of a register, all outputs share the
# choice of an input, and the choice of the operands of a shared multiplier is counted as it is.
_SELECT = {"compare_bit", "select_bit", "cast_bit", "cast_vivado_bit", "saturate_bit", "softmax_bit", "output_hold"}
_LANES = {"lane_select", "input_select_bit", "output_select_bit"}


def lut_share(name: str) -> str:
    """Return the coefficient of the share of a LUT quantity that logic synthesis leaves."""
    if name in _SELECT:
        return "synth.lut_select"
    if name in _LANES:
        return "synth.lut_lanes"
    return "synth.lut_share" if name == "share" else "synth.lut_logic"


def ff_share(_: str) -> str:
    """Return the coefficient of the share of a flip-flop quantity that logic synthesis leaves."""
    return "synth.ff"


@dataclass(frozen=True, slots=True)
class Rates:
    """LUTs and flip-flops for a unit of each quantity, as pairs: in the HLS report, and after logic synthesis."""

    lut: Mapping[str, tuple[float, float]]
    ff: Mapping[str, tuple[float, float]]

    @classmethod
    def of(cls, values: Mapping[str, float]) -> Rates:
        """Return the rates that the coefficients give, whose full names are as `lut.add_bit`."""

        def by(prefix: str, share: Callable[[str], str]) -> dict[str, tuple[float, float]]:
            names = [name.removeprefix(prefix) for name in values if name.startswith(prefix)]
            return {name: (values[prefix + name], values[prefix + name] * values[share(name)]) for name in names}

        return cls(by("lut.", lut_share), by("ff.", ff_share))


def stage_figures(hardware: Hardware, rates: Rates) -> dict[str, dict[str, float]]:
    """Return the resources by stage: `csynth` (of the HLS report) and `synth` (what logic synthesis will leave)."""
    return {
        stage: {
            "lut": sum(amount * rates.lut[name][at] for name, amount in hardware.lut.items()),
            "ff": sum(amount * rates.ff[name][at] for name, amount in hardware.ff.items()),
            "dsp": hardware.dsp,
            "bram18": blocks,
        }
        for at, (stage, blocks) in enumerate((("csynth", hardware.bram18), ("synth", hardware.bram18_placed)))
    }
