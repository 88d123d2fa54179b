"""`floorplan`: places a netlist's parts on a rectangle, by cutting the netlist in two again and again.

Each cut is a minimum cut of a hypergraph that states on which side the rest of every net lies (terminal propagation;
A. E. Dunlop and B. W. Kernighan, A procedure for placement of standard-cell VLSI circuits, 1985). Mt-KaHyPar makes the
cuts with its deterministic preset, in a process of its own that can be stopped.
"""

from __future__ import annotations

import importlib.metadata
import itertools
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpgaprune.errors import ToolError
from fpgaprune.processes import run_tool

_PACKAGE = "mtkahypar"
_IMBALANCE = 0.03
_SEED = 1
# Every region is cut once more after its neighbours were cut.
_PASSES = 2
# Regions are cut until they are about this large, in the rectangle's units squared.
_SMALL = 16.0

Net = tuple[tuple[int, ...], int]
Cut = Callable[[list[tuple[int, ...]], list[int], list[int]], list[int]]


@dataclass(frozen=True, slots=True)
class _Region:
    parts: NDArray[np.int64]
    low: tuple[float, float]
    high: tuple[float, float]

    @property
    def middle(self) -> tuple[float, float]:
        return (self.low[0] + self.high[0]) / 2, (self.low[1] + self.high[1]) / 2


def partitioner() -> str:
    """Return the name and version of the installed Mt-KaHyPar.

    Raises:
        ToolError: Mt-KaHyPar is not installed; the message says how to install it.
    """
    try:
        return f"{_PACKAGE} {importlib.metadata.version(_PACKAGE)}"
    except importlib.metadata.PackageNotFoundError:
        raise ToolError(
            f"{_PACKAGE} (floorplans for place and route) was not found; install it with: pip install 'fpgaprune[rtl]'"
        ) from None


def floorplan(
    weights: Sequence[int], nets: Mapping[tuple[int, ...], int], width: float, height: float, timeout_s: float
) -> NDArray[np.float64]:
    """Place parts in a rectangle so that nets are short and weight is spread evenly; return (parts, 2) x and y.

    Args:
        weights: (parts,) area of each, in any unit.
        nets: parts in order -> number of wires that join exactly these.
        width: in any unit; regions are cut until they are about 16 units squared.
        height: in the same unit.
        timeout_s: most seconds.

    Raises:
        ToolError: Mt-KaHyPar is missing, failed, or ran longer than `timeout_s`.
    """
    partitioner()
    ends = np.fromiter(itertools.chain.from_iterable(nets), np.int64)
    lengths = np.fromiter(map(len, nets), np.int64, len(nets))
    wires = np.fromiter(nets.values(), np.int64, len(nets))
    size = np.array([width, height])
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        np.savez(place / "task.npz", weights=np.array(weights), ends=ends, lengths=lengths, wires=wires, size=size)
        command = (sys.executable, "-P", "-m", __name__, "task.npz", "answer.npy")
        run_tool(command, place, timeout_s, name=_PACKAGE, product="floorplans for place and route", computes=True)
        answer: NDArray[np.float64] = np.load(place / "answer.npy", allow_pickle=False)
    return answer


def cut_again_and_again(
    weights: NDArray[np.int64], nets: Sequence[Net], width: float, height: float, cut: Cut
) -> NDArray[np.float64]:
    """Place as `floorplan`, with a function `cut` that puts parts on side 0 or 1: (nets, wires, weights) -> sides.

    The last two parts that `cut` gets stand for everything beyond side 0 and beyond side 1; they stay on their sides.
    """
    at = np.tile([width / 2, height / 2], (len(weights), 1))
    touching: list[list[int]] = [[] for _ in weights]
    for number, (ends, _) in enumerate(nets):
        for part in ends:
            touching[part].append(number)
    regions = [_Region(np.arange(len(weights)), (0.0, 0.0), (width, height))]
    levels = max(0, round(np.log2(max(1.0, width * height / _SMALL))))
    for level in range(levels):
        # Nothing lies around the first cut, so a second pass would repeat it.
        for _ in range(_PASSES if level else 1):
            halves = [half for region in regions for half in _halved(region, at, weights, nets, touching, cut)]
        regions = halves
    return at


def _halved(
    region: _Region,
    at: NDArray[np.float64],
    weights: NDArray[np.int64],
    nets: Sequence[Net],
    touching: Sequence[Sequence[int]],
    cut: Cut,
) -> list[_Region]:
    """Return the two halves of `region`, cut across its longer side; each part moves to the middle of its half."""
    axis = 0 if region.high[0] - region.low[0] >= region.high[1] - region.low[1] else 1
    inner, wires = _inside(region, at[:, axis], region.middle[axis], nets, touching)
    if not inner:
        return [region]
    own = weights[region.parts]
    sides = np.array(cut(inner, wires, [*map(int, own), 0, 0])[:-2])
    first = own[sides == 0].sum() / max(1, own.sum())
    border = region.low[axis] + (region.high[axis] - region.low[axis]) * first
    ends = (region.low[axis], border, region.high[axis])
    halves = []
    for side in (0, 1):
        low, high = (_moved(corner, axis, ends[side + place]) for place, corner in enumerate((region.low, region.high)))
        half = _Region(region.parts[sides == side], low, high)
        at[half.parts] = half.middle
        halves.append(half)
    return halves


def _inside(
    region: _Region,
    position: NDArray[np.float64],
    middle: float,
    nets: Sequence[Net],
    touching: Sequence[Sequence[int]],
) -> tuple[list[tuple[int, ...]], list[int]]:
    """Return the nets of a region's parts, numbered within the region, and their wires.

    The last two numbers stand for everything below and above the region.
    """
    place = {int(part): number for number, part in enumerate(region.parts)}
    below, above = len(place), len(place) + 1
    found = Counter[tuple[int, ...]]()
    for number in dict.fromkeys(number for part in place for number in touching[part]):
        ends, wires = nets[number]
        within = [place[part] for part in ends if part in place]
        beyond = {above if position[p] > middle else below for p in ends if p not in place and position[p] != middle}
        # A net with ends on both sides is cut anyway.
        if len(beyond) < 2 and len(within) + len(beyond) > 1:
            found[(*sorted(within), *beyond)] += wires
    return list(found), list(found.values())


def _moved(corner: tuple[float, float], axis: int, value: float) -> tuple[float, float]:
    return (value, corner[1]) if axis == 0 else (corner[0], value)


def _kahypar_cut() -> Cut:
    import mtkahypar as kahypar

    here = kahypar.initialize(1, False)
    kahypar.set_seed(_SEED)
    context = here.context_from_preset(kahypar.PresetType.DETERMINISTIC)
    context.logging = False
    context.set_partitioning_parameters(2, _IMBALANCE, kahypar.Objective.CUT)

    def cut(nets: list[tuple[int, ...]], wires: list[int], weights: list[int]) -> list[int]:
        graph = here.create_hypergraph(context, len(weights), len(nets), nets, [max(1, w) for w in weights], wires)
        graph.add_fixed_vertices([*[-1] * (len(weights) - 2), 0, 1], 2)
        done: Any = graph.partition(context)
        return [done.block_id(part) for part in range(len(weights))]

    return cut


if __name__ == "__main__":
    with np.load(sys.argv[1], allow_pickle=False) as task:
        borders = np.cumsum(task["lengths"])[:-1]
        lists = [tuple(map(int, ends)) for ends in np.split(task["ends"], borders)]
        joined = list(zip(lists, map(int, task["wires"]), strict=True))
        width, height = map(float, task["size"])
        np.save(sys.argv[2], cut_again_and_again(task["weights"], joined, width, height, _kahypar_cut()))
