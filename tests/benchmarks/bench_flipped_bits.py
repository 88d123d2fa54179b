"""What is said of a bitstream in which one bit is flipped, for bits drawn at random, 64 samples each.

    python tests/benchmarks/bench_flipped_bits.py [FLIPS [icebreaker | colorlight-i5 | gatemate-a1-evb]]

A row says how many flips led to the same netlist, to another one that answers every sample alike, to one that does
not, and to bits that are refused by name; and of how many other netlists a cell was named against synthesis. The
design is that of tests/unit/readback/mixed.py, kept beside it.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

SAMPLES = 64
COLUMNS = ("same", "alike", "differs", "refused", "named")


def ice40_places(chip: Any, netlist: Any) -> Iterator[tuple[str, list[Any]]]:
    """Kinds of bits, each with the places of its bits, of an iCE40."""
    import numpy as np

    rows, columns = chip.bits.shape[2:]

    def whole(tiles: Any) -> list[Any]:
        return [(*tile, row, column) for tile in sorted(tiles) for row in range(rows) for column in range(columns)]

    yield "of a tile that is used", whole({tuple(place[:2]) for place in np.argwhere(chip.bits).tolist()})
    yield "of those, bits that are set", [tuple(place) for place in np.argwhere(chip.bits).tolist()]
    cells = [tuple(map(int, re.findall(r"\d+", lut.place))) for lut in netlist.luts if lut.place.endswith("/table")]
    yield "of a tile with a table that the output depends on", whole({cell[:2] for cell in cells})
    yield (
        "of a table that the output depends on",
        [(x, y, *bit) for x, y, z in cells for bit in chip.db.entries(x, y)[f"LC_{z}"]],
    )


def ecp5_places(chip: Any, netlist: Any) -> Iterator[tuple[str, list[Any]]]:
    """Kinds of bits, each with the places of its bits, of an ECP5."""

    def whole(tiles: Any) -> list[Any]:
        return [
            (tile.frame + frame, tile.bit + bit)
            for tile in tiles
            for frame in range(tile.frames)
            for bit in range(tile.bits)
        ]

    used = [tile for tile in chip.db.tiles.values() if chip.ones(tile)]
    yield "of a tile that is used", whole(used)
    yield (
        "of those, bits that are set",
        [(tile.frame + frame, tile.bit + bit) for tile in used for frame, bit in sorted(chip.ones(tile))],
    )
    found = [re.fullmatch(r"X(\d+)/Y(\d+)/SLICE(.)\.K(.)", lut.place) for lut in netlist.luts]
    cells = [(chip.tile_of(int(one[2]), int(one[1]), "PLC2"), one[3], one[4]) for one in found if one is not None]
    yield "of a tile with a table that the output depends on", whole(dict.fromkeys(tile for tile, _, _ in cells))
    yield (
        "of a table that the output depends on",
        [
            (tile.frame + frame, tile.bit + bit)
            for tile, letter, number in cells
            for bits in chip.db.type_of(tile).words[f"SLICE{letter}.K{number}.INIT"]
            for frame, bit in bits.zeros
        ],
    )


def gatemate_places(chip: Any, netlist: Any) -> Iterator[tuple[str, list[Any]]]:
    """Kinds of bits, each with the places of its bits, of a GateMate."""

    def whole(blocks: Any, kind: str = "") -> list[Any]:
        return [
            (block, name, bit)
            for block in sorted(blocks)
            for name, (_, bits) in sorted(chip.words(block).items())
            for bit in range(bits)
            if kind in name
        ]

    used = [block for block, settings in chip.blocks.items() if any(settings.values())]
    yield "of a tile that is used", whole(used)
    set_bits = [place for place in whole(used) if chip.blocks[place[0]].get(place[1], 0) >> place[2] & 1]
    yield "of those, bits that are set", set_bits
    tiles = {lut.place.split("/")[0] for lut in netlist.luts if "/CPE_LT_" in lut.place}
    cells = sorted({chip.setting_at(chip.db.tile_at(tile), "CPE.INIT_L00") for tile in tiles})
    yield "of a tile with a table that the output depends on", whole({block for block, _ in cells})
    tables = [place for block, name in cells for place in whole([block], name.replace("L00", "L"))]
    yield "of a table that the output depends on", tables


def flip(chip: Any, place: Any) -> None:
    """Change one bit."""
    from tests.unit.readback import kept

    if place[0] == "memory":
        _, memory, bit = place
        chip.memories[memory][bit] ^= 1
    else:
        kept.flip(chip, place)


def outcome(chip: Any, board: str, original: Any, cells: Any) -> list[str]:
    """The columns that a chip counts in."""
    from fpgaprune.errors import ReadbackError
    from fpgaprune.readback import check_chip, netlist_of
    from tests.unit.readback.mixed import RESULTS, samples

    try:
        if netlist_of(chip, board) == original:
            return ["same"]
        sent, wanted = samples(SAMPLES)
        given = {"synthesised": cells, "patience": 4000}
        found = check_chip(chip, board, sent, wanted, SAMPLES, RESULTS, **given)
    except ReadbackError:
        return ["refused"]
    named = ["named"] if found.cells is not None and not found.cells.holds else []
    return ["differs" if found.first else "alike", *named]


def main() -> None:
    """One row a kind of bits, on standard output."""
    from fpgaprune.readback import netlist_of, read_cells
    from tests.unit.readback.kept import ECP5, GATEMATE, ICE40

    flips = int(sys.argv[1]) if len(sys.argv) > 1 else 2
    board = sys.argv[2] if len(sys.argv) > 2 else ICE40.board
    of_boards = (ICE40, ice40_places), (ECP5, ecp5_places), (GATEMATE, gatemate_places)
    kept, places = {one.board: (one, found) for one, found in of_boards}[board]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        chip = kept.chip(folder)
        original, cells = netlist_of(chip, board), read_cells(next(folder.glob("*.cells.xz")))
        content = [("memory", memory, bit) for memory, bits in chip.memories.items() for bit in range(len(bits))]
        for kind, known in (*places(chip, original), ("of a block memory's content", content)):
            found: Counter[str] = Counter()
            for place in Random(2).sample(known, flips):
                flip(chip, place)
                found.update(outcome(chip, board, original, cells))
                flip(chip, place)
            print({"bits": kind, "flipped": flips, **{column: found[column] for column in COLUMNS}}, flush=True)


if __name__ == "__main__":
    main()
