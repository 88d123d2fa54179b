"""`Miter`: what each register and output takes in two modules with the same registers, side by side, for ABC."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from fpgaprune.fabric.gate_level import NO_VALUE, ONE_BIT, Bit, GateLevel

ZERO, ONE, CUT = "zero", "one", "cut"


@dataclass(frozen=True, slots=True)
class Pair:
    """A register or an output of the Verilog, and what the netlist has in its place.

    Attributes:
        name: of the Verilog.
        verilog: signal of what it takes.
        netlist: the same in the netlist.
        is_cut: whether one of them depends on what is not known.
    """

    name: str
    verilog: str
    netlist: str
    is_cut: bool


@dataclass
class Miter:
    """A circuit of both modules that begins at registers and inputs, which both share by name.

    A register that the netlist lacks has the value that `constants` says, else any.

    Attributes:
        verilog: the module as its Verilog says.
        netlist: the same after synthesis.
        constants: outputs of registers of `verilog` to the signals `ZERO` or `ONE` that stand for them; `CUT` for one
            that is constant in the netlist and reads a memory, so that nobody knows.
        inputs: signals that may have any value.
        lines: of the circuit, in BLIF.
    """

    verilog: GateLevel
    netlist: GateLevel
    constants: Mapping[Bit, str] = field(default_factory=dict)
    inputs: set[str] = field(default_factory=set, init=False)
    lines: list[str] = field(default_factory=list, init=False)
    _made: dict[tuple[str, Bit], tuple[str, bool]] = field(default_factory=dict, init=False)

    def pairs(self) -> list[Pair]:
        """Return each register that the netlist has too, or that is the same constant there, and each output."""
        found = []
        for output, given in self.verilog.registers.items():
            there = self._in_netlist(output)
            if there is None:
                written, known = self._written(output), self.constants.get(output)
                if written is not None and known in (written, CUT):
                    found.append(self._pair(self._name(output), given, (written, known == CUT)))
                continue
            after = self._signal("next", there, self._next)
            if after[0]:
                found.append(self._pair(self._name(output), given, after))
            elif there in self.netlist.cut or there in self.netlist.gates:
                # A memory or a multiplier has the register in it.
                found.append(Pair(self._name(output), ZERO, ONE, True))
            elif there in self.netlist.read:
                # It is lost: nothing drives the wire, and something reads it.
                found.append(Pair(self._name(output), ZERO, ONE, False))
        for name, bit in self.verilog.outputs.items():
            found.append(self._pair(name, bit, self._signal("netlist", self.netlist.outputs[name], self._own)))
        return found

    def constant_pairs(self) -> list[Pair]:
        """Return each register of `constants` with its value, which it must keep."""
        return [
            self._pair(self._name(bit), self.verilog.registers[bit], (value, False))
            for bit, value in self.constants.items()
            if value != CUT
        ]

    def lacking(self) -> dict[Bit, str | None]:
        """Return the registers of the Verilog that the netlist lacks, and the constant that it has in their place."""
        return {bit: self._written(bit) for bit in self.verilog.registers if self._in_netlist(bit) is None}

    def blif(self, pairs: Iterable[Pair]) -> str:
        """Return the circuit with an output for each pair, which is 1 where its two signals differ."""
        differ = [f".names {pair.verilog} {pair.netlist} o{at}\n10 1\n01 1" for at, pair in enumerate(pairs)]
        outputs = " ".join(f"o{at}" for at in range(len(differ)))
        head = (
            f".model miter\n.inputs {' '.join(sorted(self.inputs))}\n.outputs {outputs}\n.names {ZERO}\n.names {ONE}\n1"
        )
        return "\n".join([head, *self.lines, *differ, ".end\n"])

    def _pair(self, name: str, bit: Bit, other: tuple[str, bool]) -> Pair:
        signal, is_cut = self._signal("verilog", bit, self._shared)
        return Pair(name, signal, other[0], is_cut or other[1])

    def _name(self, bit: Bit) -> str:
        return self.verilog.names.get(bit, [""])[0]

    def _in_netlist(self, bit: Bit) -> Bit | None:
        """Return the bit of the netlist with a name of `bit` of the Verilog; None where there is none or a constant."""
        return next((there for there in self._all_in_netlist(bit) if isinstance(there, int)), None)

    def _written(self, bit: Bit) -> str | None:
        """Return the constant that the netlist has for a bit of the Verilog, None where it has no value."""
        found = next((there for there in self._all_in_netlist(bit) if there != NO_VALUE), None)
        return None if found is None else ONE if found == ONE_BIT else ZERO

    def _all_in_netlist(self, bit: Bit) -> Iterator[Bit]:
        return (self.netlist.bits.get(name, NO_VALUE) for name in self.verilog.names.get(bit, ()))

    def _shared(self, bit: Bit) -> tuple[str, bool] | None:
        """Return the signal of a register, an input or a cut of the Verilog: that of the netlist, by name."""
        if bit in self.verilog.gates:
            return None
        there = self._in_netlist(bit)
        if there is not None:
            signal, is_cut = self._signal("netlist", there, self._own)
            return signal, is_cut or not self.verilog.is_known(bit)
        known = self.constants.get(bit)
        if known in (ZERO, ONE):
            return known, False
        # Where synthesis wrote a constant for it, what reads it must not depend on it.
        return self._input(f"of_verilog_{bit}"), known == CUT or self._written(bit) is None

    def _own(self, bit: Bit) -> tuple[str, bool] | None:
        """Return the signal of a register, an input or a cut of the netlist."""
        return None if bit in self.netlist.gates else (self._input(f"of_netlist_{bit}"), not self.netlist.is_known(bit))

    def _next(self, bit: Bit) -> tuple[str, bool] | None:
        """Return what a register of the netlist takes; "" for what is none."""
        if bit in self.netlist.registers:
            return self._signal("netlist", self.netlist.registers[bit], self._own)
        return None if bit in self.netlist.gates else ("", False)

    def _input(self, name: str) -> str:
        self.inputs.add(name)
        return name

    def _signal(self, kind: str, root: Bit, leaf: Callable[[Bit], tuple[str, bool] | None]) -> tuple[str, bool]:
        """Return the signal of bit `root`, and whether it depends on what is not known; writes its gates."""
        gates = self.verilog.gates if kind == "verilog" else self.netlist.gates
        stack = [root]
        while stack:
            bit = stack[-1]
            if (kind, bit) in self._made:
                stack.pop()
                continue
            if isinstance(bit, str):
                self._made[kind, bit] = self._constant(kind, bit)
                continue
            found = leaf(bit)
            if found is None:
                waiting = [arg for arg in gates[bit][0] if (kind, arg) not in self._made]
                if waiting:
                    stack.extend(waiting)
                    continue
                args, table = gates[bit]
                found = self._gate(f"{kind}_{bit}", [self._arg(kind, arg) for arg in args], table)
            self._made[kind, bit] = found
        return self._made[kind, root]

    def _arg(self, kind: str, bit: Bit) -> tuple[str, bool]:
        """Return the signal of an input of a gate; what has no value may have another one at each."""
        return self._constant(kind, NO_VALUE) if bit == NO_VALUE else self._made[kind, bit]

    def _constant(self, kind: str, bit: str) -> tuple[str, bool]:
        if bit == NO_VALUE:
            return self._input(f"{kind}_unknown_{len(self.inputs)}"), True
        return ONE if bit == ONE_BIT else ZERO, False

    def _gate(self, name: str, args: list[tuple[str, bool]], table: str) -> tuple[str, bool]:
        if any(not signal for signal, _ in args):
            return "", False
        self.lines.append(f".names {' '.join(signal for signal, _ in args)} {name}\n{table}")
        return name, any(is_cut for _, is_cut in args)
