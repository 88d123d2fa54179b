"""`GateLevel`: a module as ANDs, inverters and registers, as yosys's `aigmap` writes it in JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fpgaprune.errors import RtlError
from fpgaprune.files import read_json

# A bit: its number in the netlist, or a constant, "0", "1" or "x".
Bit = int | str
Name = tuple[str, int]
_AND, _NOT, _REGISTER = "$_AND_", "$_NOT_", "$_DFF_P_"


@dataclass(frozen=True, slots=True)
class GateLevel:
    """A module of gates.

    Attributes:
        gates: bit to the inputs of the gate that makes it: two of an AND, one of an inverter.
        registers: output of each register to its input.
        inputs: bits of the module's inputs.
        cut: what other cells give, as memories and multipliers, whose function is not known here.
        read: bits that a cell or an output reads.
        names: bit to the wires, with place, that have it.
        bits: the same the other way round.
        outputs: bits of the module's outputs, by port and place.
    """

    gates: Mapping[Bit, tuple[Bit, ...]]
    registers: Mapping[Bit, Bit]
    inputs: frozenset[Bit]
    cut: frozenset[Bit]
    read: frozenset[Bit]
    names: Mapping[Bit, list[Name]]
    bits: Mapping[Name, Bit]
    outputs: Mapping[Name, Bit]

    @classmethod
    def load(cls, path: Path, top: str) -> GateLevel:
        """Return module `top` of the file at `path`.

        Raises:
            RtlError: the file has no such module.
        """
        document = read_json(path, RtlError, "a netlist of yosys", "synthesise again", strict=False)
        try:
            return cls._of(document["modules"][top])
        except (KeyError, TypeError, AttributeError) as error:
            raise RtlError(f"{path} is no netlist of yosys with a module {top}; synthesise again") from error

    @classmethod
    def _of(cls, module: Mapping[str, Any]) -> GateLevel:
        gates: dict[Bit, tuple[Bit, ...]] = {}
        registers: dict[Bit, Bit] = {}
        cut: set[Bit] = set()
        read: set[Bit] = set()
        for cell in module["cells"].values():
            wires, ways = cell["connections"], cell.get("port_directions", {})
            read.update(bit for port, bits in wires.items() if ways.get(port) != "output" for bit in bits)
            if cell["type"] == _AND:
                gates[wires["Y"][0]] = (wires["A"][0], wires["B"][0])
            elif cell["type"] == _NOT:
                gates[wires["Y"][0]] = (wires["A"][0],)
            elif cell["type"] == _REGISTER:
                registers[wires["Q"][0]] = wires["D"][0]
            else:
                cut.update(bit for port, bits in wires.items() if ways.get(port) == "output" for bit in bits)
        bits: dict[Name, Bit] = {}
        names: dict[Bit, list[Name]] = {}
        for wire, found in module["netnames"].items():
            for place, bit in enumerate(() if found.get("hide_name") else found["bits"]):
                bits[wire, place] = bit
                names.setdefault(bit, []).append((wire, place))
        ends = {
            way: {
                (port, place): bit
                for port, found in module["ports"].items()
                if found["direction"] == way
                for place, bit in enumerate(found["bits"])
            }
            for way in ("input", "output")
        }
        read.update(ends["output"].values())
        inputs = frozenset(ends["input"].values())
        return cls(gates, registers, inputs, frozenset(cut), frozenset(read), names, bits, ends["output"])

    def is_known(self, bit: Bit) -> bool:
        """Return whether a bit is a register or an input, and not what a memory or a multiplier gives, or nothing."""
        return bit in self.registers or bit in self.inputs
