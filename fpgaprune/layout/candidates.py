"""`Candidates`: the ways in which each layer can keep one interval, with what each takes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cache

from fpgaprune.design import Dense, Design, Input, LayerSpec, Recurrent, Scale, VerilogLayout
from fpgaprune.estimate import Counts, DigitCounter, Fabric, count_layer, timed
from fpgaprune.measure import AT_ONCE, BIT_BY_BIT, FOLDED, SCHEDULED
from fpgaprune.rtl import (
    Instance,
    LayerHardware,
    Part,
    SerialSums,
    SerialTrees,
    cycles_of,
    is_schedulable,
    may_be_in_luts,
    may_be_paired,
    most_beats,
    plan_verilog,
    program_of,
)

# The wider factor of a multiplier that takes two values at once.
_WIDE = 25
# Beside the resources of a part: memories that are made of LUTs, for which a part may have few places.
SMALL_MEMORIES = "small memories"
# Adders for more weights than that take minutes to be written, compiled and synthesised, and most of the LUTs.
_MANY = 1024


@dataclass(frozen=True)
class Way:
    """One way to lay a layer out: `multipliers` of a schedule, or 0 for as it comes; what it takes, by resource.

    A layer that scales each channel in turn, and a Dense layer that is folded, may also be laid out `at_once`.
    Multipliers may be made of LUTs: `in_luts`.

    What it takes includes the layers without weights that follow: they compute as many values at a time as it sends.
    """

    multipliers: int
    paired: bool
    takes: Mapping[str, float]
    at_once: bool = False
    in_luts: bool = False


class Candidates:
    """The ways of every layer of a design, for one family; each interval is asked for once."""

    def __init__(self, design: Design, fabric: Fabric, layout: VerilogLayout) -> None:
        self.design, self.fabric, self.layout = design, fabric, layout
        every = [layer for layer in design.layers if is_schedulable(design, layer)]
        # Steps that wait for each other take cycles however they are laid out.
        self.looped = [layer for layer in every if isinstance(layer.operation, Recurrent)]
        self.layers = [layer for layer in every if not (layout.loadable and isinstance(layer.operation, Recurrent))]
        named = {layer.name for layer in self.layers}
        behind = _leaders(design, named)
        # Behind other layers it depends on those how a layer that scales each channel comes.
        self.scales = [la.name for la in design.layers if isinstance(la.operation, Scale) and la.name not in behind]
        self.leaders = _leaders(design, named.union(self.scales))
        self.cycles = cache(self._cycles)
        self.many = cache(lambda name: program_of(design[name], 1).weights.size > _MANY)
        self.ladder = cache(self._ladder)
        self.at = cache(self.ways_at)
        """For each layer the ways that keep an interval, and what takes the same however layers are laid out."""

    def may_pair(self, layer: LayerSpec) -> bool:
        """Return whether a multiplier of the family can take two values of `layer` at once."""
        return self.fabric.product["wide"] >= _WIDE and may_be_paired(self.design, layer)

    def slowest(self) -> int:
        """Return the cycles of the slowest layer with one multiplier each."""
        return max((self.cycles(layer.name, 1, False) for layer in (*self.layers, *self.looped)), default=1)

    def least(self) -> int:
        """Return the cycles that a sample takes on its way in and through: no layout makes it faster."""
        return max(most_beats(self.design, layer) for layer in self.design.layers)

    def ways_at(self, interval: int, every: bool = False) -> tuple[dict[str, list[Way]], Counts]:
        """Return for each layer the ways that keep `interval`, and what everything else takes.

        A layer of many weights comes as it is only where no schedule keeps the interval; anywhere, if `every`.
        """
        found: dict[str, list[Way]] = {name: [] for name in (*self.scales, *(layer.name for layer in self.layers))}
        rest = Counts()
        for paired in (False, True):
            chosen = {
                layer.name: number
                for layer in self.layers
                if (not paired or self.may_pair(layer)) and (number := self.fewest(layer, interval, paired)) is not None
            }
            if paired and not chosen:
                continue
            hardware = self._planned(chosen, tuple(chosen) if paired else (), interval)
            own, others = self._taken(hardware)
            if not paired:
                rest = others
                for name in self.scales:
                    found[name].append(Way(0, False, own[name]))
            for name, number in chosen.items():
                found[name].append(Way(number, paired, own[name]))
            if not paired:
                narrow = {name for name in chosen if may_be_in_luts(self.design, self.design[name])}
                own, _ = self._taken([_in_luts(part) if part.layer in narrow else part for part in hardware])
                for name in narrow:
                    found[name].append(Way(chosen[name], False, own[name], in_luts=True))
        if self.layout.loadable:
            # What cannot be scheduled cannot be loaded either, and everything else shall be.
            return found, rest
        # The adders of many weights are not counted in vain.
        first = {name: rows[0].multipliers for name, rows in found.items() if rows and name not in self.scales}
        scheduled = {} if every else {name: number for name, number in first.items() if self.many(name)}
        fold = dict.fromkeys(self.scales, 1) | dict(self.layout.fold)
        as_they_come = self._planned(scheduled, (), interval, fold)
        own, _ = self._taken(as_they_come)
        for name in self.scales:
            if own[name] != found[name][0].takes:
                found[name].append(Way(0, False, own[name], at_once=True))
        for name in own.keys() - scheduled.keys() - set(self.scales):
            # At once, too, the steps of a recurrent layer wait for each other.
            if not isinstance(self.design[name].operation, Recurrent) or self.cycles(name, 0, False) <= interval:
                found[name].append(Way(0, False, own[name]))
        dense = {name for name in own.keys() - scheduled.keys() if isinstance(self.design[name].operation, Dense)}
        folded = {part.layer for part in as_they_come if way_of(part) == FOLDED} & dense - fold.keys()
        if folded:
            own, _ = self._taken(self._planned(scheduled, (), interval, dict.fromkeys(folded, 1) | fold))
            for name in folded:
                found[name].append(Way(0, False, own[name], at_once=True))
        return found, rest

    def fewest(self, layer: LayerSpec, interval: int, paired: bool) -> int | None:
        """Return the fewest multipliers with which `layer` keeps `interval`; None if none are enough."""
        return next((number for cycles, number in self.ladder(layer.name, paired) if cycles <= interval), None)

    def _ladder(self, name: str, paired: bool) -> tuple[tuple[int, int], ...]:
        """List (cycles, multipliers), each faster than the one before: parts of a kernel, then whole kernels."""
        if isinstance(self.design[name].operation, Recurrent):
            return self._fewer_rungs(name)
        weight = self.design[name].weights["weight"]
        taps = math.prod(weight.shape[:-2])
        kernels = int(weight.reshape(taps, -1).any(axis=0).sum())
        # With more groups than that, values come and sums leave more slowly than they are multiplied.
        groups = -(-kernels // max(weight.shape[-2:])) + 1
        found: list[tuple[int, int]] = []
        for number in (*range(1, taps), *range(taps, taps * groups + 1, taps)):
            cycles = self.cycles(name, number, paired)
            if not found or cycles < found[-1][0]:
                found.append((cycles, number))
        return tuple(found)

    def _fewer_rungs(self, name: str) -> tuple[tuple[int, int], ...]:
        """List rungs of a recurrent layer, whose cycles take long to count: a quarter more multipliers each."""
        program = program_of(self.design[name], 1)
        most = len(program.places) // program.outputs + 1
        numbers = [1]
        while numbers[-1] < most:
            numbers.append(min(numbers[-1] + max(numbers[-1] // 4, 1), most))
        found = [(self.cycles(name, number, False), number) for number in numbers]
        return tuple(row for place, row in enumerate(found) if all(row[0] < before for before, _ in found[:place]))

    def _cycles(self, name: str, multipliers: int, paired: bool) -> int:
        """Count the cycles of a layer by itself; without multipliers, it is computed at once."""
        layout = replace(
            self.layout, multipliers={name: multipliers} if multipliers else {}, paired=(name,) if paired else ()
        )
        layer = self.design[name]
        if isinstance(layer.operation, Recurrent):
            source = self.design[layer.inputs[0]]
            given = LayerSpec(
                source.name, (), source.output_shape, {"result": source.types["result"]}, operation=Input()
            )
            layout = replace(layout, loadable=False)
            alone = replace(self.design, layers=(given, layer), outputs=(name,))
            return timed(plan_verilog(alone, layout, DigitCounter.of(alone, layout))).interval
        return cycles_of(self.design, self.design[name], layout)

    def _planned(
        self,
        multipliers: Mapping[str, int],
        paired: tuple[str, ...],
        interval: int,
        fold: Mapping[str, int] | None = None,
    ) -> tuple[LayerHardware, ...]:
        """Plan the hardware of all layers in one layout."""
        loadable = self.layout.loadable and bool(multipliers)
        layout = replace(
            self.layout,
            multipliers=multipliers,
            paired=paired,
            loadable=loadable,
            interval=interval,
            fold=self.layout.fold if fold is None else fold,
        )
        return plan_verilog(self.design, layout, DigitCounter.of(self.design, layout)).layers

    def _taken(self, hardware: Sequence[LayerHardware]) -> tuple[Mapping[str, Counts], Counts]:
        """Return what each layer with weights takes with the layers that follow it, and all others together."""
        own = {name: Counts() for name in (*self.scales, *(layer.name for layer in self.layers))}
        rest = Counts()
        for part in hardware:
            leader = self.leaders.get(part.layer)
            counts = count_layer(part)
            takes = {**self.fabric.resources(counts), SMALL_MEMORIES: self.fabric.memories(counts)}
            (rest if leader is None else own[leader]).more(takes)
        return own, rest


def _in_luts(layer: LayerHardware) -> LayerHardware:
    """Return `layer` with the multipliers of its schedule made of LUTs."""

    def made(part: Part) -> Part:
        if not isinstance(part, Instance) or part.module != "fp_scheduled":
            return part
        return replace(part, parameters={**part.parameters, "IN_LUTS": 1})

    rows = tuple(tuple(made(part) for part in row) for row in layer.rows)
    return replace(layer, rows=rows, parts=tuple(made(part) for part in layer.parts))


def way_of(layer: LayerHardware) -> str:
    """Return how the sums of `layer` are made."""
    if any(isinstance(part, SerialSums | SerialTrees) for part in layer.parts):
        return BIT_BY_BIT
    modules = {part.module for part in layer.every if isinstance(part, Instance)}
    return SCHEDULED if "fp_scheduled" in modules else FOLDED if "fp_accumulate" in modules else AT_ONCE


def _leaders(design: Design, named: Set[str]) -> dict[str, str]:
    """Map each layer to the last one of `named` from which its values come, or to itself.

    The leader decides how many values come at a time, and so what the layers behind it take.
    """
    places = {layer.name: place for place, layer in enumerate(design.layers)}
    found: dict[str, str] = {}
    for layer in design.layers:
        before = [found[name] for name in layer.inputs if name in found]
        if layer.name in named:
            found[layer.name] = layer.name
        elif before:
            found[layer.name] = max(before, key=places.__getitem__)
    return found
