"""`Cells`: what each cell of an iCE40 does, as parts of a netlist."""

from __future__ import annotations

from fpgaprune.readback.netlist import ONE, ZERO, BlockMemory, BlockPort
from fpgaprune.readback.parts import Parts, Wires

# Of enable, reset, D and the register itself, where the reset makes a 0 and where it makes a 1.
_NEXT = {
    start: sum(1 << at for at in range(16) if ((start if at & 2 else at >> 2 & 1) and at & 1) or at >> 3 & ~at & 1)
    for start in (0, 1)
}
WORD = 16


class Cells(Parts):
    """Cells of one netlist, as they are made."""

    def register(self, data: int, enable: int, reset: int, value: int, place: str, output: int | None = None) -> int:
        """Return a register that begins at 0; where it is enabled it takes `value` if `reset` is 1, else `data`."""
        made = self.net() if output is None else output
        if reset != ZERO and (value or enable != ONE):
            data = self.table(_NEXT[value], (enable, reset, data, made), f"{place}/next")
            enable, reset = ONE, ZERO
        return super().register(data, enable, reset, 0, place, made)

    def memory(self, content: bytes, modes: tuple[int, int], wire: Wires, place: str) -> list[int]:
        """Return a block memory of 256 words of 16 bits, whose ports may take 8, 4 or 2 of them at once.

        Args:
            content: its bits, word by word.
            modes: of reading and of writing: 0 to 3 for 16, 8, 4 and 2 bits at once.
            wire: gives the net of a bit of a port of `SB_RAM40_4K`.
            place: of the memory.

        Returns:
            The nets of `RDATA`.
        """
        read, write = modes
        reads = self.table(0b1000, (wire("RE", 0), wire("RCLKE", 0)), f"{place}/read")
        writes = self.table(0b1000, (wire("WE", 0), wire("WCLKE", 0)), f"{place}/write")
        words = [self.net() for _ in range(WORD)]
        address = tuple(wire("RADDR", at) for at in range(8))
        ports = [BlockPort("R", WORD, address, (), tuple(words), reads, ZERO, ONE, registered=False, mode=0)]
        if writes != ZERO:
            address = tuple(wire("WADDR", at) for at in range(8))
            upper = [wire("WADDR", 8 + at) for at in range(write)]
            data, masks = [ZERO] * WORD, [ZERO] * WORD
            for at, group in _groups(write):
                for number, bit in enumerate(group):
                    data[bit] = wire("WDATA", at)
                    # With fewer bits than a word has, not written unless the upper address bits are the bit's number.
                    table = 0xFFFF & ~sum(1 << place for place in range(16) if place % (1 << write) == number)
                    masks[bit] = self.table(table, upper, f"{place}/mask{bit}") if write else wire("MASK", bit)
            ports.append(BlockPort("W", WORD, address, tuple(data), (), writes, writes, ONE, False, 0, tuple(masks)))
        self.netlist.blocks.append(BlockMemory(content, tuple(ports), place))
        upper = self.registers([wire("RADDR", 8 + at) for at in range(read)], reads, f"{place}/part")
        shown = [ZERO] * WORD
        for at, group in _groups(read):
            shown[at] = self.chosen([words[bit] for bit in group], upper, f"{place}/bit{at}")
        return shown


def _groups(mode: int) -> list[tuple[int, range]]:
    """Return for each bit of a port its number among 16, and the bits of a word that it may be.

    A port of 8 bits has them at 0, 2, 4 and so on; one of 4 at 1, 5, 9 and 13; one of 2 at 3 and 11.
    """
    size = 1 << mode
    return [(begin + max(size // 2 - 1, 0), range(begin, begin + size)) for begin in range(0, WORD, size)]
