"""`compare_netlists`: the netlist of a bitstream against that of synthesis, cell by cell: for all inputs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from fpgaprune.readback.functions import Functions
from fpgaprune.readback.netlist import ONE, OPEN, ZERO, BlockMemory, Lut, Multiplier, Netlist, Register

# A register takes its start value where it is reset, else D where it is enabled: of reset, enable, D, itself, start.
NEXT = sum(1 << at for at in range(32) if ((at >> 4) & 1 if at & 1 else (at >> 2) & 1 if at & 2 else (at >> 3) & 1))
_Cell = Register | BlockMemory | Multiplier


@dataclass(frozen=True)
class CellComparison:
    """What came of comparing each cell of a bitstream with that of synthesis.

    Attributes:
        cells: how many registers, memories, multipliers and outputs were compared; the tables between them with these.
        first: the first cell that is not as synthesis made it, as text; None if all are.
    """

    cells: int
    first: str | None = None

    @property
    def holds(self) -> bool:
        """Whether every cell is as synthesis made it."""
        return self.first is None


def compare_netlists(came: Netlist, wanted: Netlist, names: Mapping[str, str]) -> CellComparison:
    """Compare each cell that a bitstream's output depends on with that of synthesis in its place.

    Registers, memories and multipliers are paired by their places. Each pair must begin at the same value, and take the
    same function of the other pairs and of the pins. So both give the same output in every cycle, for all inputs.
    Places are only a guess at which belong together: a wrong one makes a difference.

    Args:
        came: as read back.
        wanted: as synthesis made it, with places.
        names: place -> the name of the cell of synthesis there.

    Raises:
        ReadbackError: tables depend on each other without a register between.
    """
    return _Pairs(came, wanted, names).compared()


class _Pairs:
    def __init__(self, came: Netlist, wanted: Netlist, names: Mapping[str, str]) -> None:
        self._netlist, self._wanted, self._names = came, wanted, names
        self._functions, self._read = Functions(), came.read_nets()
        # Net of either netlist -> its function.
        self._came: dict[int, int] = {ZERO: ZERO, ONE: ONE, OPEN: self._functions.free()}
        # Of cells of synthesis on which the bitstream does not depend nothing is known.
        self._there = defaultdict[int, int](self._functions.free, {ZERO: ZERO, ONE: ONE})

    def compared(self) -> CellComparison:
        cells, there = _cells(self._netlist), {cell.place: cell for cell in _cells(self._wanted)}
        lost = [cell.place for cell in cells if type(there.get(cell.place)) is not type(cell)]
        if lost:
            return misplaced(lost, len(cells))
        pairs = [(cell, there[cell.place]) for cell in cells]
        for one, other in pairs:
            for net, bit in zip(_made(one), _made(other), strict=True):
                self._share(net, bit)
        for net, bit in zip(self._netlist.pins.values(), self._wanted.pins.values(), strict=False):
            self._share(net, bit)
        return CellComparison(len(cells) + 1, next(self._differences(pairs), None))

    def _share(self, net: int, wanted: int) -> None:
        self._came[net] = self._there[wanted] = self._functions.free()

    def _differences(self, pairs: Sequence[tuple[_Cell, _Cell]]) -> Iterator[str]:
        wanted = dict(self._computed(self._wanted, self._there))
        for place, function in self._computed(self._netlist, self._came):
            # What a changed table feeds differs too, and this names it.
            if place in self._names and wanted.get(place, function) != function:
                yield other_table(self._named(place))
        if self._netlist.factor != self._wanted.factor:
            yield other_ratio(self._netlist.factor, self._wanted.factor)
        for came, cell in pairs:
            for what in self._of_cell(came, cell):
                yield other(f"{what} of {self._named(came.place)}")
        if self._came[self._netlist.output] != self._there[self._wanted.output]:
            yield other("the output")

    def _computed(self, netlist: Netlist, functions: dict[int, int]) -> Iterator[tuple[str, int]]:
        """The place of each table, and the function that it computes."""
        for table in netlist.ordered():
            if isinstance(table, Lut):
                made = self._functions.made(table.table, [functions[net] for net in table.inputs])
                functions[table.output] = made
                yield table.place, made

    def _named(self, place: str) -> str:
        name = self._names.get(place, self._names.get(place.rpartition("/")[0]))
        return f"at {place}" if name is None else f"{name!r} at {place}"

    def _of_cell(self, came: _Cell, wanted: _Cell) -> Iterator[str]:
        if isinstance(came, Register) and isinstance(wanted, Register):
            if came.start != wanted.start:
                yield "the start value"
            if self._next(came, self._came) != self._next(wanted, self._there):
                yield "the next value"
        elif isinstance(came, Multiplier) and isinstance(wanted, Multiplier):
            yield from self._wires("the input A", came.a, wanted.a)
            yield from self._wires("the input B", came.b, wanted.b)
            yield from self._wires("the signs", (came.a_signed, came.b_signed), (wanted.a_signed, wanted.b_signed))
        elif isinstance(came, BlockMemory) and isinstance(wanted, BlockMemory):
            if came.content != wanted.content:
                width = came.ports[0].width
                at = next(at for at, bit in enumerate(came.content) if bit != wanted.content[at])
                yield (
                    f"the content (word {at // width}, bit {at % width}, {came.content[at]} instead of "
                    f"{wanted.content[at]})"
                )
            yield from self._of_ports(came, wanted)

    def _next(self, one: Register, functions: Mapping[int, int]) -> int:
        nets = (one.reset, one.enable, one.data, one.output)
        return self._functions.made(NEXT, [*(functions[net] for net in nets), one.start])

    def _of_ports(self, came: BlockMemory, wanted: BlockMemory) -> Iterator[str]:
        ports, lanes = {port.letter: port for port in wanted.ports}, came.lanes()
        read = [bit for bit, (shown, _) in enumerate(lanes) if shown & self._read]
        for one in came.ports:
            other = ports.pop(one.letter, None)
            name = f"of port {one.letter}"
            if other is None:
                yield from self._wires(f"the write enable {name}", (one.write,), (ZERO,))
                continue
            if (one.width, one.mode, one.registered) != (other.width, other.mode, other.registered):
                yield f"the width or the mode {name}"
            yield from self._wires(f"the address {name}", one.address, other.address)
            yield from self._wires(f"the enable {name}", (one.enable,), (other.enable,))
            yield from self._wires(f"the write enable {name}", (one.write,), (other.write,))
            for what, nets, bits in (("data", one.data, other.data), ("mask", one.masks, other.masks)):
                # Place and route writes anything into a bit that nothing reads.
                if nets:
                    yield from self._wires(f"the {what} {name}", [nets[at] for at in read], [bits[at] for at in read])
        for port in ports.values():
            yield from self._wires(f"the write enable of port {port.letter}", (ZERO,), (port.write,))

    def _wires(self, what: str, nets: Sequence[int], bits: Sequence[int]) -> Iterator[str]:
        if [self._came[net] for net in nets] != [self._there[bit] for bit in bits]:
            yield what


def misplaced(lost: Sequence[str], cells: int) -> CellComparison:
    """What comes of `lost` places, of `cells`, where synthesis has no cell."""
    return CellComparison(
        cells,
        f"{len(lost):,} of {cells:,} cells are where place and route did not put any, the first at {min(lost)}: "
        "it is the bitstream of another netlist, or was changed",
    )


def other(what: str) -> str:
    """The sentence for a cell or a wire that differs."""
    return f"{what} is not what synthesis made it"


def other_table(where: str) -> str:
    """The sentence for a table that differs."""
    return f"the table {where} computes something else than synthesis made it for"


def other_ratio(came: Fraction, wanted: Fraction) -> str:
    """The sentence for a PLL that differs."""
    return f"the PLL makes {came} times the frequency of the pin, and synthesis asked it for {wanted}"


def _cells(netlist: Netlist) -> list[_Cell]:
    return [*netlist.registers, *netlist.blocks, *netlist.multipliers]


def _made(cell: _Cell) -> list[int]:
    """The nets that a cell makes."""
    if isinstance(cell, Register):
        return [cell.output]
    if isinstance(cell, Multiplier):
        return list(cell.outputs)
    return [net for port in cell.ports for net in port.outputs]
