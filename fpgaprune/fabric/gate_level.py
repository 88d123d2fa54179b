"""`GateLevel`: a module as gates and registers, as yosys writes it in BLIF."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from fpgaprune.errors import RtlError

# A bit: its number, or a constant: "0", "1" or "x".
Bit = int | str
# Inputs of a gate, and the rows of its truth table, in BLIF, where it gives a 1.
Gate = tuple[tuple[Bit, ...], str]
ZERO_BIT, ONE_BIT, NO_VALUE = "0", "1", "x"
_CONSTANTS: Mapping[str, Bit] = {"$false": ZERO_BIT, "$true": ONE_BIT, "$undef": NO_VALUE}
_WIRE, _CLOCK = "1 1", "clk"


@dataclass(frozen=True, slots=True)
class GateLevel:
    """A module of gates.

    Attributes:
        gates: bit to the gate that makes it.
        registers: output of each register to its input.
        inputs: bits of the module's inputs.
        cut: what other cells give, as memories and multipliers, whose function is not known here.
        read: bits that a cell or an output reads.
        names: bit to the wires that have it: `acc[3]`.
        bits: the same the other way round.
        outputs: bits of the module's outputs, by wire.
    """

    gates: Mapping[Bit, Gate]
    registers: Mapping[Bit, Bit]
    inputs: frozenset[Bit]
    cut: frozenset[Bit]
    read: frozenset[Bit]
    names: Mapping[Bit, list[str]]
    bits: Mapping[str, Bit]
    outputs: Mapping[str, Bit]

    @classmethod
    def load(cls, path: Path, top: str) -> GateLevel:
        """Return module `top` of the file at `path`.

        Raises:
            RtlError: the file has no such module.
        """
        try:
            with path.open(encoding="utf-8") as file:
                found = _Blif.read(line.rstrip("\n") for line in file)
        except (OSError, UnicodeDecodeError) as error:
            raise RtlError(f"{path} is no netlist of yosys; synthesise again") from error
        if top != found.name:
            raise RtlError(f"{path} is no netlist of yosys with a module {top}; synthesise again")
        return found.module()

    def is_known(self, bit: Bit) -> bool:
        """Return whether a bit is a register or an input, and not what a memory or a multiplier gives, or nothing."""
        return bit in self.registers or bit in self.inputs


@dataclass
class _Blif:
    """The first module of a file, by the names of its wires, and which ports of its cells are outputs."""

    name: str = ""
    inputs: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    gates: dict[str, tuple[list[str], str]] = field(default_factory=dict)
    wires: dict[str, str] = field(default_factory=dict)
    registers: dict[str, str] = field(default_factory=dict)
    cells: list[list[str]] = field(default_factory=list)
    given: dict[str, set[str]] = field(default_factory=dict)

    @classmethod
    def read(cls, lines: Iterable[str]) -> _Blif:
        found, last, names, rows = cls(), "", [""], list[str]()
        for line in lines:
            if not line.startswith("."):
                rows.append(line)
                continue
            if last == found.name:
                found._gate(names, rows)
            kind, *names = line.split(" ")
            rows = []
            match kind:
                case ".model":
                    last = names[0]
                    found.name = found.name or last
                case ".outputs" if last != found.name:
                    found.given[last] = {_port(name) for name in names}
                case ".inputs" if last == found.name:
                    found.inputs = names
                case ".outputs":
                    found.outputs = names
                case ".latch":
                    found._register(names)
                case ".subckt":
                    found.cells.append(names)
            if kind != ".names":
                names = [""]
        return found

    def _gate(self, names: list[str], rows: list[str]) -> None:
        *args, name = names
        table = "\n".join(row for row in rows if row and not row.startswith("#"))
        if table == _WIRE:
            self.wires[name] = args[0]
        elif args:
            self.gates[name] = args, table

    def _register(self, names: list[str]) -> None:
        """Store a register; one without the module's clock, or for its other edge, is a cell that is not known."""
        taken, name, edge, clock, *_ = [*names, "", ""]
        if (edge, clock) == ("re", _CLOCK):
            self.registers[name] = taken
        else:
            self.cells.append([edge, f"D={taken}", f"Q={name}"])

    def module(self) -> GateLevel:
        """Return the module by numbers; a wire that takes another has its number."""
        numbers: dict[str, Bit] = dict(_CONSTANTS)

        def bit(name: str) -> Bit:
            path = []
            while name not in numbers and name in self.wires:
                path.append(name)
                name = self.wires[name]
            found = numbers.setdefault(name, len(numbers))
            numbers.update(dict.fromkeys(path, found))
            return found

        gates = {bit(name): (tuple(bit(arg) for arg in args), table) for name, (args, table) in self.gates.items()}
        registers = {bit(name): bit(taken) for name, taken in self.registers.items()}
        outputs = {name: bit(name) for name in self.outputs}
        read = {arg for args, _ in gates.values() for arg in args} | {*registers.values(), *outputs.values()}
        inputs = frozenset(bit(name) for name in self.inputs)
        driven = {*gates, *registers, *inputs, *_CONSTANTS.values()}
        cut: set[Bit] = set()
        for name, is_output in self._ends():
            number = bit(name)
            (cut if is_output or (is_output is None and number not in driven) else read).add(number)
        for name in self.wires:
            bit(name)
        bits = {name: number for name, number in numbers.items() if not name.startswith("$")}
        names: dict[Bit, list[str]] = {}
        for name, number in bits.items():
            names.setdefault(number, []).append(name)
        return GateLevel(gates, registers, inputs, frozenset(cut), frozenset(read), names, bits, outputs)

    def _ends(self) -> Iterator[tuple[str, bool | None]]:
        """Yield each wire at a cell that is not known, and whether the cell gives it; None where no model says so."""
        for cell, *ends in self.cells:
            given = self.given.get(cell)
            for end in ends:
                port, name = end.split("=", 1)
                yield name, None if given is None else _port(port) in given


def _port(name: str) -> str:
    return name.partition("[")[0]
