"""`FitPoint` and `Fit`: what a search has found."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct

from fpgaprune.design import Design
from fpgaprune.fit.knobs import Knobs
from fpgaprune.measure import LABELS, interval_words, to_plain
from fpgaprune.report import About, Verdict, metric_label
from fpgaprune.values import Summarised, Summary

# The samples that judge trials: `x_valid`, or training samples that the trials are not trained on. The best network is
# judged on held-out samples.
VALIDATION = "validation"
HELD_OUT = "held-out"


class FitPoint(Struct, frozen=True):
    """One network that was trained and judged.

    Attributes:
        knobs: what is locked, and with how many bits it computes.
        settings: sections of a flow file to the keys that make this network in this layout.
        metric: name of the metric.
        value: the metric of the hardware, emulated bit for bit.
        lost: how much worse that is than the trained network, as `Limits.max_loss` counts it.
        lost_error: standard error of `lost`.
        judged_on: the samples that judged it: `validation` or `held-out`.
        samples: their number.
        used: resource to the middle of its estimate.
        measured: resource to what a tool counted; None if none ran.
        resource: the resource that is nearest to its capacity.
        share: of this resource, counted / capacity, or the upper end of its estimate / capacity.
        latency_cycles: from the first input to the last output.
        interval_cycles: between two samples.
        loses_little: whether the loss keeps its limit, as `Limits.margin` counts it.
        fits: whether the upper end keeps to its share of every resource of the part.
        in_time: whether latency and interval keep to their limits.
        epochs: passes over the samples that the locked network was trained for.
        folder: its run.
        size: the sum of such shares of all resources; 0 counts as `share`.
        priced: the share by the upper end of the estimate, whatever a tool counted; 0 if unknown.
        number: number of its trial, on the terminal, on the page and in JSON; 0 for the final run.
    """

    knobs: Knobs
    settings: dict[str, Any]
    metric: str
    value: float
    lost: float
    lost_error: float
    judged_on: str
    samples: int
    used: dict[str, int | None]
    measured: dict[str, int | None] | None
    resource: str
    share: float
    latency_cycles: int
    interval_cycles: int
    loses_little: bool
    fits: bool
    in_time: bool
    epochs: int
    folder: str
    size: float = 0.0
    priced: float = 0.0
    number: int = 0

    @property
    def meets_limits(self) -> bool:
        """Whether every limit is kept."""
        return self.loses_little and self.fits and self.in_time

    def design(self) -> Design:
        """Return what its hardware computes, from the folder of its run."""
        return Design.load(Path(self.folder) / "design.json")

    def summary(self) -> str:
        """Return the knobs and the figures in a line."""
        return f"{self.knobs}: {self.figures()}"

    def figures(self) -> str:
        """Return loss, share and cycles in words, and the limits that they break."""
        taken = f"{self.share_text()} of the {LABELS[self.resource]}s, {self.latency_cycles:,} cycles"
        reasons = [
            *([] if self.loses_little else ["loses too much"]),
            *([] if self.fits else ["does not fit"]),
            *([] if self.in_time else ["too slow"]),
        ]
        broken = f"; {' and '.join(reasons)}" if reasons else ""
        return f"{self.metric} {self.loss_text()}, {taken}{broken}"

    def loss_text(self) -> str:
        """Return the loss in words: `lost 0.50 ± 0.20 %`, or `0.50 ± 0.20 % better` than the trained network."""
        percent = round(100 * self.lost, 2)
        text = f"{abs(percent):.2f} ± {100 * self.lost_error:.2f} %"
        return f"{text} better" if percent < 0 else f"lost {text}"

    def share_text(self) -> str:
        """Return the share in per cent, rounded up: one beyond its limit never reads as the limit."""
        return f"{math.ceil(round(100 * self.share, 6)):,}%"

    def dominates(self, other: FitPoint) -> bool:
        """Tell whether it is nowhere worse than `other`, and better in loss, share or latency."""
        mine = (self.lost, self.share, self.latency_cycles)
        theirs = (other.lost, other.share, other.latency_cycles)
        return mine != theirs and all(a <= b for a, b in zip(mine, theirs, strict=True))

    def to_json(self) -> dict[str, Any]:
        """Return the point as JSON data; its knobs are words, because `settings` has their values."""
        return {**to_plain(self), "knobs": str(self.knobs)}


class Fit(Summarised, Struct, frozen=True):
    """The result of a search: the best network, and every network that was tried.

    Attributes:
        name: name of the flow.
        part: name of the part.
        clock_ns: clock period in ns.
        route: the route to hardware, `hls` or `verilog`.
        price: what the estimates are, in words.
        limits: limit to value.
        best: the best network, trained to the end and judged on held-out samples. If no network keeps every limit, it
            is the one that came nearest.
        points: every network that the search trained, in its order.
        notes: sentences on what stopped the search.
        rates: knob to the loss for each halving of the size, at the last step of the descent that moved it.
        counted_by: what counts resources, in words.
    """

    name: str
    part: str
    clock_ns: float
    route: str
    price: str
    limits: dict[str, float | str | None]
    best: FitPoint
    points: tuple[FitPoint, ...]
    notes: tuple[str, ...] = ()
    rates: dict[str, float] = {}
    counted_by: str = ""

    def _summary(self) -> Summary:
        rows = [
            (
                str(point.knobs),
                point.loss_text(),
                f"{point.share_text()} {LABELS[point.resource]}",
                f"{point.latency_cycles:,}",
                "yes" if point.meets_limits else "no",
            )
            for point in sorted(self.front, key=lambda point: point.lost)
        ]
        found = "keeps every limit" if self.meets_limits else "no network that was tried keeps every limit"
        best = (f"best, trained to the end: {self.best.knobs}", self.best.figures(), f"its run: {self.best.folder}")
        headings = ("Pareto front", "loss", "share of the part", "cycles", "limits kept")
        return Summary(f"Fit of {self.name} on {self.part}: {found}", headings, rows, (*best, *self.notes))

    @property
    def front(self) -> tuple[FitPoint, ...]:
        """The Pareto front: the points that no other dominates in loss, share of the part and latency."""
        return tuple(point for point in self.points if not any(other.dominates(point) for other in self.points))

    @property
    def meets_limits(self) -> bool:
        """Whether the best network keeps every limit."""
        return self.best.meets_limits

    def verdicts(self) -> tuple[Verdict, ...]:
        """Return the answers that begin the result: the metric is kept, the network fits, and it is fast enough.

        The last one is there if a limit of time was given. No answer is green where another one is red.
        """
        best, limits = self.best, self.limits
        name, by = metric_label(best.metric), f"upper end of the {self.price}"
        loss = f"{best.loss_text()} on {best.samples:,} {best.judged_on} samples; {limits['max_loss']} may be lost"
        counted = best.measured is not None and self.counted_by
        share = (
            f"{best.share_text()} of the {LABELS[best.resource]}s, of at most {100 * float(limits['share'] or 0):g} %"
        )
        said: list[tuple[About, bool, str]] = [
            ("metric", best.loses_little, f"{name} {'kept' if best.loses_little else 'not kept'} ({loss})"),
            ("fit", best.fits, f"Fits {self.part}: {_reply(best.fits)} ({share}; {counted or by})"),
        ]
        if any(limits[limit] is not None for limit in ("latency_us", "interval_cycles", "samples_per_s")):
            cycles = f"{best.latency_cycles:,} cycles, a sample {interval_words(best.interval_cycles)}"
            said.append(("time", best.in_time, f"Fast enough: {_reply(best.in_time)} ({cycles})"))
        good = "good" if self.meets_limits else "open"
        return tuple(Verdict(about, _reply(holds), text, good if holds else "bad") for about, holds, text in said)

    def to_json(self) -> dict[str, Any]:
        """Return the whole result as JSON data."""
        front = set(map(id, self.front))
        points = [{**point.to_json(), "on_front": id(point) in front} for point in self.points]
        best = {**self.best.to_json(), "meets_limits": self.meets_limits}
        answers = {one.about: {"reply": one.reply, "text": one.text, "tone": one.tone} for one in self.verdicts()}
        whole = {"best": best, "points": points, "meets_limits": self.meets_limits, "verdicts": answers}
        return {**to_plain(self), **whole}


def _reply(holds: bool) -> Literal["yes", "no"]:
    return "yes" if holds else "no"
