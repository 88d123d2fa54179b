"""`Netlist`: the cells that a bitstream makes of a chip, as far as its output pins depend on them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from fpgaprune.errors import ReadbackError

# Nets that no cell drives: constants, and a wire that is connected to nothing.
ZERO, ONE, OPEN = 0, 1, 2


@dataclass(frozen=True, slots=True)
class Lut:
    """A table of up to four inputs; bit `i` of `table` is the output where the inputs are the bits of `i`."""

    table: int
    inputs: tuple[int, int, int, int]
    output: int
    place: str


@dataclass(frozen=True, slots=True)
class Register:
    """A D flip-flop: `enable` and `reset` are nets; where `reset` is 1 the register takes `start`."""

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
    """One port of a block memory: address and data, lowest bit first; `width` bits are read or written at once."""

    width: int
    address: tuple[int, ...]
    data: tuple[int, ...]
    outputs: tuple[int, ...]
    enable: int
    write: int
    reset: int
    output_enable: int
    registered: bool
    mode: int
    bytes_enabled: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class BlockMemory:
    """A block memory of `len(content)` bits, each of 9 a byte where `ninth`; both ports have the same clock."""

    content: bytes
    ports: tuple[BlockPort, ...]
    place: str


@dataclass(frozen=True, slots=True)
class Multiplier:
    """A product of two signed or unsigned numbers; `stages` are registers at A, B and the output, None where none is."""

    a: tuple[int, ...]
    b: tuple[int, ...]
    a_signed: int
    b_signed: int
    outputs: tuple[int, ...]
    stages: tuple[tuple[int, int] | None, tuple[int, int] | None, tuple[int, int] | None]
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
    factor: float = 1.0

    def counts(self) -> dict[str, int]:
        """How many cells of each kind were decoded, of those that the output depends on."""
        found = {
            "tables": len(self.luts),
            "registers": len(self.registers),
            "small memories": len(self.small),
            "block memories": len(self.blocks),
            "multipliers": len(self.multipliers),
        }
        return {name: count for name, count in found.items() if count}

    def ordered(self) -> list[Lut | SmallMemory]:
        """Tables and the reads of small memories, each behind those that it reads.

        Raises:
            ReadbackError: some of them depend on each other without a register between.
        """
        cells: dict[int, Lut | SmallMemory] = {cell.output: cell for cell in (*self.luts, *self.small)}
        inputs = {
            output: {net for net in (cell.inputs if isinstance(cell, Lut) else cell.read) if net in cells}
            for output, cell in cells.items()
        }
        waits = {output: len(nets) for output, nets in inputs.items()}
        readers: dict[int, list[int]] = {}
        for output, nets in inputs.items():
            for net in nets:
                readers.setdefault(net, []).append(output)
        ready, found = [output for output, count in waits.items() if not count], []
        while ready:
            output = ready.pop()
            found.append(cells[output])
            for reader in readers.get(output, ()):
                waits[reader] -= 1
                if not waits[reader]:
                    ready.append(reader)
        if len(found) < len(cells):
            stuck = Counter(cells[output].place for output, count in waits.items() if count)
            raise ReadbackError(
                f"{len(cells) - len(found)} tables of the bitstream depend on each other without a register between, "
                f"among them the one at {min(stuck)}; such a loop is not simulated"
            )
        return found
