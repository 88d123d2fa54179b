"""Bitstreams of the design of `mixed` that are kept beside this file, and bits of them that are changed for a while."""

import lzma
from dataclasses import dataclass, replace
from functools import cache

from fpgaprune.fabric import cells_file
from fpgaprune.readback import check_chip, compare_cells, read_chip

from . import mixed

COUNT = 70  # two rounds of the simulator


@dataclass(frozen=True)
class Kept:
    """The bitstreams for one board; their files are called as the design, and `ending`."""

    board: str
    ending: str

    def bitstream(self, folder, name="mixed"):
        """A kept bitstream as a file in `folder`, with the cells of synthesis beside it."""
        path = folder / f"{name}{self.ending}"
        path.write_bytes(lzma.decompress(mixed.KEPT.with_name(f"{path.name}.xz").read_bytes()))
        cells_file(path).write_bytes(mixed.KEPT.with_name(f"{path.name}.cells.xz").read_bytes())
        return path

    def chip(self, folder, name="mixed"):
        """The chip that a kept bitstream configures: whoever changes a bit changes it back."""
        return _chip(self, folder, name)

    def checked(self, chip, cells=None):
        """The answers of `chip`, compared with those that the design must give."""
        given = {"synthesised": cells, "patience": 4000}
        return check_chip(chip, self.board, *mixed.samples(COUNT), COUNT, mixed.RESULTS, **given)


@cache
def _chip(kept, folder, name):
    return read_chip(kept.bitstream(folder, name), kept.board)


ICE40, ECP5 = Kept("icebreaker", ".bin"), Kept("colorlight-i5", ".bit")
GATEMATE = Kept("gatemate-a1-evb", "_gatemate.bit")


def notices_constant_carries(cells, netlist, board, places):
    """Whether each of the carries at these places of the tables is named as soon as it is 0 or 1, and none before."""
    for one in places:
        lut = netlist.luts[one]
        for table in (0, 0xFFFF):
            netlist.luts[one] = replace(lut, table=table)
            if compare_cells(cells, netlist, board).holds:
                return False
        netlist.luts[one] = lut
    return compare_cells(cells, netlist, board).holds


def flip(chip, place):
    """Change a bit of a chip: of its frames or tiles, or of a setting that `place` names."""
    if isinstance(place[1], str):
        block, name, bit = place
        chip.blocks[block][name] = chip.blocks[block].get(name, 0) ^ 1 << bit
    else:
        chip.bits[place] ^= 1


class changed:  # noqa: N801
    """Bits of a chip are the other way round for a while."""

    def __init__(self, chip, *places):
        self.chip, self.places = chip, places

    def __enter__(self):
        for place in self.places:
            flip(self.chip, place)
        return self.chip

    def __exit__(self, *_):
        self.__enter__()
