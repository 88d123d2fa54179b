"""`Synthesised`: the netlist that synthesis made, of the same parts as one that was read back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Generic, TypeVar

from fpgaprune.errors import ReadbackError
from fpgaprune.readback.cells_file import SynthesisedCell, SynthesisedCells
from fpgaprune.readback.comparison import CellComparison, compare_netlists
from fpgaprune.readback.netlist import ONE, OPEN, ZERO, Netlist
from fpgaprune.readback.parts import COPY, Parts

_Made = TypeVar("_Made", bound=Parts)


@dataclass(frozen=True)
class Synthesised:
    """A synthesised netlist.

    Attributes:
        netlist: its cells as parts, in the places that place and route gave them.
        names: place of a part -> the name of its cell.
    """

    netlist: Netlist
    names: Mapping[str, str]

    def compared(self, netlist: Netlist) -> CellComparison:
        """Compare a netlist that was read back; errors are those of `compare_netlists`."""
        return compare_netlists(netlist, self.netlist, self.names)


class SynthesisReader(ABC, Generic[_Made]):
    """Makes parts of the cells of synthesis, from the port `serial_in` to `serial_out`.

    Args:
        cells: as they stand beside the bitstream.
        parts: gets the parts.
    """

    def __init__(self, cells: SynthesisedCells, parts: _Made) -> None:
        self.parts = parts
        self._given = cells
        self._nets: dict[int, int] = {}
        self._names: dict[str, str] = {}
        self._clocks: set[int] = set()
        # Clock behind a buffer or a PLL -> that before it, and how many times as fast it is.
        self._faster: dict[int | str, tuple[int | str, Fraction]] = {}

    def read(self) -> Synthesised:
        """Return the netlist.

        Raises:
            ReadbackError: a cell is of a type that is not compared, or moved by another clock than the pin's.
        """
        ports, netlist = self._given.ports, self.parts.netlist
        netlist.pins = {"serial_in": self.net(ports["serial_in"][0])}
        netlist.output = self.net(ports["serial_out"][0])
        for name, cell in self._given.cells.items():
            for place in self.made_of(name, cell):
                self._names[place] = name
        netlist.factor = self._factor(ports["clk"])
        return Synthesised(netlist, self._names)

    @abstractmethod
    def made_of(self, name: str, cell: SynthesisedCell) -> Iterable[str]:
        """Make the parts of a cell; return their places.

        Raises:
            ReadbackError: it is of a type that is not compared.
        """

    def net(self, bit: int | str) -> int:
        """Return the net of a bit; one that is undefined is 0, as place and route leaves it."""
        if isinstance(bit, str):
            return ONE if bit == "1" else ZERO
        if bit not in self._nets:
            self._nets[bit] = self.parts.net()
        return self._nets[bit]

    def constant(self, bit: int | str, value: int) -> None:
        """Note that a bit is a constant."""
        if isinstance(bit, int):
            self._nets[bit] = value

    def bit(self, cell: SynthesisedCell, port: str, at: int = 0, default: int = ZERO) -> int:
        """Return the net of a bit of a cell's port; `default` if nothing is connected."""
        wires = cell.connections.get(port, ())
        return self.net(wires[at]) if len(wires) > at else default

    def wire_of(self, cell: SynthesisedCell, port: str) -> int | str:
        """Return the bit of a port of one bit; a constant if nothing is connected."""
        wires = cell.connections.get(port, ())
        return wires[0] if wires else "0"

    def same(self, bits: Sequence[int | str], nets: Sequence[int], place: str) -> None:
        """Give the bits of a port, where they are wires, the values of nets that parts made."""
        for at, (bit, net) in enumerate(zip(bits, nets, strict=True)):
            if net != OPEN and not self.is_constant(bit):
                self.parts.table(COPY, (net,), f"{place}/shown{at}", self.net(bit))

    def is_constant(self, bit: int | str) -> bool:
        """Return whether a bit is a constant."""
        return self.net(bit) in (ZERO, ONE)

    def clocked(self, cell: SynthesisedCell, *ports: str) -> None:
        """Note the clocks of a cell; a constant is none."""
        bits = (bit for port in ports for bit in cell.connections.get(port, ()))
        self._clocks.update(bit for bit in bits if isinstance(bit, int) and not self.is_constant(bit))

    def faster(self, clock: int | str, source: int | str, ratio: Fraction = Fraction(1)) -> None:
        """Note that a clock is `ratio` times as fast as its source."""
        self._faster[clock] = source, ratio

    def unknown(self, name: str, cell: SynthesisedCell) -> ReadbackError:
        """Return the error for a cell that is not compared."""
        return ReadbackError(f"cell {name!r} of synthesis is a {cell.type}; fpgaprune does not compare those")

    def _factor(self, pin: Sequence[int | str]) -> Fraction:
        """Return how many times as fast as the pin's the one clock of all cells is."""
        origins: set[int | str] = {*self._clocks}
        factor = Fraction(1)
        while len(origins) == 1 and origins <= self._faster.keys():
            ((source, ratio),) = (self._faster[clock] for clock in origins)
            origins, factor = {source}, factor * ratio
        if origins != {*pin}:
            raise ReadbackError("synthesis has another clock than that of the pin; fpgaprune does not compare that")
        return factor
