"""The kernels of a scheduled layer, read back from the text of its memories, step by step and turn by turn."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fpgaprune.errors import CertificateError
from fpgaprune.rtl.project import RtlLayer, VerilogProject
from fpgaprune.rtl.scheduled_sums import MODULE

_SUMS = re.compile(rf"\b{MODULE} #\(([^;]*?)\) sums \(")
_PARAMETER = re.compile(r"\.(\w+)\((\d+)\)")
_GIVEN = {"TAPS", "W_WIDTH", "SPLIT", "GROUPS", "STEPS", "TURNS", "CHANNEL", "PIECE", "GAP", "GROUP", "SLOT"}
_STARTS = re.compile(r"\.STARTS\(\d+'h([0-9a-f]+)\)")
_WORD = re.compile(r"^ *(words|weights)\[(\d+)\] = (\d+)'h([0-9a-f]+);$", re.M)


def read_program(project: VerilogProject, layer: RtlLayer, inputs: int, outputs: int) -> NDArray[np.int64]:
    """Return the raw kernels (taps, inputs, outputs) that a scheduled layer visits; zero where it visits none.

    Raises:
        CertificateError: a file is gone, its text is not in the form that `to_verilog` writes, or it visits a kernel
            that is zero, twice, or for no output.
    """
    given, starts = _parameters(project, layer)
    kernels = _kernels(project, layer, given)
    groups = [_sums_of(kernels, given, group, starts) for group in range(given["GROUPS"])]
    reader = _Reader(layer.layer, given, groups)
    return reader.kernels(_words(project, layer, "turns", given["TURNS"]), inputs, outputs)


def read_split(project: VerilogProject, layer: RtlLayer) -> int:
    """Return into how many parts a scheduled layer splits each kernel.

    Raises:
        CertificateError: as for `read_program`.
    """
    return _parameters(project, layer)[0]["SPLIT"]


def _parameters(project: VerilogProject, layer: RtlLayer) -> tuple[dict[str, int], int]:
    """Read the parameters of the module that computes the sums, and the start of each group."""
    found = _SUMS.search(_text(project, layer, layer.module))
    given = {name: int(value) for name, value in _PARAMETER.findall(found[1])} if found else {}
    starts = _STARTS.search(found[1]) if found else None
    if starts is None or not given.keys() >= _GIVEN:
        raise CertificateError(f"layer {layer.layer!r}: its Verilog has no schedule; write the Verilog again")
    return given, int(starts[1], 16)


# The parts of kernels of one stored sum: input channel * parts of a kernel + part, and weights.
_Sum = list[tuple[int, list[int]]]


@dataclass(frozen=True)
class _Reader:
    """What the turns make of the stored sums.

    Attributes:
        where: the layer, for messages.
        given: the parameters of its module.
        sums: for each group, its stored sums, slot by slot.
    """

    where: str
    given: dict[str, int]
    sums: list[list[_Sum]]

    def kernels(self, turns: list[int], inputs: int, outputs: int) -> NDArray[np.int64]:
        """Return the kernels (taps, inputs, outputs) that `turns` add up for every output."""
        split = self.given["SPLIT"]
        found = np.zeros((self.given["TAPS"], inputs * split, outputs), np.int64)
        unread = {(group, slot) for group, row in enumerate(self.sums) for slot in range(len(row))}
        output = 0
        for turn in turns:
            slot = turn & ((1 << self.given["SLOT"]) - 1)
            rest = turn >> self.given["SLOT"]
            group = rest & ((1 << self.given["GROUP"]) - 1)
            last, nothing = rest >> self.given["GROUP"] & 1, rest >> self.given["GROUP"] + 1
            if output == outputs:
                raise self._problem(f"has more than {outputs} outputs")
            if not nothing:
                if (group, slot) not in unread:
                    raise self._problem(f"reads sum {slot} of group {group}, which is not stored or is read twice")
                unread.remove((group, slot))
                self._add(found, self.sums[group][slot], output)
            output += last
        if output != outputs or unread:
            raise self._problem(f"makes {output} of {outputs} outputs and leaves {len(unread)} sums unread")
        return found.reshape(-1, inputs, split, outputs).transpose(2, 0, 1, 3).reshape(-1, inputs, outputs)

    def _add(self, found: NDArray[np.int64], kernels: _Sum, output: int) -> None:
        for place, weights in kernels:
            if place >= found.shape[1] or not any(weights) or found[:, place, output].any():
                channel = place // self.given["SPLIT"]
                raise self._problem(f"visits kernel ({channel}, {output}) twice, or though it is zero or none")
            found[:, place, output] = weights

    def _problem(self, text: str) -> CertificateError:
        return CertificateError(f"layer {self.where!r}: the schedule of its Verilog {text}; write the Verilog again")


def _sums_of(words: list[int], given: dict[str, int], group: int, starts: int) -> list[_Sum]:
    """Return the stored sums of `group`; behind the last one, its words must be empty."""
    taps, bits, gap_bits, piece_bits = (given[name] for name in ("TAPS", "W_WIDTH", "GAP", "PIECE"))
    place_bits = given["CHANNEL"] + piece_bits
    width = 1 + taps * bits + gap_bits
    found: list[_Sum] = [[]]
    at = starts >> group * place_bits
    for step, word in enumerate(words):
        own = word >> group * width & ((1 << width) - 1)
        gap, own = own & ((1 << gap_bits) - 1), own >> gap_bits
        at = (at + (gap + 1 if step else 0)) & ((1 << place_bits) - 1)
        place = (at >> piece_bits) * given["SPLIT"] + (at & ((1 << piece_bits) - 1))
        weights = []
        for _ in range(taps):
            weight = own & ((1 << bits) - 1)
            weights.append(weight - (1 << bits) if weight >> (bits - 1) else weight)
            own >>= bits
        found[-1].append((place, weights))
        if own:
            found.append([])
    if any(any(weights) for _, weights in found.pop()):
        raise CertificateError(f"group {group} of a schedule in the Verilog multiplies for no output")
    return found


def _kernels(project: VerilogProject, layer: RtlLayer, given: dict[str, int]) -> list[int]:
    """Return the word of each step; for loadable weights, the words with which the memory starts."""
    words = _words(project, layer, "kernels", given["STEPS"])
    if "weights[" not in _text(project, layer, f"{layer.module}_kernels"):
        return words
    weights = _words(project, layer, "kernels", given["STEPS"], "weights")
    bits, gap = given["TAPS"] * given["W_WIDTH"], given["GAP"]
    joined = []
    for word, row in zip(words, weights, strict=True):
        whole = 0
        for group in reversed(range(given["GROUPS"])):
            mark, kernel = word >> group * (1 + gap), row >> group * bits & ((1 << bits) - 1)
            own = (mark >> gap & 1) << bits | kernel
            whole = whole << 1 + bits + gap | own << gap | mark & ((1 << gap) - 1)
        joined.append(whole)
    return joined


def _words(project: VerilogProject, layer: RtlLayer, memory: str, count: int, array: str = "words") -> list[int]:
    found = _WORD.findall(_text(project, layer, f"{layer.module}_{memory}"))
    rows = {int(at): int(word, 16) for name, at, _, word in found if name == array}
    if sorted(rows) != list(range(count)):
        raise CertificateError(
            f"layer {layer.layer!r}: the memory {layer.module}_{memory} has {len(rows)} {array}; wanted {count}"
        )
    return [rows[place] for place in range(count)]


def _text(project: VerilogProject, layer: RtlLayer, module: str) -> str:
    name = next((name for name in layer.files if name.endswith(f"/{module}.v")), module)
    try:
        return (project.path / name).read_text()
    except FileNotFoundError as error:
        raise CertificateError(f"{project.path}: {name} is gone; write the Verilog again") from error
