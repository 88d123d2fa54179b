"""`Descent`: from the trained network down to the smallest one that still loses little."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from fpgaprune.fit.answer import Point
from fpgaprune.fit.foresight import Foresight
from fpgaprune.fit.knobs import NAMES, Knobs
from fpgaprune.fit.layout import Laid

# The first step asks for this share of the price before; each time that no knob can pay, the step is halved.
STEP = 0.6
# A step that saves less ends the descent.
_FINEST = 0.93
# Widths to begin with, if the usual one loses too much by itself.
_WIDER = (10, 12, 16)

Judge = Callable[[Knobs, Laid], Point | None]


@dataclass
class Descent:
    """Turns one knob after another, each time the one that lost least for what it saved, and takes back bad turns.

    The price of a network is the share of the part that it takes in one layout: the fastest that the network can be
    expected to fit. If it never fits, slower layouts remain: each point is laid out for itself.

    Attributes:
        foresight: prices.
        judge: trains and judges a network.
        goes_on: whether there is time for another trial.
        told: learns of each accepted or refused point.
    """

    foresight: Foresight
    judge: Judge
    goes_on: Callable[[], bool]
    told: Callable[[Knobs, Point | None], None] = lambda *_: None
    rates: dict[str, float] = field(default_factory=dict)
    """Knob to the loss for each halving of the price, the last time that it was turned."""
    notes: list[str] = field(default_factory=list)

    def run(self, start: Knobs, finest: float = _FINEST) -> Iterator[tuple[Knobs, Point]]:
        """Every network on the way, and its point."""
        rung = self.foresight.rung(start)
        knobs, point = self._start(start)
        if point is None:
            return
        yield knobs, point
        step, tried = STEP, {knobs}
        while step < finest and self.goes_on():
            price = self.foresight.at(rung, knobs).share
            moves = [(name, turned) for name in NAMES if (turned := self._turn(knobs, name, rung, step * price))]
            found = None
            for name, turned in sorted(moves, key=lambda move: self._expected(move[0], move[1], rung, price)):
                if turned in tried or not self.goes_on():
                    continue
                tried.add(turned)
                made = self._judged(turned)
                if made is None:
                    continue
                yield turned, made
                saved = math.log2(price / max(self.foresight.at(rung, turned).share, 1e-9))
                self.rates[name] = max(made.lost - point.lost, 0.0) / max(saved, 1e-3)
                if made.loses_little:
                    found = turned, made
                    break
            if found is None:
                step = math.sqrt(step)
            else:
                knobs, point = found

    def _start(self, start: Knobs) -> tuple[Knobs, Point | None]:
        """The network before anything is locked, with as many bits as it needs."""
        first: tuple[Knobs, Point | None] = start, None
        wider = [] if start.sparsity else [replace(start, weight_bits=bits, activation_bits=bits) for bits in _WIDER]
        for knobs in (start, *wider):
            point = self._judged(knobs)
            if point is not None and (first[1] is None or point.lost < first[1].lost):
                first = knobs, point
            if (point is not None and point.loses_little) or start.sparsity or not self.goes_on():
                return first
        self.notes.append("rounding alone loses more than the limit, with up to 16 bits")
        return first

    def _turn(self, knobs: Knobs, name: str, rung: str, wanted: float) -> Knobs | None:
        """The mildest turn of knob `name` whose price is at most `wanted`; the strongest if none is; None if dearer."""
        found, least = None, self.foresight.at(rung, knobs).share * _FINEST
        for turned in filter(self.foresight.is_possible, knobs.turned(name)):
            price = self.foresight.at(rung, turned).share
            if price <= wanted:
                return turned
            if price <= least:
                found, least = turned, price
        return found

    def _expected(self, name: str, turned: Knobs, rung: str, price: float) -> tuple[float, float]:
        """The order of moves: the loss to expect for each halving of the price, then the price itself."""
        return self.rates.get(name, 0.0), self.foresight.at(rung, turned).share / price

    def _judged(self, knobs: Knobs) -> Point | None:
        point = self.judge(knobs, self.foresight.fastest(knobs))
        self.told(knobs, point)
        return point
