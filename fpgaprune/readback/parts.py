"""`Parts`: a netlist as it is made: tables, registers, products and choices between nets.

A bitstream and the netlist of synthesis become such parts by the same functions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fpgaprune.readback.functions import depends, fixed
from fpgaprune.readback.netlist import ONE, ZERO, Lut, Multiplier, Netlist, Register

COPY, INVERSE = 0b10, 0b01
# The carry of three bits; the second of two bits where the third is 1, else the first.
CARRY, CHOICE = 0b11101000, 0b11001010
# Gives the net of a bit of a port.
Wires = Callable[[str, int], int]


class Parts:
    """Parts of one netlist."""

    def __init__(self) -> None:
        self.netlist = Netlist()

    def net(self) -> int:
        """Return a new net."""
        self.netlist.nets += 1
        return self.netlist.nets - 1

    def table(self, table: int, inputs: Sequence[int], place: str, output: int | None = None) -> int:
        """Return a table of up to four nets; return the net that it makes, which is `output` if that is given."""
        table, nets = reduced(table, (*inputs, *[ZERO] * (4 - len(inputs))))
        if output is None and table in (0, 0xFFFF):
            return int(table > 0)
        made = self.net() if output is None else output
        self.netlist.luts.append(Lut(table, (nets[0], nets[1], nets[2], nets[3]), made, place))
        return made

    def register(self, data: int, enable: int, reset: int, value: int, place: str, output: int | None = None) -> int:
        """Return a register that begins at `value`, and takes it where `reset` is 1."""
        made = self.net() if output is None else output
        self.netlist.registers.append(Register(data, enable, reset, value, made, place))
        return made

    def registers(self, data: Sequence[int], enable: int, place: str) -> list[int]:
        """Make registers without a reset."""
        return [self.register(net, enable, ZERO, 0, f"{place}{at}") for at, net in enumerate(data)]

    def product(self, a: Sequence[int], b: Sequence[int], a_signed: int, b_signed: int, place: str) -> list[int]:
        """Return the product of two numbers, each signed where its net is 1."""
        made = [self.net() for _ in range(len(a) + len(b))]
        self.netlist.multipliers.append(Multiplier(tuple(a), tuple(b), a_signed, b_signed, tuple(made), place))
        return made

    def chosen(self, nets: Sequence[int], by: Sequence[int], place: str) -> int:
        """Return the net that the number `by` names."""
        for at, choose in enumerate(by):
            pairs = zip(nets[::2], nets[1::2], strict=True)
            nets = [
                self.table(CHOICE, (low, high, choose), f"{place}/{at}.{number}")
                for number, (low, high) in enumerate(pairs)
            ]
        return nets[0]


def reduced(table: int, inputs: Sequence[int]) -> tuple[int, list[int]]:
    """Return a table of four inputs with constants put into it, and 0 for each input that then changes nothing."""
    for at, net in enumerate(inputs):
        if net in (ZERO, ONE):
            table = fixed(table, at, int(net == ONE))
    return table, [net if depends(table, at) else ZERO for at, net in enumerate(inputs)]
