"""The page of a search: its best network, and every network that it tried, as points of loss against share."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup

from fpgaprune.files import write_bytes
from fpgaprune.report.figures import text_at, ticks_within
from fpgaprune.report.numbers import DASH, count_text, percent_text
from fpgaprune.report.page import environment
from fpgaprune.report.table import Column, Table
from fpgaprune.report.verdict import Verdict

_WIDTH, _HEIGHT, _LEFT, _BOTTOM, _EDGE = 640.0, 330.0, 70.0, 44.0, 22.0
# The axis of shares: its least and most share, the room at its ends, and its numbers.
_LEAST_SHARE, _MOST_SHARE, _ROOM = 0.001, 3.0, 1.25
_TICKS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0)
# Two labels are so far apart, across or down. A share below this is shown with a decimal.
_APART, _SMALL = (26.0, 12.0), 0.0995
# A loss below this is shown with two decimals.
_SMALL_LOSS = 0.01


@dataclass(frozen=True)
class FrontPoint:
    """One network of a search.

    Attributes:
        number: its place in the order of the search.
        knobs: what is locked and with how many bits it computes, in words.
        lost: loss of the metric, a fraction.
        lost_error: its standard error.
        share: upper end of the resource nearest to its capacity / capacity.
        resource: this resource, as the page writes it.
        latency_cycles: from the first input to the last output.
        best_of_its_kind: whether no other point is better in loss, share and latency together.
        meets_limits: whether it keeps to every limit.
        link: the report of its run, from the page's folder; None if there is none.
    """

    number: int
    knobs: str
    lost: float
    lost_error: float
    share: float
    resource: str
    latency_cycles: int
    best_of_its_kind: bool
    meets_limits: bool
    link: str | None


@dataclass(frozen=True)
class LayerChange:
    """What a search did to one layer.

    Attributes:
        name: name of the layer.
        locked: fraction of its weights that is locked, 0..1.
        channels_before: inputs and outputs of the trained layer.
        channels_after: those that are left; None if the layer is gone.
        weight_bits: bits of a weight; None if unknown.
        activation_bits: bits of what the layer hands on; None if unknown.
        hardware: strategy and reuse factor of hls4ml, or what it takes as our Verilog; None if neither is known.
    """

    name: str
    locked: float
    channels_before: tuple[int, ...]
    channels_after: tuple[int, ...] | None
    weight_bits: int | None
    activation_bits: int | None
    hardware: str | None


@dataclass(frozen=True)
class FrontReport:
    """A search on one page.

    Attributes:
        name: name of the flow.
        part: name of the part.
        limits: each limit in words.
        verdicts: the answers that begin the page.
        best: facts of the best network: name and text.
        folder: the run of the best network.
        points: every network that was tried.
        max_loss: the limit of the loss, a fraction.
        share: the limit of the share.
        prices: what the shares are, in a sentence.
        notes: sentences on what stopped the search.
        layers: what was done to each layer of the best network.
        reasons: sentences on why.
    """

    name: str
    part: str
    limits: Sequence[str]
    verdicts: Sequence[Verdict]
    best: Sequence[tuple[str, str]]
    folder: str
    points: Sequence[FrontPoint]
    max_loss: float
    share: float
    prices: str
    notes: Sequence[str] = ()
    layers: Sequence[LayerChange] = ()
    reasons: Sequence[str] = ()


def write_front(out_dir: str | os.PathLike[str], report: FrontReport) -> Path:
    """Write report.html, the page of a search, to `out_dir`; equal searches give equal bytes."""
    page = (
        environment()
        .get_template("front.html")
        .render(
            search=report,
            figure=front_figure(report),
            table=points_table(report.points),
            layers=layers_table(report.layers) if report.layers else None,
            links=[(point.number, point.link) for point in report.points if point.link],
        )
    )
    return write_bytes(Path(out_dir) / "report.html", page.encode())


def points_table(points: Sequence[FrontPoint]) -> Table:
    """Return a row for each network of a search."""
    return Table(
        "Networks in the order of the search",
        (
            Column("network", tuple(f"{point.number}. {point.knobs}" for point in points), numeric=False),
            Column("loss", tuple(percent_text(point.lost, 2) for point in points)),
            Column("±", tuple(percent_text(point.lost_error, 2) for point in points)),
            Column("share", tuple(share_text(point.share) for point in points)),
            Column("of", tuple(point.resource for point in points), numeric=False),
            Column("latency", tuple(f"{count_text(point.latency_cycles)} cycles" for point in points)),
            Column("limits", tuple("kept" if point.meets_limits else "broken" for point in points), numeric=False),
        ),
    )


def layers_table(layers: Sequence[LayerChange]) -> Table:
    """Return a row for each layer with weights of the best network."""

    def bits(width: int | None) -> str:
        return DASH if width is None else f"{width} bits"

    def channels(numbers: tuple[int, ...] | None) -> str:
        return "gone" if numbers is None else " → ".join(map(count_text, numbers))

    return Table(
        "The best network, layer by layer",
        (
            Column("layer", tuple(layer.name for layer in layers), numeric=False),
            Column("locked", tuple(percent_text(layer.locked, 0) for layer in layers)),
            Column("trained", tuple(channels(layer.channels_before) for layer in layers), group="channels"),
            Column("left", tuple(channels(layer.channels_after) for layer in layers), group="channels"),
            Column("weights", tuple(bits(layer.weight_bits) for layer in layers)),
            Column("hands on", tuple(bits(layer.activation_bits) for layer in layers)),
            Column("hardware", tuple(layer.hardware or DASH for layer in layers), numeric=False),
        ),
    )


def front_figure(report: FrontReport) -> Markup:
    """Draw loss against share of the part, on a logarithmic scale: a dot for each network, a line at each limit.

    An axis ends where the figures stop to be of interest. What lies beyond is a triangle at that end, which is drawn
    as a broken axis.
    """
    points, label = report.points, "Loss of the metric against the share of the part"
    # A loss that is beyond all interest would press the others together, and so would a gain.
    most = max(5 * report.max_loss, 0.02)
    losses = [min(max(point.lost, -most), most) for point in points]
    shares = [min(max(point.share, _LEAST_SHARE), _MOST_SHARE) for point in points]
    x_from, x_to = math.log(min([report.share, *shares]) / _ROOM), math.log(max([report.share, *shares]) * _ROOM)
    y_from, y_to = 1.1 * min([0.0, *losses]), 1.1 * max([report.max_loss * 1.5, 0.002, *losses])
    right, floor = _WIDTH - _EDGE, _HEIGHT - _BOTTOM

    def across(share: float) -> float:
        return _LEFT + (right - _LEFT) * min(max((math.log(share) - x_from) / (x_to - x_from), 0.0), 1.0)

    def down(lost: float) -> float:
        return floor - (floor - _EDGE) * (lost - y_from) / (y_to - y_from)

    x_limit, y_limit = across(report.share), down(report.max_loss)
    parts = [
        Markup('<path class="axis" d="M{0:.5g},{1:.5g}V{2:.5g}H{3:.5g}"/>').format(_LEFT, _EDGE, floor, right),
        Markup('<line class="limit" x1="{0:.5g}" x2="{0:.5g}" y1="{1:.5g}" y2="{2:.5g}"/>').format(
            x_limit, _EDGE, floor
        ),
        Markup('<line class="limit" x1="{0:.5g}" x2="{1:.5g}" y1="{2:.5g}" y2="{2:.5g}"/>').format(
            _LEFT, right, y_limit
        ),
        # The limits are named at the far ends of their lines, where no number of an axis stands.
        text_at(x_limit, _EDGE - 5, f"at most {percent_text(report.share, 0)}", "middle"),
        text_at(right, y_limit - 4, f"at most {percent_text(report.max_loss, 2)}", "end"),
        text_at(_LEFT - 8, _EDGE - 5, "loss", "end"),
        text_at(right, floor + 34, f"share of {report.part}", "end"),
    ]
    parts += [
        text_at(across(tick), floor + 17, share_text(tick), "middle")
        for tick in _apart([tick for tick in _TICKS if x_from <= math.log(tick) <= x_to], across)
    ]
    parts += [text_at(_LEFT - 8, down(tick) + 4, _loss_tick(tick), "end") for tick in ticks_within(y_from, y_to)]
    lost, taken = ([getattr(point, name) for point in points] for name in ("lost", "share"))
    broken = {
        (_LEFT, _EDGE + 14): any(one > most for one in lost),
        (_LEFT, floor - 10): any(one < -most for one in lost),
        (_LEFT + 10, floor): any(one < _LEAST_SHARE for one in taken),
        (right - 10, floor): any(one > _MOST_SHARE for one in taken),
    }
    parts += [_break(x, y, upright=x == _LEFT) for (x, y), needed in broken.items() if needed]
    labels: list[tuple[float, float]] = []
    # The front is labelled first: a label that would cover another is left out, and the dot's title names it.
    for place in sorted(range(len(points)), key=lambda place: (not points[place].best_of_its_kind, place)):
        point, x, y = points[place], across(shares[place]), down(losses[place])
        beyond = (losses[place], shares[place]) != (point.lost, point.share)
        title = f"{point.number}. {point.knobs}: lost {percent_text(point.lost, 2)}, {share_text(point.share)}"
        kind = "refused" if not point.meets_limits else "" if point.best_of_its_kind else "beaten"
        parts.append(_mark(x, y, kind, f"{title}{', beyond the axis' if beyond else ''}", beyond))
        # Near the right edge a label stands at the left of its dot.
        text_x, anchor = (x + 8, "start") if x < right - _APART[0] else (x - 8, "end")
        if all(abs(text_x - other_x) > _APART[0] or abs(y - other_y) > _APART[1] for other_x, other_y in labels):
            labels.append((text_x, y))
            parts.append(text_at(text_x, y + 4, str(point.number), anchor))
    return Markup(
        '<svg class="points" role="img" aria-label="{0}" viewBox="0 0 {1:g} {2:g}" width="{1:g}" height="{2:g}">'
        "<title>{0}</title>{3}</svg>"
    ).format(label, _WIDTH, _HEIGHT, Markup("").join(parts))


def _apart(ticks: Sequence[float], across: Callable[[float], float]) -> list[float]:
    """Choose ticks whose numbers do not touch, from the right."""
    kept: list[float] = []
    for tick in reversed(ticks):
        if not kept or across(kept[-1]) - across(tick) > 1.5 * _APART[0]:
            kept.append(tick)
    return kept[::-1]


def _loss_tick(loss: float) -> str:
    return "0" if abs(loss) < 1e-12 else percent_text(loss, 1 if abs(loss) >= _SMALL_LOSS else 2)


def _mark(x: float, y: float, kind: str, title: str, beyond: bool) -> Markup:
    """Return a dot, or a triangle for a network that lies beyond an axis."""
    if beyond:
        return Markup('<path class="dot {}" d="M{:.5g},{:.5g}l5,9h-10z"><title>{}</title></path>').format(
            kind, x, y - 5, title
        )
    return Markup('<circle class="dot {}" cx="{:.5g}" cy="{:.5g}" r="5"><title>{}</title></circle>').format(
        kind, x, y, title
    )


def _break(x: float, y: float, upright: bool) -> Markup:
    """Draw two short strokes across an axis: it is broken there."""
    step = "m-5,3l10,-6m-10,10l10,-6" if upright else "m-3,5l6,-10m-2,10l6,-10"
    return Markup('<path class="limit break" d="M{:.5g},{:.5g}{}"/>').format(x, y, step)


def share_text(share: float) -> str:
    """Return a share in per cent; a small one with a decimal."""
    return percent_text(share, 0 if share >= _SMALL else 1)
