"""`Netlist`: the cells that a bitstream makes of a chip, as far as its output pins depend on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from fpgaprune.errors import ReadbackError

# Nets that no cell drives: constants, and a wire that is connected to nothing.
ZERO, ONE, OPEN = 0, 1, 2
# Bits of words that each port reads and writes whole, with masks.
_WORDS = (16, 40, 80)


@dataclass(frozen=True, slots=True)
class Lut:
    """A table of up to four inputs; bit `i` of `table` is the output where the inputs are the bits of `i`."""

    table: int
    inputs: tuple[int, int, int, int]
    output: int
    place: str


@dataclass(frozen=True, slots=True)
class Register:
    """A D flip-flop: `enable` and `reset` are nets; where `reset` is 1 the register takes `start`.

    A register begins at `start`: 0, 1, or `OPEN` if nothing says at what.
    """

    data: int
    enable: int
    reset: int
    start: int
    output: int
    place: str


@dataclass(frozen=True, slots=True)
class SmallMemory:
    """Sixteen bits that are read at once and written at the clock: a table that the design may change."""

    content: int
    read: tuple[int, int, int, int]
    write: tuple[int, int, int, int]
    enable: int
    data: int
    output: int
    place: str


@dataclass(frozen=True, slots=True)
class BlockPort:
    """One port of a block memory.

    Attributes:
        letter: A or B.
        width: bits read or written at once: 1, 2, 4, 9, 18 or 36; or 16, 40 or 80, of a memory whose words have as
            many.
        address: nets, lowest bit first; for a width of 18 or 36 the lowest are byte enables.
        data, outputs: nets, lowest bit first, none where nothing is written or read.
        enable, write, output_enable: nets.
        registered: whether a register follows the output.
        mode: while it writes, a port keeps its output (0), shows the bits that are written and keeps the others (1),
            shows what was there (2), or what is there then (3).
        masks: for each bit a net that is 1 where it is not written; none if all bits are.
    """

    letter: str
    width: int
    address: tuple[int, ...]
    data: tuple[int, ...]
    outputs: tuple[int, ...]
    enable: int
    write: int
    output_enable: int
    registered: bool
    mode: int
    masks: tuple[int, ...] = ()


def read_address(nets: Sequence[int], width: int, *, writes: bool) -> tuple[int, ...]:
    """Return the address of a port of words of 18 bits: 0 for each net that says nothing at that width.

    The lowest nets choose a bit of a word; a port that writes whole words has byte enables there.
    """
    unused = width.bit_length() - 1
    enables = width // 9 if writes and width >= 18 else 0
    return tuple(ZERO if enables <= at < unused else net for at, net in enumerate(nets))


@dataclass(frozen=True, slots=True)
class BlockMemory:
    """A block memory: its bits after configuration, word by word, each 0 or 1."""

    content: bytes
    ports: tuple[BlockPort, ...]
    place: str

    @property
    def word(self) -> int:
        """Bits of a word: as many as those of a port whose width is one of a kind of memory, else 18."""
        return self.ports[0].width if self.ports and self.ports[0].width in _WORDS else 18

    def lanes(self) -> list[tuple[set[int], set[int]]]:
        """Return for each bit of a word the nets that show it and those written into it.

        Ports of several widths share all bits: then there is one lane.
        """
        shown, written = ([port.outputs for port in self.ports], [port.data for port in self.ports])
        if len({port.width for port in self.ports}) > 1:
            return [(set().union(*shown), set().union(*written))]
        width = max(len(nets) for nets in (*shown, *written))
        return [
            ({nets[at] for nets in shown if at < len(nets)}, {nets[at] for nets in written if at < len(nets)})
            for at in range(width)
        ]


@dataclass(frozen=True, slots=True)
class Multiplier:
    """A product of two numbers, each signed where its net is 1, without registers."""

    a: tuple[int, ...]
    b: tuple[int, ...]
    a_signed: int
    b_signed: int
    outputs: tuple[int, ...]
    place: str


@dataclass
class Netlist:
    """Cells of one clock between an input and an output pin.

    Attributes:
        nets: how many there are; a net is a number below.
        luts, registers, small, blocks, multipliers: the cells.
        pins: pin of the package -> its net, for the pins that are inputs.
        output: net of the output pin.
        clock: pin that the clock comes from.
        factor: frequency of the clock inside / at the pin; other than 1 behind a PLL.
    """

    nets: int = 3
    luts: list[Lut] = field(default_factory=list)
    registers: list[Register] = field(default_factory=list)
    small: list[SmallMemory] = field(default_factory=list)
    blocks: list[BlockMemory] = field(default_factory=list)
    multipliers: list[Multiplier] = field(default_factory=list)
    pins: dict[str, int] = field(default_factory=dict)
    output: int = OPEN
    clock: str = ""
    factor: Fraction = Fraction(1)

    @property
    def reads_open(self) -> bool:
        """Whether a cell reads a wire that is connected to nothing, or a register begins at nobody knows what."""
        return OPEN in self.read_nets() or any(one.start == OPEN for one in self.registers)

    def read_nets(self) -> set[int]:
        """Return the nets that a cell or the output reads; what is written into a lane that none reads is not read."""
        cells: list[Lut | SmallMemory | Multiplier] = [*self.luts, *self.small, *self.multipliers]
        nets = [net for cell in cells for net in _inputs(cell)]
        nets += [net for one in self.registers for net in (one.data, one.enable, one.reset)]
        nets += [net for one in self.small for net in (*one.write, one.enable, one.data)]
        ports = [port for block in self.blocks for port in block.ports]
        nets += [net for port in ports for net in (*port.address, *port.masks, port.enable, port.write)]
        found = {*nets, self.output}
        lanes = [lane for block in self.blocks for lane in block.lanes()]
        while True:
            written = set().union(*(data for shown, data in lanes if shown & found))
            if written <= found:
                return found
            found |= written

    def counts(self) -> dict[str, int]:
        """Return how many cells of each kind were decoded, of those that the output depends on."""
        found = {
            "tables": len(self.luts),
            "registers": len(self.registers),
            "small memories": len(self.small),
            "block memories": len(self.blocks),
            "multipliers": len(self.multipliers),
        }
        return {name: count for name, count in found.items() if count}

    def ordered(self) -> list[Lut | SmallMemory | Multiplier]:
        """Return tables, multipliers and reads of small memories, each behind those that it reads.

        Raises:
            ReadbackError: some of them depend on each other without a register between.
        """
        cells: list[Lut | SmallMemory | Multiplier] = [*self.luts, *self.small, *self.multipliers]
        makes = {net: at for at, cell in enumerate(cells) for net in _outputs(cell)}
        waits, readers = [0] * len(cells), [list[int]() for _ in cells]
        for at, cell in enumerate(cells):
            for before in {makes[net] for net in _inputs(cell) if net in makes}:
                waits[at] += 1
                readers[before].append(at)
        ready, found = [at for at, count in enumerate(waits) if not count], []
        while ready:
            at = ready.pop()
            found.append(cells[at])
            for reader in readers[at]:
                waits[reader] -= 1
                if not waits[reader]:
                    ready.append(reader)
        if len(found) < len(cells):
            stuck = [cell.place for cell, count in zip(cells, waits, strict=True) if count]
            raise ReadbackError(
                f"{len(cells) - len(found)} tables of the bitstream depend on each other without a register between, "
                f"among them the one at {min(stuck)}; such a loop is not simulated"
            )
        return found


def _outputs(cell: Lut | SmallMemory | Multiplier) -> tuple[int, ...]:
    return cell.outputs if isinstance(cell, Multiplier) else (cell.output,)


def _inputs(cell: Lut | SmallMemory | Multiplier) -> tuple[int, ...]:
    if isinstance(cell, Multiplier):
        return (*cell.a, *cell.b, cell.a_signed, cell.b_signed)
    return cell.inputs if isinstance(cell, Lut) else cell.read
