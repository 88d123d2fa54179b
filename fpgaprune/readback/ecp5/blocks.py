"""`Blocks`: the block memories of an ECP5, by their bits; `memory` makes parts of one, also for synthesis."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from fpgaprune.errors import ReadbackError
from fpgaprune.readback.ecp5.chip import Ecp5
from fpgaprune.readback.ecp5.database import Tile, Wire
from fpgaprune.readback.ecp5.frames import WORD, WORDS
from fpgaprune.readback.netlist import ONE, OPEN, ZERO, BlockMemory, BlockPort, read_address
from fpgaprune.readback.parts import INVERSE, Parts, Wires

# Give the net of a wire; and whether the clock moves at a wire, which may be inverted, of a cell.
Value = Callable[[Wire], int]
Clocked = Callable[[Wire, bool, str], bool]
MODES = {"NORMAL": 0, "WRITETHROUGH": 1, "READBEFOREWRITE": 2}
# Bits of a port, and of words that take two.
_PORT, DOUBLE = 18, 36


@dataclass(frozen=True, slots=True)
class PortSettings:
    """Settings of a port: bits at once, the mode while it writes, and the number by which it is selected."""

    width: int
    mode: int
    selected: int


def memory(parts: Parts, content: bytes, ports: Mapping[str, PortSettings], wire: Wires, place: str) -> list[int]:
    """Make the parts of a block memory; return the nets of its outputs, 18 of port A and 18 of B.

    Words of 36 bits are written at port A, in every cycle in which that is enabled, and read at port B.

    Args:
        parts: gets the parts.
        content: its bits.
        ports: the ports that the clock moves, A and B.
        wire: gives the net of a bit of a port, as of `ADA`.
        place: of the memory.

    Raises:
        ReadbackError: it is set in a way that fpgaprune does not decode.
    """

    def refused(what: str) -> ReadbackError:
        return ReadbackError(f"the block memory at {place} {what}; fpgaprune does not decode that")

    double = {one.width == DOUBLE for one in ports.values()} == {True}
    if not double and any(one.width == DOUBLE for one in ports.values()):
        raise refused("has words of 36 bits at one port only")
    shown, made = [OPEN] * (2 * _PORT), []
    for letter, one in ports.items():
        if wire(f"RST{letter}", 0) != ZERO:
            raise refused("has a reset")
        chosen = [wire(f"CS{letter}", at) for at in range(3)]
        if any(net not in (ZERO, ONE) for net in chosen):
            raise refused("is selected by wires")
        works = sum(net << at for at, net in enumerate(chosen)) == one.selected
        write = int(letter == "A") if double else wire(f"WE{letter}", 0)
        halves = "AB" if double else letter
        names = [(halves[at // _PORT], at % _PORT) for at in range(one.width)]
        data = tuple(wire(f"DI{name}", at) for name, at in names) if write != ZERO else ()
        outputs = tuple(parts.net() for _ in names) if not double or letter == "B" else ()
        for (name, at), net in zip(names, outputs, strict=False):
            shown[_PORT * (name == "B") + at] = net
        address = read_address([wire(f"AD{letter}", at) for at in range(14)], one.width, writes=bool(data))
        enable = wire(f"CE{letter}", 0) if works else ZERO
        mode = one.mode if data and not double else 0
        made.append(
            BlockPort(letter, one.width, address, data, outputs, enable, write, ONE, registered=False, mode=mode)
        )
    parts.netlist.blocks.append(BlockMemory(content, tuple(made), place))
    return shown


class Blocks:
    """The block memories of a chip, each by row and column of its first tile."""

    def __init__(self, chip: Ecp5) -> None:
        self._chip = chip

    def read(self, parts: Parts, row: int, col: int, value: Value, clocked: Clocked) -> list[int]:
        """Make the parts of a memory; result as for `memory`.

        Raises:
            ReadbackError: it is off, or set in a way that fpgaprune does not decode.
        """
        tiles, column = self._chip.block(row, col, "MIB_EBR")
        name, place = f"EBR{column // 2}", f"X{col}/Y{row}/EBR{column // 2}"

        def setting(what: str) -> str:
            return self._chip.only(tiles, f"{name}.{what}", place)

        def is_inverted(port: str) -> bool:
            return self._has(tiles, f"{name}.{port}MUX") and setting(f"{port}MUX") == "INV"

        def wire(port: str, at: int) -> int:
            numbered = f"{port}{at}" if port[:2] in ("AD", "DI", "CS") else port
            net = value(Wire(row, col, f"J{numbered}_EBR"))
            return parts.table(INVERSE, (net,), f"{place}/{numbered}") if is_inverted(numbered) else net

        # Other settings have some of the bits of this one.
        kind = self._chip.values(tiles, f"{name}.MODE", own=True)
        if kind not in ({"DP16KD"}, {"PDPW16KD"}):
            raise ReadbackError(f"the block memory at {place} is off, and the output depends on it")
        double, ports = kind == {"PDPW16KD"}, {}
        for letter in "AB":
            if not clocked(Wire(row, col, f"JCLK{letter}_EBR"), is_inverted(f"CLK{letter}"), place):
                continue
            if setting(f"REGMODE_{letter}") != "NOREG":
                raise ReadbackError(f"the block memory at {place} has output registers; fpgaprune does not decode that")
            width = setting("PDPW16KD.DATA_WIDTH_R" if double else f"DP16KD.DATA_WIDTH_{letter}")
            mode = 0 if double else MODES[setting(f"DP16KD.WRITEMODE_{letter}")]
            selected = self._chip.word(tiles, f"{name}.CSDECODE_{letter}")
            ports[letter] = PortSettings(DOUBLE if double and letter == "A" else int(width), mode, selected)
        # The number of a memory stands there with its highest bit first.
        number = int(f"{self._chip.word(tiles, f'{name}.WID'):09b}"[::-1], 2)
        content = self._chip.memories.get(number, bytearray(WORD * WORDS))
        return memory(parts, bytes(content), ports, wire, place)

    def _has(self, tiles: list[Tile], name: str) -> bool:
        return any(name in self._chip.db.type_of(tile).enums for tile in tiles)
