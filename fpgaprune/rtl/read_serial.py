"""`SerialDatapath`: sums that are computed bit by bit, read back from the text of their Verilog.

The cycle in which an operand's bits arrive says what an adder makes of it: an operand that arrives n cycles after the
other is added as 2 ** n times itself. So the cycles are followed from adder to adder.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fpgaprune.errors import CertificateError
from fpgaprune.rtl.project import RtlLayer, VerilogProject
from fpgaprune.rtl.read_datapath import text_of

_INSTANCE = re.compile(r"^ *(fp_serial_\w+) (?:#\((.*?)\) )?\w+ \((.*)\);$", re.M)
_PORT = re.compile(r"\.(\w+)\(([^()]*)\)")
_BIT = re.compile(r"^([vc]\d+)\[(\d+)\]$")
_SLICE = re.compile(r"^in_data\[(\d+):(\d+)\]$")


@dataclass(frozen=True)
class _Stream:
    """Bits of a weighted sum of inputs; the lowest bit shows `cycle` cycles after the inputs are loaded."""

    form: dict[int, int]
    cycle: int


@dataclass(frozen=True)
class SerialDatapath:
    """Adders of bits, from all files of a datapath.

    Attributes:
        where: the layer, for messages.
        bits: of its input bus.
        instances: module, parameters and ports of each instance.
    """

    where: str
    bits: int
    instances: list[tuple[str, dict[str, str], dict[str, str]]]

    @classmethod
    def read(cls, project: VerilogProject, layer: RtlLayer, role: str) -> SerialDatapath | None:
        """Return the datapath `role` of a layer; None where it is not computed bit by bit.

        Raises:
            CertificateError: a file is gone, or `to_verilog` did not write it.
        """
        bits, text = text_of(project, layer, role)
        if "fp_serial_" not in text:
            return None
        found = [
            (module, dict(_PORT.findall(given)), dict(_PORT.findall(ports)))
            for module, given, ports in _INSTANCE.findall(text)
        ]
        return cls(f"{project.path}: layer {layer.layer!r}", bits, found)

    def matrix(self, inputs: int) -> NDArray[np.int64]:
        """Return the coefficient of each input in each word that leaves, (inputs, words).

        Raises:
            CertificateError: an adder reads bits of different cycles, or bits that nothing drives.
        """
        if self.bits % inputs:
            raise CertificateError(f"{self.where}: a bus of {self.bits} bits does not carry {inputs} values")
        streams: dict[str, _Stream] = {}
        clears: dict[str, int] = {}
        leaving: dict[int, _Stream] = {}
        # Files come in the order of their names, so an operand may be in a later file.
        rest = self.instances
        while rest:
            waiting = []
            for instance in rest:
                module, given, ports = instance
                if module == "fp_serial_clear":
                    clears[ports["clear"]] = int(given.get("SHIFT", 0))
                elif module == "fp_serial_in":
                    streams[ports["out"]] = self._input(ports["in_data"], self.bits // inputs)
                elif module == "fp_serial_add":
                    names = [self._bit(ports[port])[0] for port in ("clear", "a", "b")]
                    if names[0] not in clears or any(name not in streams for name in names[1:]):
                        waiting.append(instance)
                        continue
                    streams[ports["sum"]] = self._sum(given, ports, streams, clears)
                elif module == "fp_serial_out":
                    name, _ = self._bit(ports["in"])
                    if name not in streams:
                        waiting.append(instance)
                        continue
                    low = re.search(r":(\d+)\]", ports["out_data"])
                    leaving[int(low[1]) if low else 0] = streams[name]
            if len(waiting) == len(rest):
                raise CertificateError(f"{self.where}: the Verilog reads bits that nothing drives")
            rest = waiting
        found = np.zeros((inputs, len(leaving)), np.int64)
        for word, (_, stream) in enumerate(sorted(leaving.items())):
            for place, coefficient in stream.form.items():
                found[place, word] = coefficient
        return found

    def _bit(self, text: str) -> tuple[str, int]:
        found = _BIT.match(text)
        if not found:
            raise CertificateError(f"{self.where}: {text!r} is not a bit of a number; write the Verilog again")
        return found[1], int(found[2])

    def _input(self, text: str, width: int) -> _Stream:
        found = _SLICE.match(text)
        if not found or int(found[2]) % width or int(found[1]) - int(found[2]) != width - 1:
            raise CertificateError(f"{self.where}: {text!r} is not an input of {width} bits; write the Verilog again")
        return _Stream({int(found[2]) // width: 1}, 1)

    def _sum(
        self, given: dict[str, str], ports: dict[str, str], streams: dict[str, _Stream], clears: dict[str, int]
    ) -> _Stream:
        (clear, since), (a, a_later), (b, b_later) = (self._bit(ports[port]) for port in ("clear", "a", "b"))
        cycle = streams[a].cycle + a_later
        shift = streams[b].cycle + b_later - cycle
        # The adder must begin a number in the cycle in which its operands do.
        if shift < 0 or clears[clear] != shift or since != cycle - 1:
            raise CertificateError(
                f"{self.where}: adder {ports['sum']} reads a number {shift} cycles after the other and begins as if it "
                f"came {clears[clear]} after it; write the Verilog again"
            )
        form = dict(streams[a].form)
        factor = -1 if int(given.get("SUBTRACT", 0)) else 1
        for place, coefficient in streams[b].form.items():
            form[place] = form.get(place, 0) + (factor * coefficient << shift)
        return _Stream({place: value for place, value in form.items() if value}, cycle + 1)
