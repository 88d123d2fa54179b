"""The weights of a folded layer, read back from the text of its memories and multipliers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from fpgaprune.errors import CertificateError
from fpgaprune.rtl.project import RtlLayer, VerilogProject
from fpgaprune.rtl.read_datapath import Datapath

_SEQUENCE = re.compile(r"fp_sequence #\(\.WIDTH\((\d+)\), \.BEATS\((\d+)\), \.BITS\(\d+\)\)")
_SCATTER = re.compile(r"fp_scatter #\(\.WIDTH\(\d+\), \.BEATS\((\d+)\)\)")
_ENTRY = re.compile(r"^ *\d+'d(\d+): data = (\d+)'h([0-9a-f]+);$", re.M)
_PRODUCT = re.compile(r"^(\S+) \* (\S+)$")
_GATED = re.compile(r"^(v\d+(?:_d\d+)?)\[0\] \? (v\d+(?:_d\d+)?) : 1'sd0$")
_SHIFTED = re.compile(r"^\(?(v\d+(?:_d\d+)?)(?: <<< (\d+)\))?$")
_BITS = re.compile(r"^(?:\$signed\(|\{1'b0, )?(v\d+(?:_d\d+)?)(?:\[\d+:(\d+)\])?[)}]?$")
_TAKEN = re.compile(r"^(?:\$signed\()?(v\d+(?:_d\d+)?)(?:\[(\d+):(\d+)\])?\)?$")
_CONSTANT = re.compile(r"^(-?)\d+'sd(\d+)$")


def read_memory(project: VerilogProject, layer: RtlLayer, inputs: int, outputs: int) -> NDArray[np.int64]:
    """Return the raw weights (inputs, outputs) by which a folded layer multiplies, each column times some power of two.

    Raises:
        CertificateError: a file is gone, or its text is not in the form that `to_verilog` writes.
    """
    datapath = Datapath.read(project, layer, "products")
    text = (project.path / next(n for n in layer.files if n.endswith(f"/{layer.module}.v"))).read_text()
    found = _SEQUENCE.search(text)
    beats = int(found[2]) if found else 0
    # Inputs that came in one beat are multiplied in so many cycles; zeros may fill the last one.
    scatters = _SCATTER.findall(text[: found.start()]) if found else []
    cycles = int(scatters[-1]) if scatters else 1
    if found is None or not cycles or beats % cycles or inputs % (beats // cycles):
        raise CertificateError(
            f"layer {layer.layer!r}: its Verilog counts no beats that hold {inputs} inputs; write the Verilog again"
        )
    beat = inputs * cycles // beats
    lanes = -(-beat // cycles)
    width = int(found[1]) // lanes
    silent = [lane for lane in range(lanes) if datapath.wires.get(f"v{lane}") == "1'b0"]
    # Where the layer before gives only zeros, the text reads no input; the memory has a weight for it all the same.
    read = {f"v{lane}": f"$signed(in_data[{(lane + 1) * width - 1}:{lane * width}])" for lane in silent}
    datapath = replace(datapath, wires={**datapath.wires, **read})
    reader = _Reader(datapath, lanes, width, _memories(project, layer, datapath))
    weights = np.zeros((beats, lanes, outputs), np.int64)
    for output in range(outputs):
        for lane, row in reader.rows(f"y{output}", beats):
            weights[:, lane, output] += row
    whole = weights.reshape(beats // cycles, cycles * lanes, outputs)
    if whole[:, beat:].any():
        raise CertificateError(
            f"layer {layer.layer!r}: its Verilog has weights for more than its {inputs} inputs; write the Verilog again"
        )
    return whole[:, :beat].reshape(inputs, outputs)


@dataclass(frozen=True)
class _Memory:
    """The words of a memory by address, and the Verilog expression of its address."""

    address: str
    words: Mapping[int, int]


def _memories(project: VerilogProject, layer: RtlLayer, datapath: Datapath) -> dict[str, _Memory]:
    """Return the memories of a layer, each by the name of the value that it drives."""
    found = {}
    for module, address, value in datapath.lookups:
        path = project.path / next((name for name in layer.files if name.endswith(f"/{module}.v")), module)
        if not path.is_file():
            raise CertificateError(f"{project.path}: the memory {module} is gone; write the Verilog again")
        words = {int(place): int(word, 16) for place, _, word in _ENTRY.findall(path.read_text())}
        found[value] = _Memory(address, words)
    return found


@dataclass(frozen=True)
class _Reader:
    """Reads by which weights each output of a datapath multiplies its inputs, beat by beat.

    Attributes:
        datapath: what is read.
        lanes: inputs in one beat.
        width: bits of one input.
        memories: each by the name of the value that it drives.
    """

    datapath: Datapath
    lanes: int
    width: int
    memories: Mapping[str, _Memory]

    def rows(self, output: str, beats: int) -> list[tuple[int, NDArray[np.int64]]]:
        """Return for every product in `output` the lane of its input, and the weight in each beat."""
        wires = self.datapath.wires
        source = _TAKEN.match(wires.get(output, ""))
        if source is None:
            if re.fullmatch(r"\d+'h0+", wires.get(output, "")):
                return []
            raise CertificateError(
                f"output {output} of the Verilog is not a value of its datapath; write the Verilog again"
            )
        found = []
        by_bits: dict[int, dict[int, NDArray[np.int64]]] = {}
        for part, factor in self.datapath.form(source[1]).items():
            if isinstance(part, int):
                # A weight that is the same in every beat is a constant, not a memory.
                found.append((part // self.width, np.full(beats, factor, np.int64)))
                continue
            if gated := _GATED.match(wires[part]):
                lane, bit, weights = self._gated(part, gated[1], gated[2], beats)
                if bit is None:
                    found.append((lane, factor * weights))
                    continue
                rows = by_bits.setdefault(lane, {})
                rows[bit] = rows.get(bit, 0) + factor * weights
                continue
            product = _PRODUCT.match(wires[part])
            if product is None:
                raise CertificateError(f"value {part} of the Verilog is not a product of an input and a weight")
            lane, weights = self._factors(part, product[1], product[2], beats)
            found.append((lane, factor * weights))
        found += [(lane, self._whole(lane, rows)) for lane, rows in by_bits.items()]
        if any(not 0 <= lane < self.lanes for lane, _ in found):
            raise CertificateError(f"output {output} of the Verilog reads a lane that is not an input")
        return found

    def _gated(self, name: str, flag: str, value: str, beats: int) -> tuple[int, int | None, NDArray[np.int64]]:
        """Return of a factor where a bit of the other is 1: lane and bit of the input, and the weights.

        There is no such bit if the factor is the input, and the bit one of the weights.
        """
        bit = shift = 0
        while flag not in self.memories and (cut := _BITS.match(self.datapath.wires.get(flag, ""))):
            flag, bit = cut[1], bit + int(cut[2] or 0)
        while value not in self.memories and (moved := _SHIFTED.match(self.datapath.wires.get(value, ""))):
            value, shift = moved[1], shift + int(moved[2] or 0)
        lowest = self._input(flag)
        if lowest is not None:
            return lowest // self.width, bit, self._weights(value, beats, silent=False) << shift
        lowest = self._input(value)
        if lowest is None or flag not in self.memories:
            raise CertificateError(f"value {name} of the Verilog is not a product of an input and a weight")
        return lowest // self.width, None, np.abs(self._column(self.memories[flag], bit, bit, beats)) << shift

    def _whole(self, lane: int, rows: Mapping[int, NDArray[np.int64]]) -> NDArray[np.int64]:
        """Return the weights of an input that is multiplied bit by bit, from those of each bit."""
        signed = not self.datapath.wires.get(f"v{lane}", "").startswith("{1'b0, ")
        declared = re.search(rf"^ +wire signed \[(\d+):0\] v{lane} =", self.datapath.text, re.M)
        # The highest bit of an input without a sign is always 0; that of one with a sign counts negative.
        bits = int(declared[1]) + signed if declared else 0
        wanted = [-(1 << bit) if signed and bit == bits - 1 else 1 << bit for bit in range(bits)]
        weights = rows.get(0, np.zeros(1, np.int64)) * (wanted[0] if wanted else 0)
        if sorted(rows) != list(range(bits)) or any((rows[bit] != weights * wanted[bit]).any() for bit in rows):
            raise CertificateError(f"the Verilog does not multiply every bit of input {lane} by the same weights")
        return weights

    def _factors(self, name: str, one: str, two: str, beats: int) -> tuple[int, NDArray[np.int64]]:
        for value, weight in ((one, two), (two, one)):
            lowest = self._input(value)
            if lowest is not None:
                return lowest // self.width, self._weights(weight, beats, silent=self._is_one_bit(name))
        raise CertificateError(f"value {name} of the Verilog does not multiply an input")

    def _input(self, text: str) -> int | None:
        """Return the lowest bit of the input that an expression is, maybe without low bits that are always 0."""
        source = _TAKEN.match(text)
        form = self.datapath.form(source[1]) if source else {}
        if len(form) != 1:
            return None
        ((part, factor),) = form.items()
        if isinstance(part, int):
            return part if factor == 1 else None
        cut = _TAKEN.match(self.datapath.wires[part])
        if cut is None or cut[3] is None or factor != 1 << int(cut[3]):
            return None
        return self._input(cut[1])

    def _is_one_bit(self, name: str) -> bool:
        return re.search(rf"^ +wire signed \[0:0\] {name} =", self.datapath.text, re.M) is not None

    def _weights(self, text: str, beats: int, silent: bool) -> NDArray[np.int64]:
        constant = _CONSTANT.match(text)
        if constant:
            return np.full(beats, int(f"{constant[1]}{constant[2]}"), np.int64)
        slices: list[tuple[int, int]] = []
        top = text
        while top not in self.memories:
            taken = _TAKEN.match(top)
            if taken is None:
                raise CertificateError(f"weight {text} of the Verilog does not come from a memory")
            if taken[2] is not None:
                slices.append((int(taken[2]), int(taken[3])))
            top = taken[1] if taken[1] in self.memories else self.datapath.wires.get(taken[1], "")
        # A product that is always 0 has one bit, and takes but the lowest bit of its weight.
        if silent and len(slices) > 1 and slices[0] == (0, 0):
            slices.pop(0)
        # In a slice of a slice, bits are counted from the lowest bit of the inner slice.
        low = sum(lowest for _, lowest in slices)
        high = low + slices[0][0] - slices[0][1] if slices else None
        return self._column(self.memories[top], low, high, beats)

    def _column(self, memory: _Memory, low: int, high: int | None, beats: int) -> NDArray[np.int64]:
        names = re.findall(r"v\d+(?:_d\d+)?", memory.address)
        if len(names) != 1 or self.datapath.form(names[0]) != {self.lanes * self.width: 1}:
            raise CertificateError("a memory of the Verilog is not addressed by the number of the beat")
        if set(memory.words) != set(range(beats)):
            raise CertificateError(f"a memory of the Verilog has {len(memory.words)} words; wanted {beats}")
        words = [memory.words[beat] >> low for beat in range(beats)]
        if high is None:
            return np.array(words, np.int64)
        bits = high - low + 1
        signed = [word & ((1 << bits) - 1) for word in words]
        return np.array([w - (1 << bits) if w >> (bits - 1) else w for w in signed], np.int64)
