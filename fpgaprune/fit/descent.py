"""`Descent`: from the trained network down to the smallest one that still loses little."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from fpgaprune.fit.answer import FitPoint
from fpgaprune.fit.foresight import Foresight
from fpgaprune.fit.knobs import Knobs
from fpgaprune.layout import DesignLayout

# The first step asks for this share of the price before; each time that no knob can pay, the step is halved.
STEP = 0.6
# A step that saves less ends the descent.
_FINEST = 0.93
# A turn that takes at most this share of the loss that is left is made at once; a dearer one waits for finer steps.
_CHEAP = 0.5
# A turn leaves at least this share of the products. Where other things fill the part, no number of zeros brings the
# price down to the wanted one, and the turn would lock nearly all units and lose the network.
_LEAST_KEPT = 0.35
# A turn takes at most so many bits away: from eight to three bits of activations at once nearly every network fails.
_MOST_BITS = 3
# Widths to begin with, if the usual one loses too much by itself.
_WIDER = (10, 12, 16)

# Trains some knobs in a layout, from the network of a point or from the trained one.
Judge = Callable[[Knobs, DesignLayout, FitPoint | None], FitPoint | None]


@dataclass
class Descent:
    """Turns one knob after another, each time the one that lost least for what it saved, and takes back bad turns.

    Each network is trained from the last good one: from its weights and its locks.

    The price of a network is what it takes of the part in one layout: the fastest that the network can be expected to
    fit. If it never fits, slower layouts remain: each point is laid out for itself.

    Attributes:
        names: the knobs that may be turned.
        foresight: prices.
        judge: trains and judges a network.
        goes_on: whether there is time for another trial.
        room: the loss that a point still leaves to the limit.
        ahead: learns of networks that may be judged next, in the order in which they would be, and of the point from
            which they are trained.
        hopeless: whether a network is not worth a trial, by what others lost.
        again: whether the first network is trained again if it has a point.
    """

    names: Sequence[str]
    foresight: Foresight
    judge: Judge
    goes_on: Callable[[], bool]
    room: Callable[[FitPoint], float]
    ahead: Callable[[Sequence[Knobs], FitPoint], None] = lambda *_: None
    hopeless: Callable[[Knobs], bool] = lambda _: False
    again: bool = True
    rates: dict[str, float] = field(default_factory=dict)
    """Knob to the loss for each halving of the price, the last time that it was turned."""
    notes: list[str] = field(default_factory=list)

    def run(
        self, start: Knobs, good: FitPoint | None = None, finest: float = _FINEST
    ) -> Iterator[tuple[Knobs, FitPoint]]:
        """Every network on the way, and its point; the first is trained from the point `good`, if there is one."""
        rung = self.foresight.rung(start)
        known = good is not None and Knobs.of(good.settings) == start
        begun = [] if known and not self.again else list(self._start(start, good))
        yield from begun
        if good is not None and known:
            # Longer training may lose more by chance; what was good stays a place to go on from.
            begun.append((start, good))
        if not begun:
            return
        knobs, point = min(begun, key=lambda pair: pair[1].lost)
        step, tried = STEP, {knobs for knobs, _ in begun}
        dear: list[tuple[float, Knobs, FitPoint]] = []
        while (step < finest or dear) and self.goes_on():
            if step >= finest:
                # Nothing cheap is left, so the turn that lost least for what it saved is made.
                _, knobs, point = min(dear, key=lambda found: found[0])
                step, dear = STEP, []
            price = self.foresight.price(rung, knobs)
            turns = [(name, self._turn(knobs, name, rung, step * price)) for name in self.names]
            moves = [(name, turned) for name, turned in turns if turned and not self.hopeless(turned)]
            moves.sort(key=lambda move: self._expected(move[0], move[1], rung, price))
            self.ahead([turned for _, turned in moves if turned not in tried], point)
            found = None
            for name, turned in self._slower_last(knobs, moves):
                if turned in tried or not self.goes_on():
                    continue
                made = self._judged(turned, point)
                tried.add(turned)
                if made is None:
                    continue
                yield turned, made
                saved = math.log2(price / max(self.foresight.price(rung, turned), 1e-9))
                self.rates[name] = max(made.lost - point.lost, 0.0) / max(saved, 1e-3)
                if made.loses_little and made.lost - point.lost <= _CHEAP * self.room(point):
                    found = turned, made
                    break
                if made.loses_little:
                    dear.append((self.rates[name], turned, made))
            if found is None:
                step = math.sqrt(step)
            else:
                (knobs, point), dear = found, []

    def _start(self, start: Knobs, good: FitPoint | None) -> Iterator[tuple[Knobs, FitPoint]]:
        """The network before anything is locked; with more bits, if the usual ones lose too much by themselves."""
        known = good is not None and Knobs.of(good.settings) == start
        wider = (
            []
            if start.sparsity or known
            else [replace(start, weight_bits=bits, activation_bits=bits) for bits in _WIDER]
        )
        for number, knobs in enumerate((start, *wider)):
            if number and not self.goes_on():
                return
            point = self._judged(knobs, good)
            if point is not None:
                yield knobs, point
                if point.loses_little:
                    return
        if wider:
            self.notes.append("rounding alone loses more than the limit, with up to 16 bits")

    def _turn(self, knobs: Knobs, name: str, rung: str, wanted: float) -> Knobs | None:
        """The mildest turn of knob `name` whose price is at most `wanted`; the strongest if none is; None if dearer.

        A turn that is fast enough goes before a milder one that is not.
        """
        found, least, slow = None, self.foresight.price(rung, knobs) * _FINEST, None
        for turned in filter(self.foresight.is_possible, knobs.turned(name)):
            if _is_far(knobs, turned):
                break
            price = self.foresight.price(rung, turned)
            if price <= wanted and self.foresight.is_in_time(turned):
                return turned
            if price <= wanted:
                slow = slow or turned
            elif price <= least:
                found, least = turned, price
        return slow or found

    def _expected(self, name: str, turned: Knobs, rung: str, price: float) -> tuple[bool, float, float]:
        """The order of moves: what is fast enough, the loss to expect for each halving of the price, the price."""
        slow = not self.foresight.is_in_time(turned)
        return slow, self.rates.get(name, 0.0), self.foresight.price(rung, turned) / price

    def _slower_last(self, knobs: Knobs, moves: Sequence[tuple[str, Knobs]]) -> Iterator[tuple[str, Knobs]]:
        """`moves`, but those last that make the best layout slower, whatever they save in the one that may be reached.

        Lazily: to lay out a large network takes seconds.
        """
        slower = []
        for name, turned in moves:
            if self.foresight.is_slower(turned, knobs):
                slower.append((name, turned))
            else:
                yield name, turned
        yield from slower

    def _judged(self, knobs: Knobs, good: FitPoint | None) -> FitPoint | None:
        return self.judge(knobs, self.foresight.fastest(knobs), good)


def _is_far(knobs: Knobs, turned: Knobs) -> bool:
    """Whether `turned` is so much less than `knobs` that training from their network finds no way."""
    bits = max(knobs.weight_bits - turned.weight_bits, knobs.activation_bits - turned.activation_bits)
    return bits > _MOST_BITS or turned.kept < _LEAST_KEPT * knobs.kept
