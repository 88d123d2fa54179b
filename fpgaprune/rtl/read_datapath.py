"""`Datapath`: a circuit read back from the text of its Verilog, value by value."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from fpgaprune.errors import CertificateError
from fpgaprune.rtl.bus import Bus, Lane
from fpgaprune.rtl.project import RtlLayer, VerilogProject

_WIRE = re.compile(r"^ *wire (?:signed )?\[\d+:0\] ([vy]\d+) = (.*);$", re.M)
_REGISTER = re.compile(r"^ *(v\d+_d\d+) <= (\w+);$", re.M)
_LOOKUP = re.compile(r"^ *(\w+_rom\d+) lookup\d+ \(\.address\((.*)\), \.data\((v\d+)\)\);$", re.M)
_BUS = re.compile(r"input wire \[(\d+):0\] in_data")
_INPUT = re.compile(r"^(?:\$signed\(|\{1'b0, )in_data\[(?:\d+):(\d+)\][)}]$")
_NAME = re.compile(r"\bv\d+(?:_d\d+)?\b")
_TERM = r"\(?(?:\$signed\([^()]*\)|-?\d+'s[dh]?-?\w+|v\d+(?:_d\d+)?)(?: <<< \d+\))?"
_SUM = re.compile(rf"^({_TERM})(?: ([+-]) ({_TERM}))?(?: ([+-]) ({_TERM}))?$")
_PART = re.compile(r"^\(?(?:\$signed\()?(v\d+(?:_d\d+)?)(?:\[\d+:(\d+)\]\))?(?: <<< (\d+)\))?$")

# A sum: coefficients of inputs (by their lowest bit on the bus) and of values that are no sums, as bits are cut off or
# compared (by name).
Form = dict[int | str, int]


def has_datapath(layer: RtlLayer, role: str) -> bool:
    """Return whether a layer has a datapath `role`."""
    return any(name.endswith(f"/{layer.module}_{role}.v") for name in layer.files)


def text_of(project: VerilogProject, layer: RtlLayer, role: str) -> tuple[int, str]:
    """Return how many bits the input bus of datapath `role` of a layer has, and the text of its files.

    Raises:
        CertificateError: a file is gone, or `to_verilog` did not write it.
    """
    module = f"{layer.module}_{role}"
    own = f"/{module}"
    names = [name for name in layer.files if name.endswith(f"{own}.v") or f"{own}_part" in name]
    try:
        texts = [(project.path / name).read_text() for name in names]
    except FileNotFoundError as error:
        raise CertificateError(f"{project.path}: {error.filename} is gone; write the Verilog again") from error
    bus = next((found for text in texts if f"module {module} " in text for found in _BUS.findall(text)), None)
    if bus is None:
        raise CertificateError(f"{project.path}: the datapath of layer {layer.layer!r} has no input bus")
    return int(bus) + 1, "\n".join(texts)


def bits_out(text: str) -> int:
    """Return how many bits leave the first module in the text of a datapath."""
    found = re.search(r"output wire \[(\d+):0\] out_data", text)
    return int(found[1]) + 1 if found else 0


@dataclass
class Datapath:
    """The lines of a datapath, from all of its files.

    Attributes:
        bits: of its input bus.
        text: of all files.
        wires: the expression of each value, for each register the value that goes into it, and for each value of a
            table the table with its address in parentheses, which is no sum.
        forms: the sums found so far.
    """

    bits: int
    text: str
    wires: Mapping[str, str]
    forms: dict[str, Form] = field(default_factory=dict)

    @classmethod
    def read(cls, project: VerilogProject, layer: RtlLayer, role: str) -> Datapath:
        """Return the datapath `role` of a layer.

        Raises:
            CertificateError: a file is gone, or `to_verilog` did not write it.
        """
        bits, text = text_of(project, layer, role)
        looked_up = {value: f"{table}({address})" for table, address, value in _LOOKUP.findall(text)}
        return cls(bits, text, {**dict(_WIRE.findall(text)), **dict(_REGISTER.findall(text)), **looked_up})

    @property
    def lookups(self) -> list[tuple[str, str, str]]:
        """The module of each table, the expression of its address, and the value that it drives."""
        return _LOOKUP.findall(self.text)

    def matrix(self, inputs: int, outputs: int, bus: Bus | None = None) -> NDArray[np.int64]:
        """Return the coefficient of each input in each output, (inputs, outputs); 0 for an input that is always 0.

        What is behind a table is no sum; what it reads is, so the coefficients of such an output are not 0 where its
        weights are not, and no more is known of them. Without a `bus` on which they lie, all inputs take as many bits.
        """
        if bus is None and self.bits % inputs:
            raise CertificateError(f"a bus of {self.bits} bits does not carry {inputs} values")
        bus = bus or Bus((Lane(0, 0, 0),), self.bits // inputs, signed=True)
        places = list(bus.places(inputs))
        if places[-1].lowest + places[-1].bits != self.bits:
            raise CertificateError(f"the project lists inputs of other widths than its bus of {self.bits} bits carries")
        numbers = {place.lowest: number for number, place in enumerate(places) if place.bits}
        found = np.zeros((inputs, outputs), np.int64)
        for output in range(outputs):
            for form in self._cone(f"y{output}"):
                for lowest, coefficient in form.items():
                    if isinstance(lowest, int) and coefficient:
                        if lowest not in numbers:
                            raise CertificateError(f"the Verilog reads bits from {lowest} on, where no input begins")
                        # A table may read an input without the zeros of its lowest bits.
                        zeros = places[numbers[lowest]].zeros
                        found[numbers[lowest], output] = coefficient >> zeros or coefficient
        return found

    def _cone(self, output: str) -> Iterator[Form]:
        """Yield every sum on which `output` depends, in terms of inputs and of values that are no sums."""
        if output not in self.wires:
            raise CertificateError(f"the Verilog has no output {output}")
        stack = _NAME.findall(self.wires[output])
        seen: set[str] = set()
        while stack:
            name = stack.pop()
            if name in seen:
                continue
            seen.add(name)
            form = self.form(name)
            yield form
            for part in form:
                if isinstance(part, str):
                    stack.extend(_NAME.findall(self.wires[part]))

    def form(self, name: str) -> Form:
        """Return the value `name` as a sum; its operands are found first, without recursion, because sums are deep."""
        stack = [name]
        while stack:
            top = stack[-1]
            text = self.wires.get(top)
            if text is None:
                raise CertificateError(f"the Verilog reads {top}, which nothing drives")
            terms = None if _INPUT.match(text) else _terms(text)
            waiting = [operand for operand, _ in terms or [] if operand not in self.forms]
            if waiting:
                stack.extend(waiting)
                continue
            self.forms[top] = self._made(top, text, terms)
            stack.pop()
        return self.forms[name]

    def _made(self, name: str, text: str, terms: list[tuple[str, int]] | None) -> Form:
        entry = _INPUT.match(text)
        if entry:
            return {int(entry[1]): 1}
        if terms is None:
            return {name: 1}
        form: Form = {}
        for operand, factor in terms:
            for part, coefficient in self.forms[operand].items():
                form[part] = form.get(part, 0) + factor * coefficient
        return form


def _terms(text: str) -> list[tuple[str, int]] | None:
    """Return the values that `text` adds up, each with its factor; None if it is no sum."""
    found = _SUM.match(text)
    if not found:
        return None
    terms = []
    first, *rest = found.groups()
    for part, sign in (
        (first, 1),
        *((part, -1 if mark == "-" else 1) for mark, part in zip(rest[::2], rest[1::2], strict=True)),
    ):
        if part is None or not _NAME.search(part):
            continue
        value = _PART.match(part)
        # Where lowest bits are cut off, the value is no longer a sum.
        if not value or (value[2] or "0") != "0":
            return None
        terms.append((value[1], sign << int(value[3] or 0)))
    return terms
