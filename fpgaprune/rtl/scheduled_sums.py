"""`ScheduledSums`: sums over kept kernels alone, a few kernels a cycle, as a part of a layer and as Verilog text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from fpgaprune.rtl.program import Program

MODULE = "fp_scheduled"
# Modules of hw/rtl that it contains.
CONTAINS = ("fp_group", "fp_memory", "fp_products", "fp_total", "fp_turns")
# A memory with more words, and more bits, is a block of its own on the device.
_WORDS, _BITS = 64, 4096
# Cycles from the last step of a place until its first output is read, beside those of the tree of additions.
_THROUGH = 9


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
    """

    program: Program
    channels: int
    width: int
    signed: bool
    bits: int
    places: int
    pause: int = 0
    together: int = 1

    @property
    def before(self) -> int:
        """Bits of data in."""
        return self.program.taps * self.program.split * self.width

    @property
    def after(self) -> int:
        """Bits of data out."""
        return self.bits

    @cached_property
    def weight_bits(self) -> int:
        """Bits that hold every weight kept."""
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
    def through(self) -> int:
        """Cycles from the last beat of a place until its first output leaves, as all steps come between."""
        return self.program.steps + self.levels + self.together + _THROUGH

    @property
    def sides(self) -> int:
        """Places whose beats are in memory, so that neither they nor the groups wait: a power of two."""
        # From the first beat of a place until another place may come there; and so that work is left at a row's end.
        beats = self.together * self.channels
        taken = max(beats + self.program.steps + 3, self.pause + beats + self.period)
        return 1 << max(1, (-(-taken // self.period) - 1).bit_length())

    @property
    def buffers(self) -> int:
        """Places whose sums are under way, so that the groups need not wait for the outputs: a power of two."""
        under_way = self.through + self._turns
        return 1 << max(1, (-(-under_way // self.period) - 1).bit_length())

    @property
    def parameters(self) -> dict[str, int]:
        """Those of its module, by name."""
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
        """The memory of kernels, a word for each step: for each group {last, weights, gap}."""
        p, program = self.parameters, self.program
        width = self.word_bits // program.groups
        mask = (1 << self.weight_bits) - 1
        words = [0] * program.steps
        rows = zip(program.weights.tolist(), program.lasts.tolist(), self._gaps[1], strict=True)
        for number, (weights, last, gap) in enumerate(rows):
            word = int(last)
            for weight in reversed(weights):
                word = word << self.weight_bits | (weight & mask)
            group, step = divmod(number, program.steps)
            words[step] |= (word << p["GAP"] | gap) << group * width
        return words

    @property
    def turn_bits(self) -> int:
        """Bits of a word of the memory of turns."""
        return 2 + self.parameters["GROUP"] + self.parameters["SLOT"]

    def turns(self) -> list[int]:
        """The memory of turns: {nothing, last, group, slot}."""
        p = self.parameters
        return [
            ((turn.nothing << 1 | turn.last) << p["GROUP"] | turn.group) << p["SLOT"] | turn.slot
            for turn in self.program.turns
        ]


def memory_files(module: str, sums: ScheduledSums, head: str) -> Mapping[str, str]:
    """The files, by name, of the memories of kernels and of turns."""
    kernels, turns = f"{module}_kernels", f"{module}_turns"
    p = sums.parameters
    note = f"// For each of {p['GROUPS']} groups from the lowest bits on: {{last, {p['TAPS']} weights, gap}}.\n"
    more = "// Stored sums that are read: {nothing, last, group, slot}.\n"
    return {
        f"{kernels}.v": head + note + _memory(kernels, sums.word_bits, sums.words(), p["STEP"]),
        f"{turns}.v": head + more + _memory(turns, sums.turn_bits, sums.turns(), p["TURN"]),
    }


def in_blocks(words: int, width: int) -> bool:
    """Whether so many `words` of `width` bits lie in blocks of memory of their own."""
    return words > _WORDS and words * width > _BITS


def _memory(module: str, width: int, words: Sequence[int], address: int) -> str:
    """A module that holds `words`, and gives the one at `at` a cycle later."""
    style = '    (* rom_style = "block" *)\n' if in_blocks(len(words), width) else ""
    digits = -(-width // 4)
    rows = "".join(f"        words[{place}] = {width}'h{word:0{digits}x};\n" for place, word in enumerate(words))
    return (
        f"module {module} (\n    input wire clk,\n    input wire ce,\n    input wire [{address - 1}:0] at,\n"
        f"    output reg [{width - 1}:0] word\n);\n{style}    reg [{width - 1}:0] words [0:{len(words) - 1}];\n"
        "    always @(posedge clk) begin\n        if (ce) begin\n            word <= words[at];\n        end\n    end\n"
        f"    initial begin\n{rows}    end\nendmodule\n"
    )


def _piece_bits(program: Program) -> int:
    return (program.split - 1).bit_length()


def _bits_of(value: int) -> int:
    """Bits that hold `value`, at least one."""
    return max(1, value.bit_length())
