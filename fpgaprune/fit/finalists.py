"""`Finalists`: the best points of a search, trained to the end on all samples."""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from msgspec import structs

from fpgaprune.design import Design
from fpgaprune.errors import RunError
from fpgaprune.files import storage
from fpgaprune.fit.answer import FitPoint
from fpgaprune.fit.candidate import Candidate
from fpgaprune.fit.ranking import Judged, Ranking
from fpgaprune.fit.trial import Trials
from fpgaprune.flow import Progress
from fpgaprune.layout import DesignLayout

BEST = "best"
# Networks that are trained to the end: the best by the search, then the next ones if it loses too much.
_FINALISTS = 3
# A network that lost a standard error too much in the search comes first, if it takes at most this share of the best
# one's price: the held-out samples say what it is worth.
_SMALLER = 0.9
# The layout of the best network leaves this share of the limit free, because further training moves its price.
_ROOM = 0.03


@dataclass
class Finalists:
    """Chooses the answer of a search.

    Attributes:
        trials: trains networks.
        ranking: which network is better.
        epochs: those of the next whole training, which ends in the time that is left; None if none does. The first
            one is trained in any case.
        out: folder of the answer.
        told: learns how far it is.
        milder: a network that is likely to lose little, by what some lost that were trained whole, and how much more
            that was than in the search; None if none is.
        notes: sentences on what stopped it.
    """

    trials: Trials
    ranking: Ranking
    epochs: Callable[[bool], int | None]
    out: Path
    told: Progress
    milder: Callable[[Sequence[FitPoint], float], Candidate | None]
    notes: list[str] = field(default_factory=list)
    _found: list[FitPoint] = field(default_factory=list, init=False)
    """What was trained whole."""
    _shifts: list[float] = field(default_factory=list, init=False)
    """What each of the refuted networks lost more than in the search."""
    _ratio: float = field(default=1.0, init=False)
    """By what the price of the last one, so its upper end, has to be multiplied, as a tool counted it."""
    _failed: list[str] = field(default_factory=list, init=False)
    """Why networks could not be trained whole."""
    _between: Candidate | None = field(default=None, init=False)
    """The network between refuted ones and the next: one of a search at most."""

    def best(self, points: Iterable[FitPoint]) -> FitPoint:
        """The first of the best points that meets the limits when it is trained to the end on all samples.

        `best/` holds its run. If none does, it is the one that came nearest.

        Raises:
            RunError: none could be trained.
        """
        left = list(points)
        bolder = self._bolder(left)
        tries = _FINALISTS + (bolder is not None)
        while left and len(self._found) < tries:
            epochs = self.epochs(not self._found)
            if epochs is None:
                self.notes.append("no time was left to train another network whole; give more --minutes")
                break
            candidate = self._next(left, bolder, last=len(self._found) == tries - 1)
            tries += candidate is self._between
            # A network that was tried for fewer epochs too is trained whole once.
            left = [other for other in left if other.knobs != candidate.knobs]
            made = self._train(candidate, epochs)
            if made is not None and (made.meets_limits or not candidate.promise):
                break
            if made is not None:
                self._refute(candidate, made)
        if not self._found:
            reasons = "; ".join(dict.fromkeys(self._failed))
            raise RunError(f"no network of the search could be trained whole: {reasons}")
        best = min(self._found, key=self.ranking.rank)
        if best.measured is None and self.trials.counting(best.design()) is not None:
            far = self.ranking.limits.is_far(best.share)
            why = "it is far beyond the part" if far else "why: its report"
            self.notes.append(f"no tool has counted what the best network takes, so its price says that; {why}")
        self._keep(Path(best.folder))
        return structs.replace(best, folder=str(self.out / BEST))

    def _next(self, left: Sequence[FitPoint], bolder: FitPoint | None, *, last: bool) -> Candidate:
        """What is trained next: `bolder`, a network between what was refuted and the best of `left`, or that one."""
        if bolder is not None and bolder in left:
            return Candidate.tried(bolder, "lost hardly too much in the search, and broke a limit")
        shift = _shift(self._shifts, last=last)
        expected = [self.ranking.if_worse(point, shift) for point in left]
        point = left[min(range(len(left)), key=lambda n: self.ranking.corrected(expected[n], self._ratio))]
        if self._between is None and (between := self._milder(point, shift)) is not None:
            self._between = between
            return between
        return Candidate.tried(point, "met the limits in the search, and not" if point.meets_limits else "")

    def _train(self, candidate: Candidate, epochs: int) -> FitPoint | None:
        """`candidate`, trained for `epochs` on all samples; None if that is impossible."""
        name = f"{BEST} {len(self._found) + 1}" if self._found else BEST
        self.told.stage(name, "running")
        made = self.trials.whole(candidate, self._laid_out(candidate), epochs)
        if made is None:
            self._failed.append(self.trials.impossible[candidate.knobs])
            self.told.stage(name, "skipped", self._failed[-1])
            return None
        self._found.append(made)
        self.told.stage(name, "done", made.in_words())
        return made

    def _refute(self, candidate: Candidate, made: FitPoint) -> None:
        """The next choice knows what became of `candidate`, which broke a limit."""
        self.notes.append(f"{candidate.knobs}: {candidate.promise} when it was trained whole: {made.brings()}")
        if candidate.point is not None:
            self._shifts.append(made.lost - candidate.point.lost)
        if made.measured is not None and (middle := made.used[made.resource]):
            # The next choice trusts what the tool counted more than the price. Its limit is kept by the upper end of a
            # price, which holds as long as no more than that was counted.
            beyond = made.share / made.priced if made.priced else math.inf
            self._ratio = min((made.measured[made.resource] or 0) / middle, max(beyond, 1.0))

    def _bolder(self, points: Sequence[FitPoint]) -> FitPoint | None:
        """The smallest network that lost hardly too much, if it is much smaller than the best one; else None."""
        good = [point for point in points if point.meets_limits]
        if not good:
            return None
        latency, price = self.ranking.goal(min(good, key=self.ranking.rank))
        near = [
            point
            for point in points
            if point.fits
            and point.in_time
            and not point.loses_little
            and self.ranking.room(point) + point.lost_error >= 0
            and self.ranking.goal(point) <= (latency, _SMALLER * price)
        ]
        return min(near, key=self.ranking.goal, default=None)

    def _milder(self, point: FitPoint, shift: float) -> Candidate | None:
        """A network to train before `point`, if the last one that was trained lost too much; else None.

        It is much smaller: networks that lost little in the search are few, and the next one may be far larger.
        """
        if not self._found or self._found[-1].loses_little:
            return None
        candidate = self.milder([one for one in self._found if not one.loses_little], shift)
        if candidate is None:
            return None
        latency, price = self.ranking.goal(point)
        smaller = self.ranking.goal(self._laid(candidate.design, 1.0)) <= (latency, _SMALLER * price)
        return candidate if smaller else None

    def _laid_out(self, candidate: Candidate) -> Judged:
        """The layout of `candidate`: that of its trial if it fits, unless another is no slower and leaves more room."""
        limits, tried = self.ranking.limits, candidate.point
        best = self._laid(candidate.design, self._ratio)
        if tried is None or not tried.in_time or tried.share * self._ratio > limits.share:
            return best
        roomy = best.share * self._ratio <= limits.share * (1 - _ROOM) and self.ranking.keeps_time(best)
        return best if roomy and not self.ranking.is_slower(best, tried) else tried

    def _laid(self, design: Design, ratio: float) -> DesignLayout:
        """The best layout of `design`, with some room for what further training changes."""
        limits = self.ranking.limits
        roomy = replace(self.ranking, limits=replace(limits, share=limits.share * (1 - _ROOM) / ratio))
        return min(self.trials.route.layouts(design), key=roomy.rank_layout)

    def _keep(self, folder: Path) -> None:
        """`best/` is a copy of the run in `folder`, whole or not at all."""
        best, draft = self.out / BEST, self.out / f".{BEST}"
        with storage(best):
            shutil.rmtree(draft, ignore_errors=True)
            shutil.copytree(folder, draft, ignore=shutil.ignore_patterns(".lock"))
            shutil.rmtree(best, ignore_errors=True)
            draft.rename(best)


def _shift(shifts: Sequence[float], *, last: bool) -> float:
    """What networks of the search are expected to lose more on held-out samples, by what some of them lost more.

    A part of that is chance, so one network alone moves the others by half. The last one that is tried has to keep the
    limits, so it is expected to lose as much more as the worst of them.
    """
    if last:
        return max(shifts, default=0.0)
    return max(sum(shifts) / (len(shifts) + 1), 0.0)
