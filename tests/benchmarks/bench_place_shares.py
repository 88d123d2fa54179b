"""How long place and route takes for a share of each kind of cell, on random networks of four families.

    python tests/benchmarks/bench_place_shares.py FOLDER [--board tang-nano-9k] [--seeds 1 2 3] [--minutes 10]

Every seed draws a network of each family (Dense, 1-D and 2-D convolutions, depthwise), and for it the layouts that take
between --least and --most of the FPGA by their estimate; --layouts draws so many of them. Each one is synthesised with
the board's serial port, placed and routed. A row says the share of each kind of cell that nextpnr counts, the LUTs that
were estimated, the processor seconds that are said for them (0: none), the seconds that it took, by the clock and of
the processor, how it ended, and whether the machine was busy when it began. Processor seconds are those of the machine
of the time laws. Rows are appended to FOLDER/place_shares.csv.
"""

from __future__ import annotations

import argparse
import csv
import random
import re
import resource
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

# nextpnr's line for one kind of site: used, and how many the device has.
_SITES = re.compile(r"^Info:\s+(\w+):\s+(\d+)/\s*(\d+)\s")
KINDS = {
    "lut": ("LUT4", "TRELLIS_COMB", "ICESTORM_LC", "OXIDE_COMB", "CPE_LT"),
    "ff": ("DFF", "TRELLIS_FF", "OXIDE_FF", "CPE_FF"),
    "carry": ("ALU",),
    "lutram": ("RAM16SDP4", "TRELLIS_RAMW"),
    "bram": ("BSRAM", "DP16KD", "ICESTORM_RAM", "OXIDE_EBR", "RAM_HALF"),
    "dsp": ("MULT9X9", "MULT18X18", "MULT18X18D", "ICESTORM_DSP"),
}
COLUMNS = ("board", "network", "interval", *KINDS, "luts", "said", "seconds", "cpu_seconds", "ended", "mhz", "machine")
FAMILIES = ("dense", "conv1d", "conv2d", "depthwise")


def network(family: str, seed: int) -> Any:
    """A random network of `family`: types, sizes and zeros are drawn."""
    import numpy as np

    from fpgaprune.values import FixedType
    from tests.unit.rtl.networks import Net

    class Usual(Net):
        """Types as a run gives them: 8 bits, sums of 19."""

        def kind(self, *_: Any, **__: Any) -> FixedType:
            return FixedType(8, 3, True, "RND", "SAT")

        def accum(self) -> FixedType:
            return FixedType(19, 8)

        def weights(self, *shape: int) -> tuple[Any, FixedType]:
            raw, kind = super().weights(*shape)
            return raw * (self.rng.random(shape) < 0.5), kind

    rng = np.random.default_rng(seed)
    net, draw = Usual(rng), rng.integers
    if family == "dense":
        x = net.input(int(draw(16, 65)))
        for _ in range(int(draw(1, 3))):
            x = net.dense(x, int(draw(8, 25)))
    elif family == "conv1d":
        x = net.input(1, int(draw(32, 129)), int(draw(1, 4)))
        for _ in range(int(draw(1, 4))):
            x = net.conv(x, int(draw(4, 13)), (1, int(draw(3, 6))))
        x = net.global_pool(x, "Average")
    elif family == "conv2d":
        x = net.input(int(draw(8, 17)), int(draw(8, 17)), int(draw(1, 4)))
        for _ in range(int(draw(1, 3))):
            x = net.conv(x, int(draw(4, 11)))
        x = net.flatten(net.pool(x, "Max"))
    elif family in ("gru", "lstm"):
        x = net.recurrent(net.input(int(draw(10, 41)), int(draw(2, 9))), family.upper(), int(draw(8, 21)), False)
    else:
        x = net.input(int(draw(8, 17)), int(draw(8, 17)), int(draw(2, 5)))
        for _ in range(int(draw(1, 3))):
            x = net.conv(net.depthwise(x), int(draw(4, 11)), (1, 1))
        x = net.global_pool(x, "Average")
    return net.design(net.dense(x, int(draw(4, 11))))


def layouts(design: Any, board: str, least: float, most: float) -> Iterator[tuple[dict[str, Any], int]]:
    """The fields of the layouts that take between `least` and `most` of the FPGA, and the LUTs placed, as estimated."""
    from fpgaprune.fabric import find_board_router
    from fpgaprune.layout import at_interval, slower_layouts
    from fpgaprune.target import find_part

    place, router, _ = find_board_router(board)
    part, seen = find_part(place.device), set()
    for laid in (at_interval(design, part), *slower_layouts(design, part)):
        counts = {name: count or 0 for name, count in laid.counts().items()}
        fullest = max(row.share for row in router.devices.placed(counts, part))
        if least <= fullest <= most and tuple(counts.values()) not in seen:
            seen.add(tuple(counts.values()))
            yield dict(laid.fields), round(router.devices.placed_luts(counts))


def sites(folder: Path) -> dict[str, float | None]:
    """Kind -> share of the device, as the newest log of nextpnr below `folder` counts it before placing."""
    logs = sorted(folder.rglob("seed1.log"), key=lambda path: path.stat().st_mtime)
    found: dict[str, float] = {}
    for line in logs[-1].read_text(errors="replace").splitlines() if logs else ():
        match = _SITES.match(line)
        if match and int(match[3]):
            found.setdefault(match[1], int(match[2]) / int(match[3]))
    shares = {
        kind: max((found[name] for name in names if name in found), default=None) for kind, names in KINDS.items()
    }
    if (
        "ALU" in found
    ):  # A Gowin's carry cells and memories stand on its LUTs: three in four can be the one or the other.
        shares["lut"] = found["LUT4"] + 0.75 * (found["ALU"] + found["RAM16SDP4"] / 4)
    return shares


def measure(design: Any, board: str, fields: dict[str, Any], luts: int, folder: Path, minutes: float) -> dict[str, Any]:
    """The row of one layout without its names."""
    from fpgaprune import to_verilog
    from fpgaprune.errors import FpgaPruneError
    from fpgaprune.fabric import (
        bitstream_ending,
        bitstream_seconds,
        find_board_router,
        make_bitstream,
        processor_slowness,
        waiting_for_cores,
    )

    project = to_verilog(design, folder, **fields)
    slow, machine = processor_slowness(), "busy" if waiting_for_cores() > 1 else "free"
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    mhz: float | str = ""
    try:
        output = folder / f"x{bitstream_ending(board)}"
        mhz = make_bitstream(project, board, output, timeout_s=60 * minutes).fmax_mhz
        ended = "done"
    except FpgaPruneError as error:
        ended = f"{type(error).__name__}: {str(error)[:90]}"
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    shares = {kind: "" if share is None else round(share, 3) for kind, share in sites(folder).items()}
    slow = (slow + processor_slowness()) / 2
    times = {
        "said": bitstream_seconds(find_board_router(board)[1].family, luts) or 0,
        "seconds": time.monotonic() - started,
        "cpu_seconds": (used.ru_utime - before.ru_utime) / slow,
    }
    rounded = {name: round(value) for name, value in times.items()}
    return {**shares, "luts": luts, **rounded, "ended": ended, "mhz": mhz, "machine": machine}


def main() -> None:
    """One row a layout, on standard output and in FOLDER/place_shares.csv."""
    from fpgaprune.layout import board_design

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--board", default="tang-nano-9k")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--families", nargs="+", default=FAMILIES)
    parser.add_argument("--least", type=float, default=0.4)
    parser.add_argument("--most", type=float, default=1.0)
    parser.add_argument("--layouts", type=int, default=100)
    parser.add_argument("--minutes", type=float, default=10.0)
    chosen = parser.parse_args()
    chosen.folder.mkdir(parents=True, exist_ok=True)
    table = chosen.folder / "place_shares.csv"
    new = not table.exists()
    with table.open("a", newline="") as written:
        rows = csv.DictWriter(written, COLUMNS, lineterminator="\n")
        if new:
            rows.writeheader()
        for seed in chosen.seeds:
            for family in chosen.families:
                design = board_design(network(family, seed))
                found = list(layouts(design, chosen.board, chosen.least, chosen.most))
                for fields, luts in random.Random(seed).sample(found, min(chosen.layouts, len(found))):
                    interval = fields.get("interval", 0)
                    folder = chosen.folder / chosen.board / f"{family}{seed}-{interval}"
                    row = measure(design, chosen.board, fields, luts, folder, chosen.minutes)
                    named = {"board": chosen.board, "network": f"{family} {seed}", "interval": interval}
                    rows.writerow({**named, **row})
                    written.flush()
                    print({**named, **row}, flush=True)


if __name__ == "__main__":
    main()
