"""`Finalists`: the best networks of a search, trained to the end on all samples, until one keeps every limit."""

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
from fpgaprune.fit.folder import BEST
from fpgaprune.fit.limits import Ranking, Sized
from fpgaprune.fit.result import FitPoint
from fpgaprune.fit.trial import Candidate, TrialRunner
from fpgaprune.flow import Progress
from fpgaprune.layout import DesignLayout

# Networks that are trained to the end: the best by the search, then the next ones if it loses too much.
_FINALISTS = 3
# A network that lost a standard error too much in the search comes first, if it takes at most this share of the best
# one's size: the held-out samples say what it is worth.
_SMALLER = 0.9
# The layout of the best network leaves this share of the limit free, because further training moves its estimate.
_FREE = 0.03


@dataclass
class Finalists:
    """Choose the answer of a search.

    Attributes:
        trials: makes and runs trials.
        ranking: which network is better.
        epochs: returns the epochs of the next whole training, which ends in the time that is left; None if none does.
            The first one is trained in any case.
        out: folder of the answer.
        progress: learns of each whole training.
        milder: returns a network that is likely to lose little, by the refuted points and by how much more they lost
            than in the search; None if none is.
        notes: sentences on what stopped it.
        has_time_for_two: tells whether a second whole training ends in the time that is left: without it the first one
            takes no risk.
    """

    trials: TrialRunner
    ranking: Ranking
    epochs: Callable[[bool], int | None]
    out: Path
    progress: Progress
    milder: Callable[[Sequence[FitPoint], float], Candidate | None]
    notes: list[str] = field(default_factory=list)
    has_time_for_two: Callable[[], bool] = lambda: True
    _trained: list[FitPoint] = field(default_factory=list, init=False)
    """The networks that were trained whole."""
    _loss_shifts: list[float] = field(default_factory=list, init=False)
    """Loss of each refuted network on held-out samples, less its loss in the search."""
    _correction: float = field(default=1.0, init=False)
    """Correction factor for estimates: counted / estimated resources of the last finalist."""
    _failed: list[str] = field(default_factory=list, init=False)
    """Why networks could not be trained whole."""
    _between: Candidate | None = field(default=None, init=False)
    """The network between refuted ones and the next one: one of a search at most."""

    def best(self, points: Iterable[FitPoint]) -> FitPoint:
        """Return the first of the best points that keeps the limits when it is trained to the end on all samples.

        `best/` holds its run. If none keeps them, it is the one that came nearest.

        Raises:
            RunError: none could be trained.
        """
        left = list(points)
        riskier = self._riskier(left) if self.has_time_for_two() else None
        tries = _FINALISTS + (riskier is not None)
        while left and len(self._trained) < tries:
            epochs = self.epochs(not self._trained)
            if epochs is None:
                self.notes.append("no time was left to train another network whole; give more --minutes")
                break
            candidate = self._next(left, riskier, last=len(self._trained) == tries - 1)
            tries += candidate is self._between
            # A network that was tried for fewer epochs too is trained whole once.
            left = [other for other in left if other.knobs != candidate.knobs]
            point = self._train(candidate, epochs)
            if point is not None and (point.meets_limits or not candidate.promise):
                break
            if point is not None:
                self._refute(candidate, point)
        if not self._trained:
            reasons = "; ".join(dict.fromkeys(self._failed))
            raise RunError(f"no network of the search could be trained whole: {reasons}")
        best = min(self._trained, key=self.ranking.rank)
        if best.measured is None and self.trials.counting(best.design()) is not None:
            far = self.ranking.limits.is_far(best.share)
            why = "it is far beyond the part" if far else "why: its report"
            self.notes.append(f"no tool has counted what the best network takes, so its estimate says that; {why}")
        self._keep(Path(best.folder))
        return structs.replace(best, folder=str(self.out / BEST))

    def _next(self, left: Sequence[FitPoint], riskier: FitPoint | None, *, last: bool) -> Candidate:
        """Return the next one: `riskier`, a network between the refuted ones and the best of `left`, or that."""
        if riskier is not None and riskier in left:
            return Candidate.tried(riskier, "lost hardly too much in the search, and broke a limit")
        shift = _shift(self._loss_shifts, last=last)
        expected = [self.ranking.if_worse(point, shift) for point in left]
        point = left[min(range(len(left)), key=lambda n: self.ranking.corrected(expected[n], self._correction))]
        if self._between is None and (between := self._milder(point, shift)) is not None:
            self._between = between
            return between
        return Candidate.tried(point, "met the limits in the search, and not" if point.meets_limits else "")

    def _train(self, candidate: Candidate, epochs: int) -> FitPoint | None:
        """Train `candidate` for `epochs` on all samples; None if that is impossible."""
        name = f"{BEST} {len(self._trained) + 1}" if self._trained else BEST
        self.progress.stage(name, "running")
        point = self.trials.whole(candidate, self._layout_of(candidate), epochs)
        if point is None:
            self._failed.append(self.trials.impossible[candidate.knobs])
            self.progress.stage(name, "skipped", self._failed[-1])
            return None
        self._trained.append(point)
        self.progress.stage(name, "done", point.summary())
        return point

    def _refute(self, candidate: Candidate, point: FitPoint) -> None:
        """Correct losses and estimates by `point`, the whole training of `candidate`, which broke a limit."""
        self.notes.append(f"{candidate.knobs}: {candidate.promise} when it was trained whole: {point.figures()}")
        if candidate.point is not None:
            self._loss_shifts.append(point.lost - candidate.point.lost)
        if point.measured is not None and (middle := point.used[point.resource]):
            # The next choice trusts the count more than the estimate. The upper end of an estimate keeps the limit, as
            # long as no more than that was counted.
            beyond = point.share / point.priced if point.priced else math.inf
            self._correction = min((point.measured[point.resource] or 0) / middle, max(beyond, 1.0))

    def _riskier(self, points: Sequence[FitPoint]) -> FitPoint | None:
        """Return the smallest network that lost hardly too much, if it is much smaller than the best one; else None."""
        good = [point for point in points if point.meets_limits]
        if not good:
            return None
        latency, size = self.ranking.objective(min(good, key=self.ranking.rank))
        near = [
            point
            for point in points
            if point.fits
            and point.in_time
            and not point.loses_little
            and self.ranking.margin(point) + point.lost_error >= 0
            and self.ranking.objective(point) <= (latency, _SMALLER * size)
        ]
        return min(near, key=self.ranking.objective, default=None)

    def _milder(self, point: FitPoint, shift: float) -> Candidate | None:
        """Return a network to train before `point`, if the last one that was trained lost too much; else None.

        It is much smaller: networks that lost little in the search are few, and the next one may be far larger.
        """
        if not self._trained or self._trained[-1].loses_little:
            return None
        candidate = self.milder([one for one in self._trained if not one.loses_little], shift)
        if candidate is None:
            return None
        latency, size = self.ranking.objective(point)
        smaller = self.ranking.objective(self._best_layout(candidate.design, 1.0)) <= (latency, _SMALLER * size)
        return candidate if smaller else None

    def _layout_of(self, candidate: Candidate) -> Sized:
        """Return the layout of `candidate`: that of its trial if it fits, unless one as fast leaves more free."""
        limits, tried = self.ranking.limits, candidate.point
        best = self._best_layout(candidate.design, self._correction)
        if tried is None or not tried.in_time or tried.share * self._correction > limits.share:
            return best
        roomy = best.share * self._correction <= limits.share * (1 - _FREE) and self.ranking.keeps_time(best)
        return best if roomy and not self.ranking.is_slower(best, tried) else tried

    def _best_layout(self, design: Design, correction: float) -> DesignLayout:
        """Return the best layout of `design`, with some of the limit left free for what further training changes."""
        limits = self.ranking.limits
        roomy = replace(self.ranking, limits=replace(limits, share=limits.share * (1 - _FREE) / correction))
        return min(self.trials.route.layouts(design), key=roomy.rank_layout)

    def _keep(self, folder: Path) -> None:
        """Make `best/` a copy of the run in `folder`, whole or not at all."""
        best, draft = self.out / BEST, self.out / f".{BEST}"
        with storage(best):
            shutil.rmtree(draft, ignore_errors=True)
            shutil.copytree(folder, draft, ignore=shutil.ignore_patterns(".lock"))
            shutil.rmtree(best, ignore_errors=True)
            draft.rename(best)


def _shift(shifts: Sequence[float], *, last: bool) -> float:
    """Return how much more networks are expected to lose on held-out samples than in the search, by what some did.

    A part of that is chance, so one network alone moves the others by half. The last finalist has to keep the limits,
    so it is expected to lose as much more as the worst of them.
    """
    if last:
        return max(shifts, default=0.0)
    return max(sum(shifts) / (len(shifts) + 1), 0.0)
