"""`Finalists`: the best networks of a search, trained to the end on all samples: the smallest that keeps the limits."""

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

# Networks that are trained to the end: the best by the search; larger ones if it breaks a limit, else smaller ones.
_FINALISTS = 3
# A network that lost a standard error too much in the search comes first, if it takes at most this share of the best
# one's size: the held-out samples say what it is worth. After one that keeps the limits, so does each smaller one.
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
        out: folder of the answer.
        progress: learns of each whole training.
        untried: returns a network that the search has not trained and that is likely to lose little, by the networks
            that were trained whole and by how much more they lost than in the search; None if none is.
        notes: sentences on what stopped it.
        has_time_for_two: tells whether a second whole training ends in the time that is left: without it the first one
            takes no risk.
        first: a network that is trained before all of the search; None if there is none.
        has_time_to_count: tells whether a tool counts what a layout takes in the time that is left after a training of
            so many epochs.
        trims: returns the most that the answer may lose when bits and weights are trimmed; None if it is not trimmed.
        late_epochs: returns the epochs of the first whole training if none ends in the time that is left; 0 where the
            network of the candidate's trial may be the answer as it is.
    """

    trials: TrialRunner
    ranking: Ranking
    epochs: Callable[[bool], int | None]
    out: Path
    progress: Progress
    untried: Callable[[Sequence[FitPoint], float], Candidate | None]
    notes: list[str] = field(default_factory=list)
    has_time_for_two: Callable[[], bool] = lambda: True
    first: Candidate | None = None
    has_time_to_count: Callable[[Sized, int], bool] = lambda *_: True
    trims: Callable[[FitPoint], str | None] = lambda _: None
    late_epochs: Callable[[Candidate], int] = lambda _: 1
    _trained: list[FitPoint] = field(default_factory=list, init=False)
    """The networks that were trained whole."""
    _loss_shifts: list[float] = field(default_factory=list, init=False)
    """Loss of each of them on held-out samples, less its loss in the search."""
    _correction: float = field(default=1.0, init=False)
    """Correction factor for estimates: counted / estimated resources of the last finalist."""
    _failed: list[str] = field(default_factory=list, init=False)
    """Why networks could not be trained whole."""
    _without_time: set[str] = field(default_factory=set, init=False)
    """Folders of networks that no tool has counted, because it would have taken longer than the search may."""
    _between: Candidate | None = field(default=None, init=False)
    """The network between refuted ones and the next one: one of a search at most."""

    def best(self, points: Iterable[FitPoint]) -> FitPoint:
        """Return the best network that keeps the limits when it is trained to the end on all samples.

        After one that keeps them much smaller ones are trained, as long as there is time and some are likely to keep
        them. `best/` holds its run. If none keeps them, it is the one that came nearest.

        Raises:
            RunError: none could be trained.
        """
        left = list(points)
        riskier = self._riskier(left) if self.has_time_for_two() else None
        tries = _FINALISTS + (riskier is not None)
        while left and len(self._trained) < tries:
            epochs = self.epochs(not self._trained)
            if epochs is None and self._trained:
                if self._kept is None:
                    self.notes.append("no time was left to train another network whole; give more --minutes")
                break
            candidate = self._next(left, riskier, last=len(self._trained) == tries - 1)
            if candidate is None:
                break
            tries += candidate is self._between
            # A network that was tried for fewer epochs too is trained whole once.
            left = [other for other in left if other.knobs != candidate.knobs]
            epochs = self.late_epochs(candidate) if epochs is None else epochs
            point = self._train(candidate, epochs)
            kept = candidate.point is not None and candidate.point.meets_limits
            if point is not None and not point.meets_limits and kept and epochs and not self.late_epochs(candidate):
                # Trained on, it lost more than the network of its trial.
                point = self._train(candidate, 0)
            if point is not None and not (point.meets_limits or candidate.promise):
                break
            if point is not None:
                self._learn(candidate, point)
        if not self._trained:
            reasons = "; ".join(dict.fromkeys(self._failed))
            raise RunError(f"no network of the search could be trained whole: {reasons}")
        best = self._trimmed(min(self._trained, key=self.ranking.rank))
        if best.measured is None and self.trials.counting(best.design()) is not None:
            self.notes.append(
                f"no tool has counted what the best network takes, so its estimate says that; {self._uncounted(best)}"
            )
        self._keep(Path(best.folder))
        return structs.replace(best, folder=str(self.out / BEST))

    @property
    def _kept(self) -> FitPoint | None:
        """The best network that kept the limits when it was trained whole."""
        return min((point for point in self._trained if point.meets_limits), key=self.ranking.rank, default=None)

    def _next(self, left: Sequence[FitPoint], riskier: FitPoint | None, *, last: bool) -> Candidate | None:
        """Return the next one: `riskier`, one that the search has not tried, or the best of `left`.

        None if a network keeps the limits, and none that is much smaller is likely to.
        """
        if self.first is not None and not self._trained and not self._failed:
            return self.first
        kept = self._kept
        if kept is None and riskier is not None and riskier in left:
            return Candidate.tried(riskier, "lost hardly too much in the search, and broke a limit")
        shift = _shift(self._loss_shifts, kept, last=last)
        expected = [self.ranking.if_worse(point, shift) for point in left]
        at = min(range(len(left)), key=lambda n: self.ranking.corrected(expected[n], self._correction))
        point = left[at]
        smaller = kept is None or (expected[at].meets_limits and self._is_smaller(point, kept))
        untried = self._untried(point if kept is None or smaller else kept, shift)
        if untried is not None or not smaller:
            return untried
        return Candidate.tried(point, "met the limits in the search, and not" if point.meets_limits else "")

    def _train(self, candidate: Candidate, epochs: int) -> FitPoint | None:
        """Train `candidate` for `epochs` on all samples; None if that is impossible."""
        name = f"{BEST} {len(self._trained) + 1}" if self._trained else BEST
        self.progress.stage(name, "running")
        layout = self._layout_of(candidate)
        counts = self.has_time_to_count(layout, epochs)
        point = self.trials.whole(candidate, layout, epochs, counts=counts)
        if point is None:
            self._failed.append(self.trials.impossible[candidate.knobs])
            self.progress.stage(name, "skipped", self._failed[-1])
            return None
        self._trained.append(point)
        if not counts:
            self._without_time.add(point.folder)
        self.progress.stage(name, "done", point.summary())
        return point

    def _trimmed(self, best: FitPoint) -> FitPoint:
        """Return `best` with fewer bits and weights, if it then is smaller and still keeps the limits."""
        max_loss = self.trims(best) if best.meets_limits else None
        if max_loss is None:
            return best
        name = f"{BEST}, trimmed"
        self.progress.stage(name, "running")
        point = self.trials.trimmed(best, max_loss)
        if point is None:
            self.progress.stage(name, "skipped", self.trials.impossible[best.knobs])
            return best
        self.progress.stage(name, "done", point.summary())
        return point if point.meets_limits and self.ranking.rank(point) < self.ranking.rank(best) else best

    def _uncounted(self, point: FitPoint) -> str:
        """Return why no tool has counted `point`, in words."""
        if self.ranking.limits.is_far(point.share):
            return "it is far beyond the part"
        if point.folder in self._without_time:
            return f"that takes longer than --minutes allows: 'fpgaprune measure {self.out / BEST}' does it"
        return "why: its report"

    def _learn(self, candidate: Candidate, point: FitPoint) -> None:
        """Correct losses and estimates by `point`, the whole training of `candidate`; note if it broke a limit."""
        if not point.meets_limits and self._kept is None:
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

    def _untried(self, point: FitPoint, shift: float) -> Candidate | None:
        """Return a network that the search has not tried, to train before `point`, which is much larger; else None.

        Networks that lost little in the search are few, and the next one may be far larger. Of those that come after a
        refuted one and before any that keeps the limits, one is trained.
        """
        kept = self._kept
        if not self._trained or (kept is None and (self._between is not None or self._trained[-1].loses_little)):
            return None
        candidate = self.untried(self._trained, shift)
        if candidate is None or not self._is_smaller(self._best_layout(candidate.design, 1.0), point):
            return None
        if kept is None:
            self._between = candidate
        return candidate

    def _is_smaller(self, layout: Sized, point: FitPoint) -> bool:
        """Tell whether `layout` is as fast as `point`, which was trained, and much smaller."""
        latency, size = self.ranking.objective(point)
        return self.ranking.objective(layout) <= (latency, _SMALLER * size)

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


def _shift(shifts: Sequence[float], kept: FitPoint | None, *, last: bool) -> float:
    """Return how much more networks are expected to lose on held-out samples than in the search, by what some did.

    A part of that is chance, so one network alone moves the others by half. With a network `kept`, others may lose less
    than in the search, and a standard error more than the limit. Else none is expected to lose less, and the last
    finalist, which has to keep the limits, is expected to lose as much more as the worst of them.
    """
    mean = sum(shifts) / (len(shifts) + 1)
    if kept is not None:
        return mean - kept.lost_error
    return max(shifts, default=0.0) if last else max(mean, 0.0)
