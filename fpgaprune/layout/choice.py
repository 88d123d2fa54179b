"""`choose_layout`: each layer of a design laid out so that all keep one interval and the whole fits a part.

For an interval each layer has a few ways to keep it: a schedule with the fewest multipliers that are enough, the same
with two values in each multiplier, or as it comes. One of each is chosen by a small integer program: the shares of the
part are as small as they can be, and none exceeds what may be used. The smallest interval with an answer is found in
steps, and then by halving; the layout is settled when the whole design takes as many cycles, beat by beat.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from math import inf

import numpy as np
from msgspec import structs

from fpgaprune.design import Convolution, Dense, Design, Recurrent, VerilogLayout
from fpgaprune.errors import EstimateError
from fpgaprune.estimate import Counts, DigitCounter, find_fabric, price_hardware, timed
from fpgaprune.fabric import most_small_memories, price_family_of
from fpgaprune.layout.candidates import SMALL_MEMORIES, Candidates, Way, way_of
from fpgaprune.measure import (
    OF_VERILOG,
    ChosenLayout,
    LaidLayer,
    capacity_of,
    occupancy_of,
    unknown_capacity,
)
from fpgaprune.rtl import Instance, LayerHardware, plan_verilog
from fpgaprune.target import Part

# Two intervals this close are as good as one; intervals that are tried first lie so far apart, and those between them.
_CLOSE, _STEP, _SMALL_STEP = 1.01, 1.5, 1.1
# So often a layout is chosen anew because it takes too much, or too many cycles; where it takes too much, each time for
# so much less.
_TIMES, _LESS = 5, 0.97


def choose_layout(
    design: Design,
    part: Part,
    family: str | None = None,
    *,
    share: float = 0.8,
    interval: int | None = None,
    layout: VerilogLayout | None = None,
    upper: bool = False,
    faster: bool = False,
) -> ChosenLayout:
    """Choose the layout with the smallest interval that fits `part`, or with a given interval the smallest shares.

    Args:
        design: what is to be computed.
        part: where it must fit.
        family: whose estimate of open synthesis counts, as `xc7` or `ecp5`; that of the part unless given.
        share: of each resource that the middle of the price may take, 0..1.
        interval: cycles for each sample; the fewest that fit unless given.
        layout: all else of the layout; the defaults unless given.
        upper: whether the upper end of the price counts too. If it takes more than `share`, a layout is chosen anew
            for as much less; that one's `share` says for how much.
        faster: whether to find how many multipliers more for the slowest layer make the whole design faster, which
            takes as long as to choose.

    Raises:
        EstimateError: no layout fits, or nothing was fitted for the family, or the part's capacity is unknown.
        UnsupportedLayerError, DesignError, RtlError: as for `fpgaprune.to_verilog`.

    Examples:
        >>> chosen = fp.choose_layout(fp.make_design(model, target, x), target.part)
        >>> chosen.price.interval_cycles > 0
        True
    """
    base = layout or VerilogLayout()
    family = family or require_family(part)
    ways = Candidates(design, find_fabric(family), base) if layout else _remembered(_Same(design), family)
    there = {name: count for name in OF_VERILOG if (count := capacity_of(part)[name]) is not None}
    if not any(there.values()):
        raise unknown_capacity(part.name)
    question = _Question(design, part, ways, there, interval, most_small_memories(part))
    chosen = question.answer(share)
    if chosen is None and question.memories < inf:
        # With more small memories, place and route may still end.
        question = replace(question, memories=inf)
        chosen = question.answer(share)
    if chosen is None:
        how = "one multiplier for each layer" if interval is None else f"{interval} cycles for each sample"
        raise EstimateError(
            f"no layout of {design.name!r} with {how} fits {share:.0%} of {part.name}; "
            "choose a larger part, prune more, use fewer bits, or give a sample more cycles"
        )
    less = share
    for _ in range(_TIMES if upper else 0):
        highest = occupancy_of(chosen.price.resources, part).require_nearest("high").share("high")
        if highest <= share:
            break
        less = round(_LESS * less * share / highest, 3)
        # What does not fit into a share does not fit into less of it.
        found = question.answer(less, shortest=chosen.allowed)
        if found is None:
            break
        chosen = found
    return _with_more(design, ways, chosen) if faster else chosen


@dataclass(frozen=True, eq=False)
class _Same:
    """A design that is equal to itself alone."""

    design: Design

    def __hash__(self) -> int:
        return id(self.design)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.design is other.design


# For one design after another, layouts are chosen for several shares and intervals.
@lru_cache(maxsize=2)
def _remembered(same: _Same, family: str) -> Candidates:
    return Candidates(same.design, find_fabric(family), VerilogLayout())


def require_family(part: Part) -> str:
    """Return the family whose estimate of our Verilog stands for `part`.

    Raises:
        EstimateError: open synthesis does not know the part.
    """
    family = price_family_of(part)
    if family is None:
        raise EstimateError(f"open synthesis does not know the family of {part.name}; choose a part of another family")
    return family


@dataclass(frozen=True)
class _Question:
    """Which ways to take, of a part with `there` of each resource, for a given interval or for the smallest.

    Of small `memories` it bears so many, whatever the share.
    """

    design: Design
    part: Part
    ways: Candidates
    there: Mapping[str, int]
    interval: int | None
    memories: float

    def answer(self, share: float, shortest: int = 0) -> ChosenLayout | None:
        """Return the layout with the smallest interval, or within the given one; None if none takes at most `share`.

        No interval below `shortest` is tried.
        """
        for every in (False, True):
            room = {name: share * count for name, count in self.there.items()}
            if self.memories < inf:
                room[SMALL_MEMORIES] = self.memories
            for _ in range(_TIMES):
                first = self.interval or _quickest(self.ways, room, max(shortest, self.ways.least()), every)
                found = None if first is None else self._settled(first, share, room, every)
                if found is None:
                    break
                over = {name: share / used for name, used in found.used.items() if used > share}
                if found.price.memories > self.memories:
                    over[SMALL_MEMORIES] = self.memories / found.price.memories
                if not over:
                    return found
                # What stands between two layers depends on both. For as much less alone the same might be chosen again.
                room = {name: count * _LESS * over.get(name, 1 / _LESS) for name, count in room.items()}
        return None

    def _settled(self, allowed: int, share: float, room: Mapping[str, float], every: bool) -> ChosenLayout | None:
        """Return the layout for `allowed` cycles, or for as many as the whole design takes then.

        Layers that each keep an interval may not keep it together: what stands between them takes cycles as well, and
        branches wait for each other.
        """
        best = None
        for _ in range(_TIMES):
            ways = _fitting(self.ways.at(allowed, every), room)
            if ways is None:
                break
            found = _explained(self.design, self.part, self.ways, ways, share, allowed)
            if self.interval is not None:
                if found.interval <= self.interval:
                    return found
                allowed = max(allowed + self.interval - found.interval, 1)
                continue
            if best is None or found.interval <= best.interval:
                best = found
            if found.interval / _CLOSE <= allowed <= found.interval * _CLOSE:
                break
            allowed = found.interval
        return best


def _quickest(ways: Candidates, room: Mapping[str, float], shortest: int, every: bool) -> int | None:
    """Return the smallest interval from `shortest` on for which there is a choice; None if none is found."""

    def fits(interval: int, room: Mapping[str, float] = room) -> bool:
        return _fitting(ways.at(interval, every), room) is not None

    tried = _steps(shortest, max(ways.slowest() + 1, shortest), _STEP)
    # More cycles take less, but not always: fewer multipliers may need more LUTs around them, or more memories. So
    # halving finds where twice the room is enough, and from there on all are tried, in small steps up to the first one.
    twice = {name: 2 * count for name, count in room.items()}
    first = bisect_left(tried[1:], True, key=lambda high: fits(high, twice))
    best = next(filter(fits, (tried[0], *tried[first + 1 :])), None)
    if best is None:
        return None
    best = next(filter(fits, _steps(tried[first], best, _SMALL_STEP)), best)
    low = max(int(best / _SMALL_STEP), shortest - 1)
    while best > low * _CLOSE and best > low + 1:
        middle = (low + best) // 2
        if fits(middle):
            best = middle
        else:
            low = middle
    return best


def _steps(least: int, most: int, factor: float) -> list[int]:
    """Return intervals from `least` to `most`, each about `factor` times the one before it."""
    found = [most]
    while found[-1] > least:
        found.append(max(min(int(found[-1] / factor), found[-1] - 1), least))
    return found[::-1]


def _fitting(found: tuple[dict[str, list[Way]], Counts], room: Mapping[str, float]) -> dict[str, Way] | None:
    """Return one way for each layer, all within `room` and of the smallest shares; None if there is no such choice."""
    from scipy.optimize import Bounds, LinearConstraint, milp

    ways, rest = found
    flat = [(name, way) for name, rows in ways.items() for way in rows]
    left = np.array([room[name] - rest[name] for name in room])
    if (left < 0).any() or any(not rows for rows in ways.values()):
        return None
    if not flat:
        return {}
    takes = np.array([[way.takes[name] for _, way in flat] for name in room])
    # Of a resource that the part lacks nothing can be taken, so it has no share.
    priced = [(row, room[name]) for row, name in zip(takes, room, strict=True) if name != SMALL_MEMORIES]
    shares = sum(row / count for row, count in priced if count)
    one = np.array([[float(name == own) for own, _ in flat] for name in ways])
    limits = [LinearConstraint(takes, ub=left), LinearConstraint(one, 1, 1)]
    solved = milp(shares, constraints=limits, integrality=np.ones(len(flat)), bounds=Bounds(0, 1))
    if solved.x is None:
        return None
    return {name: way for (name, way), chosen in zip(flat, solved.x, strict=True) if chosen > 0.5}


def _explained(
    design: Design, part: Part, ways: Candidates, chosen: Mapping[str, Way], share: float, allowed: int
) -> ChosenLayout:
    multipliers = {name: way.multipliers for name, way in chosen.items() if way.multipliers}
    paired = tuple(name for name, way in chosen.items() if way.paired)
    fold = {**ways.layout.fold, **{name: 1 for name, way in chosen.items() if way.at_once}}
    in_luts = tuple(name for name, way in chosen.items() if way.in_luts)
    layout = replace(ways.layout, multipliers=multipliers, paired=paired, in_luts=in_luts, interval=allowed, fold=fold)
    hardware = plan_verilog(design, layout, DigitCounter.of(design, layout))
    price = price_hardware(design, hardware, ways.fabric)
    made = {part.layer: part for part in hardware.layers}
    rows = []
    for layer in design.layers:
        # Where weights are loaded, the cycles alone say how a recurrent layer is laid out.
        kinds = Dense | Convolution if ways.layout.loadable else Dense | Convolution | Recurrent
        if isinstance(layer.operation, kinds):
            # A layer whose additions have an order comes as it is, without a choice.
            way = chosen.get(layer.name, Way(0, False, {}))
            # A recurrent layer that comes as it is may have a schedule, too.
            number = way.multipliers or _multipliers(made[layer.name])
            cycles = ways.cycles(layer.name, number, way.paired) if number else None
            rows.append(LaidLayer(layer.name, way_of(made[layer.name]), number, way.paired, cycles, way.in_luts))
    used = {row.resource: row.share() for row in occupancy_of(price.resources, part).taken if row.capacity}
    return ChosenLayout(part.name, share, price.interval_cycles, allowed, tuple(rows), used, price, None, None, fold)


def _multipliers(layer: LayerHardware) -> int:
    """Return the multipliers of a schedule in `layer`; 0 where it has none."""
    modules = [part for part in layer.every if isinstance(part, Instance) and part.module == "fp_scheduled"]
    return sum(part["GROUPS"] * part["TAPS"] for part in modules)


def _with_more(design: Design, ways: Candidates, chosen: ChosenLayout) -> ChosenLayout:
    """Return `chosen` with how many more multipliers for its slowest layer make the design faster, if any do."""
    slowest = chosen.slowest
    if slowest is None or (slowest.cycles or 0) * _CLOSE < chosen.interval:
        # Something else holds the design up.
        return chosen
    wanted = ways.fewest(design[slowest.layer], (slowest.cycles or 0) - 1, slowest.paired)
    if wanted is None:
        return chosen
    settings = chosen.settings
    multipliers = {**settings["multipliers"], slowest.layer: wanted}
    layout = replace(ways.layout, **{**settings, "multipliers": multipliers})
    then = timed(plan_verilog(design, layout, DigitCounter.of(design, layout))).interval
    if then >= chosen.interval:
        return chosen
    return structs.replace(chosen, faster=wanted - slowest.multipliers, then_cycles=then)
