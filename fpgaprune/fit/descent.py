"""`Descent`: coordinate descent from the trained network to the smallest one that still loses little."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from fpgaprune.fit.estimates import Estimates
from fpgaprune.fit.knobs import Knobs
from fpgaprune.fit.result import FitPoint
from fpgaprune.layout import DesignLayout

# The first step asks for this share of the size before; each time that no knob succeeds, the step is halved.
STEP = 0.6
# A step that saves less ends the descent.
_FINEST = 0.93
# A move that takes at most this share of the loss that is left is accepted at once; a dearer one waits for finer steps.
_CHEAP = 0.5
# A move keeps at least this share of the products. Where other things fill the part, no number of zeros brings the
# size down to the wanted one, and the move would lock nearly all units and lose the network.
_LEAST_KEPT = 0.35
# A move takes at most so many bits away: from eight to three bits of activations at once nearly every network fails.
_MOST_BITS = 3
# The knobs that lock.
_LOCKS = ("sparsity", "filters")
# Widths to begin with, if the usual one loses too much by itself.
_WIDER = (10, 12, 16)

# Trains some knobs in a layout, from the network of a point or from the trained one; None if there is no such network.
Evaluate = Callable[[Knobs, DesignLayout, FitPoint | None], FitPoint | None]


@dataclass
class Descent:
    """Move one knob after another, each time the one that lost least for what it saved, and reject moves that lose.

    Each network is trained from the last accepted one: from its weights and its locks.

    The size of a network is what it takes of the part in one layout: the fastest that the network can be expected to
    fit. If it never fits, slower layouts remain: each point has a layout of its own.

    Attributes:
        names: the knobs that may move.
        estimates: estimates of networks that were not trained.
        evaluate: trains and judges a network.
        has_time: tells whether there is time for another trial.
        margin: returns the loss that a point leaves to the limit.
        prefetch: learns of networks that may be evaluated next, in their order, and of the point from which they are
            trained.
        hopeless: tells whether a network is not worth a trial, by what others lost.
        retrain: whether the first network is trained again if it has a point.
        skips_start: whether the first network is not trained, so that the first trial is a move from it.
    """

    names: Sequence[str]
    estimates: Estimates
    evaluate: Evaluate
    has_time: Callable[[], bool]
    margin: Callable[[FitPoint], float]
    prefetch: Callable[[Sequence[Knobs], FitPoint | None], None] = lambda *_: None
    hopeless: Callable[[Knobs], bool] = lambda _: False
    retrain: bool = True
    skips_start: bool = False
    rates: dict[str, float] = field(default_factory=dict)
    """Knob to the loss for each halving of the size, at its last move."""
    notes: list[str] = field(default_factory=list)

    def run(
        self, start: Knobs, parent: FitPoint | None = None, finest: float = _FINEST
    ) -> Iterator[tuple[Knobs, FitPoint]]:
        """Yield every network on the way with its point; the first is trained from that of `parent`, if there is one.

        Args:
            start: where the descent starts.
            parent: the point whose network the first training starts from; None is the trained network.
            finest: a step that leaves more than this share of the size ends the descent.
        """
        if self.skips_start:
            yield from self._without_start(start, finest)
            return
        known = parent is not None and parent.knobs == start
        begun = [] if known and not self.retrain else list(self._start(start, parent))
        yield from begun
        if parent is not None and known:
            # Longer training may lose more by chance; what was accepted stays a place to go on from.
            begun.append((start, parent))
        if not begun:
            return
        knobs, point = min(begun, key=lambda pair: pair[1].lost)
        yield from self._moves(knobs, point, {knobs for knobs, _ in begun}, finest)

    def _without_start(self, start: Knobs, finest: float) -> Iterator[tuple[Knobs, FitPoint]]:
        """Yield every network that is tried from `start` on, which is itself trained only where no other loses little.

        The first one fits by its estimate, if a few moves at once lead to such a network. Whatever the time, there is a
        network at the end, unless none of those that were tried is possible.
        """
        fitting, good, found = self._fitting(start), False, False
        if fitting != start:
            point = self._evaluate(fitting, None)
            if point is not None:
                yield fitting, point
            if point is not None and point.loses_little:
                yield from self._moves(fitting, point, {fitting}, finest)
                return
            found = point is not None
            if found and not self.has_time():
                return
        for knobs, point in self._moves(start, None, {start, fitting}, finest):
            good, found = good or point.loses_little, True
            yield knobs, point
        if not found or (not good and self.has_time()):
            yield from self._start(start, None)

    def _fitting(self, start: Knobs) -> Knobs:
        """Return the first network that fits on a way of one step of each knob; `start` if it does or none does."""
        layout, knobs, left = self.estimates.target_layout(start), start, list(self.names)
        while not (fits := self.estimates.fits_by_one_rule(knobs)) and left:
            size = self.estimates.size(layout, knobs)
            mildest = {name: self._mildest(knobs, name, layout, STEP * size) for name in left}
            moves = {name: moved for name, moved in mildest.items() if moved is not None}
            if not moves:
                break
            name = min(moves, key=lambda name: (name not in _LOCKS, self.estimates.size(layout, moves[name])))
            knobs = moves[name]
            left.remove(name)
        return knobs if fits else start

    def _moves(
        self, knobs: Knobs, point: FitPoint | None, tried: set[Knobs], finest: float
    ) -> Iterator[tuple[Knobs, FitPoint]]:
        """Yield every network that is tried from `knobs` on, whose `point` is None if it was not trained."""
        layout, step = self.estimates.target_layout(knobs), STEP
        # One network is tried in any case.
        is_first = point is None
        dear: list[tuple[float, Knobs, FitPoint]] = []
        while (step < finest or dear) and (is_first or self.has_time()):
            if step >= finest:
                # Nothing cheap is left, so the move that lost least for what it saved is accepted.
                _, knobs, point = min(dear, key=lambda found: found[0])
                step, dear = STEP, []
            size = self.estimates.size(layout, knobs)
            mildest = [(name, self._mildest(knobs, name, layout, step * size)) for name in self.names]
            moves = [(name, moved) for name, moved in mildest if moved and not self.hopeless(moved)]
            moves.sort(key=lambda move: self._expected(move[0], move[1], layout, size))
            if point is None:
                # The first trial may be the only one. In few epochs a network makes up for locks rather than for bits.
                moves.sort(key=lambda move: move[0] not in _LOCKS)
            self.prefetch([moved for _, moved in moves if moved not in tried], point)
            accepted = None
            for name, moved in self._slower_last(knobs, moves):
                if moved in tried or not (is_first or self.has_time()):
                    continue
                found, is_first = self._evaluate(moved, point), False
                tried.add(moved)
                if found is None:
                    continue
                yield moved, found
                saved = math.log2(size / max(self.estimates.size(layout, moved), 1e-9))
                lost = found.lost - (0.0 if point is None else point.lost)
                self.rates[name] = max(lost, 0.0) / max(saved, 1e-3)
                # From a network that was not trained any good move leads on.
                if found.loses_little and (point is None or lost <= _CHEAP * self.margin(point)):
                    accepted = moved, found
                    break
                if found.loses_little:
                    dear.append((self.rates[name], moved, found))
            if accepted is None:
                step = math.sqrt(step)
            else:
                (knobs, point), dear = accepted, []

    def _start(self, start: Knobs, parent: FitPoint | None) -> Iterator[tuple[Knobs, FitPoint]]:
        """Yield the network before anything is locked; then with more bits, if the usual ones lose too much alone."""
        known = parent is not None and parent.knobs == start
        wider = (
            []
            if start.sparsity or known
            else [replace(start, weight_bits=bits, activation_bits=bits) for bits in _WIDER]
        )
        for number, knobs in enumerate((start, *wider)):
            if number and not self.has_time():
                return
            point = self._evaluate(knobs, parent)
            if point is not None:
                yield knobs, point
                if point.loses_little:
                    return
        if wider:
            self.notes.append("rounding alone loses more than the limit, with up to 16 bits")

    def _mildest(self, knobs: Knobs, name: str, layout: str, most: float) -> Knobs | None:
        """Return the mildest move of knob `name` to a size of at most `most`; the smallest if none is; None if larger.

        A move that keeps the limits of time goes before a milder one that does not.
        """
        found, least, slow = None, self.estimates.size(layout, knobs) * _FINEST, None
        for moved in filter(self.estimates.is_possible, knobs.stronger(name)):
            if _is_far(knobs, moved):
                break
            size = self.estimates.size(layout, moved)
            if size <= most and self.estimates.is_in_time(moved):
                return moved
            if size <= most:
                slow = slow or moved
            elif size <= least:
                found, least = moved, size
        return slow or found

    def _expected(self, name: str, moved: Knobs, layout: str, size: float) -> tuple[bool, float, float]:
        """Return the sort key of a move: too slow or not, expected loss for each halving of the size, relative size."""
        slow = not self.estimates.is_in_time(moved)
        return slow, self.rates.get(name, 0.0), self.estimates.size(layout, moved) / size

    def _slower_last(self, knobs: Knobs, moves: Sequence[tuple[str, Knobs]]) -> Iterator[tuple[str, Knobs]]:
        """Yield `moves`, last those that make the best layout slower, whatever they save in the layout aimed at.

        Lazily: to lay out a large network takes seconds.
        """
        slower = []
        for name, moved in moves:
            if self.estimates.is_slower(moved, knobs):
                slower.append((name, moved))
            else:
                yield name, moved
        yield from slower

    def _evaluate(self, knobs: Knobs, parent: FitPoint | None) -> FitPoint | None:
        return self.evaluate(knobs, self.estimates.best_layout(knobs), parent)


def _is_far(knobs: Knobs, moved: Knobs) -> bool:
    """Tell whether `moved` is so much less than `knobs` that training from their network finds no way."""
    bits = max(knobs.weight_bits - moved.weight_bits, knobs.activation_bits - moved.activation_bits)
    return bits > _MOST_BITS or moved.kept < _LEAST_KEPT * knobs.kept
