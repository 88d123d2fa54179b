"""`ScheduledSums`: sums over kept kernels alone, a few kernels a cycle, as a part of a layer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from fpgaprune.rtl.loaded import Loaded
from fpgaprune.rtl.program import Program

MODULE = "fp_scheduled"
# A memory with more words, and more bits, is a block of its own on the device.
_WORDS, _BITS = 64, 4096
# Cycles behind the steps of a place: until the memory of its beats is free; until its first output leaves, beside those
# of the tree of additions; and the last of these, which stop while an output is not taken.
BEATS_FREE, LEAVES, TURNING = 3, 11, 5
# So long before its last output leaves, the memory of its sums is free.
SUMS_FREE = 3


def product_cycles(together: int, in_luts: bool) -> int:
    """Return the cycles of a product behind the first one: of so many values in a multiplier, or of LUTs."""
    return 2 if in_luts else together


@dataclass(frozen=True)
class ScheduledSums:
    """Weighted sums of channel-serial beats, made by a program.

    Attributes:
        program: which kernels are multiplied when.
        channels: beats of a place of the image.
        width, signed: of each value in a beat.
        bits: of a sum.
        places: sums of all outputs are made so often for a sample.
        pause: beats that belong to no place, between the last place of a row of the image and the first of the next.
        together: places whose values meet a weight in one multiplier: one, or two.
        loaded: how its memories are loaded; None where they keep what they have.
        in_luts: whether multipliers are made of LUTs, not of DSP blocks.
    """

    program: Program
    channels: int
    width: int
    signed: bool
    bits: int
    places: int
    pause: int = 0
    together: int = 1
    loaded: Loaded | None = None
    in_luts: bool = False

    @property
    def before(self) -> int:
        """Bits of the input stream."""
        return self.program.taps * self.program.split * self.width

    @property
    def after(self) -> int:
        """Bits of the output stream: a sum, and its bias if the bias is in memory."""
        return self.bits + (self.loaded.bias.width if self.loaded else 0)

    @cached_property
    def weight_bits(self) -> int:
        """Bits that hold every weight kept, or that may be loaded."""
        if self.loaded:
            return self.loaded.weight_bits
        weights = self.program.weights
        low, high = (int(weights.min()), int(weights.max())) if weights.size else (0, 0)
        return max(2, max(-low - 1, high).bit_length() + 1)

    @property
    def period(self) -> int:
        """Cycles for places that are `together`, if beats come in time: of the groups, the beats, or the outputs."""
        return max(self.program.steps, self.together * self.channels, self._turns)

    @property
    def _turns(self) -> int:
        return self.together * len(self.program.turns)

    @property
    def levels(self) -> int:
        """Levels of additions over the taps of a kernel."""
        return (self.program.taps - 1).bit_length()

    @property
    def product(self) -> int:
        """Cycles of a product behind the first one."""
        return product_cycles(self.together, self.in_luts)

    @property
    def through(self) -> int:
        """Cycles from the last beat of a place until its first output is read, as all steps come between."""
        return self.program.steps + self.levels + self.product + LEAVES - 2

    @property
    def sides(self) -> int:
        """Places whose beats are in memory, so that neither they nor the groups wait: a power of two."""
        # From the first beat of a place until another place may come there; and so that work is left at a row's end.
        beats = self.together * self.channels
        taken = max(beats + self.program.steps + BEATS_FREE, self.pause + beats + self.period)
        return 1 << max(1, (-(-taken // self.period) - 1).bit_length())

    @property
    def buffers(self) -> int:
        """Places whose sums are under way, so that the groups need not wait for the outputs: a power of two."""
        under_way = self.through + self._turns
        return 1 << max(1, (-(-under_way // self.period) - 1).bit_length())

    @property
    def parameters(self) -> dict[str, int]:
        """Parameters of the module `fp_scheduled`, by name."""
        program = self.program
        return {
            "TAPS": program.taps,
            "X_WIDTH": self.width,
            "X_SIGNED": int(self.signed),
            "W_WIDTH": self.weight_bits,
            "SUM_WIDTH": self.bits,
            "LEVELS": self.levels,
            "SPLIT": program.split,
            "TOGETHER": self.together,
            "IN_LUTS": int(self.in_luts),
            "PLACES": self.places,
            "CHANNELS": self.channels,
            "GROUPS": program.groups,
            "STEPS": program.steps,
            "TURNS": len(program.turns),
            "SIDES": self.sides,
            "BUFFERS": self.buffers,
            "SIDE": _bits_of(self.sides - 1),
            "PIECE": _piece_bits(program),
            "CHANNEL": _bits_of(self.channels - 1),
            "STEP": _bits_of(program.steps - 1),
            "TURN": _bits_of(len(program.turns) - 1),
            "GROUP": _bits_of(program.groups - 1),
            "SLOT": _bits_of(program.slots - 1),
            "BUFFER": _bits_of(self.buffers - 1),
            "GAP": max(self._gaps[1], default=0).bit_length(),
        }

    @property
    def load_parameters(self) -> dict[str, int]:
        """Parameters of the module `fp_load`, by name."""
        if self.loaded is None:
            return {}
        p, outputs = self.parameters, self.program.outputs
        shared = {name: p[name] for name in ("TAPS", "W_WIDTH", "GROUPS", "STEPS", "STEP")}
        own = {"WIDTH": self.loaded.beat, "KERNELS": len(self.program.places), "BIASES": outputs}
        return {**shared, **own, "B_WIDTH": self.loaded.bias.width, "BIAS": _bits_of(outputs - 1)}

    @property
    def bias_parameters(self) -> dict[str, int]:
        """Parameters of the module `fp_biased`, by name."""
        p = self.load_parameters
        return {"WIDTH": self.bits, "OUTPUTS": p["BIASES"], "B_WIDTH": p["B_WIDTH"], "BIAS": p["BIAS"]}

    @cached_property
    def _gaps(self) -> tuple[list[int], list[int]]:
        piece = _piece_bits(self.program)
        starts, gaps = self.program.gaps(piece, piece + _bits_of(self.channels - 1))
        return starts, gaps.tolist()

    @property
    def starts(self) -> str:
        """{channel, part} of the first step for each group, as a constant."""
        p = self.parameters
        bits, value = p["CHANNEL"] + p["PIECE"], 0
        for start in reversed(self._gaps[0]):
            value = value << bits | start
        return f"{bits * self.program.groups}'h{value:x}"

    @property
    def word_bits(self) -> int:
        """Bits of a word of the memory of kernels."""
        return self.program.groups * (1 + self.program.taps * self.weight_bits + self.parameters["GAP"])

    def words(self) -> list[int]:
        """Return the memory of kernels, a word for each step: for each group {last, weights, gap}."""
        bits, gap_bits = self.program.taps * self.weight_bits, self.parameters["GAP"]
        rows = zip(self.program.lasts.tolist(), self._kernels(), self._gaps[1], strict=True)
        values = [(int(last) << bits | kernel) << gap_bits | gap for last, kernel, gap in rows]
        return self._by_step(values, 1 + bits + gap_bits)

    def marks(self) -> list[int]:
        """Return the words without the weights: for each group {last, gap}."""
        rows = zip(self.program.lasts.tolist(), self._gaps[1], strict=True)
        gap_bits = self.parameters["GAP"]
        return self._by_step([int(last) << gap_bits | gap for last, gap in rows], 1 + gap_bits)

    def weights(self) -> list[int]:
        """Return the weights of the words: for each group those of a kernel."""
        return self._by_step(self._kernels(), self.program.taps * self.weight_bits)

    def _kernels(self) -> list[int]:
        """Return the weights of each kernel as one number, the first tap in the lowest bits."""
        mask, found = (1 << self.weight_bits) - 1, []
        for weights in self.program.weights.tolist():
            kernel = 0
            for weight in reversed(weights):
                kernel = kernel << self.weight_bits | (weight & mask)
            found.append(kernel)
        return found

    def _by_step(self, values: Sequence[int], width: int) -> list[int]:
        """Return a word for each step, with a `width`-bit value for each group, the first group in the lowest bits."""
        words = [0] * self.program.steps
        for number, value in enumerate(values):
            group, step = divmod(number, self.program.steps)
            words[step] |= value << group * width
        return words

    @property
    def turn_bits(self) -> int:
        """Bits of a word of the memory of turns."""
        return 2 + self.parameters["GROUP"] + self.parameters["SLOT"]

    def turns(self) -> list[int]:
        """Return the memory of turns: {nothing, last, group, slot}."""
        p = self.parameters
        return [
            ((turn.nothing << 1 | turn.last) << p["GROUP"] | turn.group) << p["SLOT"] | turn.slot
            for turn in self.program.turns
        ]


def in_blocks(words: int, width: int) -> bool:
    """Return whether so many `words` of `width` bits lie in blocks of memory of their own."""
    return words > _WORDS and words * width > _BITS


def _piece_bits(program: Program) -> int:
    return (program.split - 1).bit_length()


def _bits_of(value: int) -> int:
    """Count the bits that hold `value`, at least one."""
    return max(1, value.bit_length())
