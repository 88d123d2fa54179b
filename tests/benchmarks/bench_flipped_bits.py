"""What is said of an iCEBreaker's bitstream in which one bit is flipped, for bits drawn at random, 64 samples each.

    python tests/benchmarks/bench_flipped_bits.py [FLIPS]

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


def places(chip: Any, netlist: Any) -> Iterator[tuple[str, list[Any]]]:
    """Kinds of bits, each with the places of its bits."""
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
    yield "of a block memory's content", [(memory, bit) for memory in chip.memories for bit in range(4096)]


def flip(chip: Any, place: Any) -> None:
    """Change one bit."""
    if len(place) == 2:
        memory, bit = place
        chip.memories[memory][bit] ^= 1
    else:
        chip.bits[place] ^= 1


def outcome(chip: Any, original: Any, cells: Any, cache: Path) -> list[str]:
    """The columns that a chip counts in."""
    from fpgaprune.errors import ReadbackError
    from fpgaprune.readback import check_chip, netlist_of
    from tests.unit.readback.ice40 import BOARD
    from tests.unit.readback.mixed import RESULTS, samples

    try:
        if netlist_of(chip, BOARD) == original:
            return ["same"]
        sent, wanted = samples(SAMPLES)
        given = {"synthesised": cells, "patience": 4000, "cache": cache}
        found = check_chip(chip, BOARD, sent, wanted, SAMPLES, RESULTS, **given)
    except ReadbackError:
        return ["refused"]
    named = ["named"] if found.cells is not None and not found.cells.holds else []
    return ["differs" if found.first else "alike", *named]


def main() -> None:
    """One row a kind of bits, on standard output."""
    from fpgaprune.readback import netlist_of, read_cells
    from tests.unit.readback.ice40 import BOARD, kept_chip

    flips = int(sys.argv[1]) if len(sys.argv) > 1 else 2
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        chip = kept_chip(folder)
        original, cells = netlist_of(chip, BOARD), read_cells(folder / "mixed.bin.cells.xz")
        for kind, known in places(chip, original):
            found: Counter[str] = Counter()
            for place in Random(2).sample(known, flips):
                flip(chip, place)
                found.update(outcome(chip, original, cells, folder))
                flip(chip, place)
            print({"bits": kind, "flipped": flips, **{column: found[column] for column in COLUMNS}}, flush=True)


if __name__ == "__main__":
    main()
