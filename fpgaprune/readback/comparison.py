"""`compare_netlists`: the netlist of a bitstream against that of synthesis, cell by cell: for all inputs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from fpgaprune.readback.functions import Functions
from fpgaprune.readback.netlist import (
    ONE,
    OPEN,
    ZERO,
    BlockMemory,
    Lut,
    Multiplier,
    Netlist,
    Register,
    SmallMemory,
)

# A register takes its start value where it is reset, else D where it is enabled: of reset, enable, D, itself, start.
NEXT = sum(1 << at for at in range(32) if ((at >> 4) & 1 if at & 1 else (at >> 2) & 1 if at & 2 else (at >> 3) & 1))
_Cell = Register | SmallMemory | BlockMemory | Multiplier


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
        # Net of either netlist -> its function; nothing is known of what is not shared.
        self._came = defaultdict[int, int](self._functions.free, {ZERO: ZERO, ONE: ONE})
        self._there = defaultdict[int, int](self._functions.free, {ZERO: ZERO, ONE: ONE})

    def compared(self) -> CellComparison:
        cells, there = _cells(self._netlist), {cell.place: cell for cell in _cells(self._wanted)}
        lost = [cell.place for cell in cells if type(there.get(cell.place)) is not type(cell)]
        if lost:
            return CellComparison(
                len(cells),
                f"{len(lost):,} of {len(cells):,} cells are where place and route did not put any, the first at "
                f"{min(lost)}: it is the bitstream of another netlist, or was changed",
            )
        pairs = [(cell, there[cell.place]) for cell in cells]
        for one, other in pairs:
            for net, bit in _made(one, other):
                self._share(net, bit)
        for net, bit in zip(self._netlist.pins.values(), self._wanted.pins.values(), strict=False):
            self._share(net, bit)
        return CellComparison(len(cells) + 1, next(self._differences(pairs), None))

    def _share(self, net: int, wanted: int) -> None:
        """Note that both nets are one function; that of a register's copy is the register's."""
        if wanted not in (ZERO, ONE, OPEN):
            self._came[net] = self._there[wanted]

    def _differences(self, pairs: Sequence[tuple[_Cell, _Cell]]) -> Iterator[str]:
        wanted = dict(self._computed(self._wanted, self._there))
        for place, function in self._computed(self._netlist, self._came):
            # What a changed table feeds differs too, and this names it.
            if place in self._names and wanted.get(place, function) != function:
                yield f"the table {self._named(place)} computes something else than synthesis made it for"
        if self._netlist.factor != self._wanted.factor:
            yield (
                f"the PLL makes {self._netlist.factor} times the frequency of the pin, and synthesis asked it for "
                f"{self._wanted.factor}"
            )
        for came, cell in pairs:
            for what in self._of_cell(came, cell):
                yield f"{what} of {self._named(came.place)} is not what synthesis made it"
        if self._came[self._netlist.output] != self._there[self._wanted.output]:
            yield "the output is not what synthesis made it"

    def _computed(self, netlist: Netlist, functions: dict[int, int]) -> Iterator[tuple[str, int]]:
        """Yield the place of each table, and the function that it computes."""
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
            # Where synthesis leaves a start value open, place and route may choose one.
            if wanted.start not in (came.start, OPEN):
                yield "the start value"
            if self._next(came, self._came) != self._next(wanted, self._there):
                yield "the next value"
        elif isinstance(came, Multiplier) and isinstance(wanted, Multiplier):
            yield from self._wires("the input A", came.a, wanted.a)
            yield from self._wires("the input B", came.b, wanted.b)
            yield from self._wires("the signs", (came.a_signed, came.b_signed), (wanted.a_signed, wanted.b_signed))
        elif isinstance(came, SmallMemory) and isinstance(wanted, SmallMemory):
            if came.content != wanted.content:
                yield "the content"
            yield from self._wires("the address that is read", came.read, wanted.read)
            yield from self._wires("the write enable", (came.enable,), (wanted.enable,))
            if self._came[came.enable] != ZERO:
                yield from self._wires("the address that is written", came.write, wanted.write)
                yield from self._wires("the data", (came.data,), (wanted.data,))
        elif isinstance(came, BlockMemory) and isinstance(wanted, BlockMemory):
            if came.content != wanted.content:
                at = next(at for at, bit in enumerate(came.content) if bit != wanted.content[at])
                yield (
                    f"the content (word {at // came.word}, bit {at % came.word}, {came.content[at]} instead of "
                    f"{wanted.content[at]})"
                )
            yield from self._of_ports(came, wanted)

    def _next(self, one: Register, functions: Mapping[int, int]) -> int:
        nets = (one.reset, one.enable, one.data, one.output)
        return self._functions.made(NEXT, [*(functions[net] for net in nets), one.start])

    def _of_ports(self, came: BlockMemory, wanted: BlockMemory) -> Iterator[str]:
        ports, lanes = {port.letter: port for port in wanted.ports}, came.lanes()
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
            if one.registered:
                yield from self._wires(f"the output enable {name}", (one.output_enable,), (other.output_enable,))
            # Place and route writes anything into a bit that nothing reads.
            read = [at for at in range(len(one.data)) if lanes[at if len(lanes) > 1 else 0][0] & self._read]
            for what, nets, bits in (("data", one.data, other.data), ("mask", one.masks, other.masks)):
                if nets:
                    yield from self._wires(f"the {what} {name}", [nets[at] for at in read], [bits[at] for at in read])
        for port in ports.values():
            yield from self._wires(f"the write enable of port {port.letter}", (ZERO,), (port.write,))

    def _wires(self, what: str, nets: Sequence[int], bits: Sequence[int]) -> Iterator[str]:
        """Yield whether nets are not as wanted; where synthesis has none, anything goes."""
        if any(bit != OPEN and self._came[net] != self._there[bit] for net, bit in zip(nets, bits, strict=True)):
            yield what


def _cells(netlist: Netlist) -> list[_Cell]:
    return [*netlist.registers, *netlist.small, *netlist.blocks, *netlist.multipliers]


def _made(came: _Cell, wanted: _Cell) -> Iterator[tuple[int, int]]:
    """Yield the nets that both cells make."""
    if isinstance(came, BlockMemory) and isinstance(wanted, BlockMemory):
        there = {port.letter: port for port in wanted.ports}
        for port in came.ports:
            if port.letter in there:
                yield from zip(port.outputs, there[port.letter].outputs, strict=False)
    elif isinstance(came, Multiplier) and isinstance(wanted, Multiplier):
        yield from zip(came.outputs, wanted.outputs, strict=True)
    elif not isinstance(came, BlockMemory | Multiplier) and not isinstance(wanted, BlockMemory | Multiplier):
        yield came.output, wanted.output
