"""The curve of a training: the loss of each epoch, on axes with their numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence

from markupsafe import Markup

from fpgaprune.report.figures import text_at
from fpgaprune.report.numbers import count_text

_WIDTH, _HEIGHT, _LEFT, _BOTTOM, _EDGE = 520.0, 220.0, 56.0, 40.0, 12.0


def ticks_within(least: float, most: float, wanted: int = 4) -> list[float]:
    """Round numbers from `least` to `most`, some `wanted` of them: steps of 1, 2, 2.5 or 5 times a power of ten."""
    span = most - least
    if not (math.isfinite(span) and span > 0):
        return [least] if math.isfinite(least) else []
    rough = span / wanted
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * size for size in (1, 2, 2.5, 5, 10) if power * size >= rough * (1 - 1e-9))
    return [number * step for number in range(math.ceil(least / step - 1e-9), math.floor(most / step + 1e-9) + 1)]


def curve_figure(losses: Sequence[float]) -> Markup | None:
    """The loss of each epoch as a line; None if fewer than two are known. An epoch without a number is a gap."""
    known = [loss for loss in losses if math.isfinite(loss)]
    if len(known) < 2:
        return None
    label = f"Loss of {count_text(len(losses))} epochs, from {known[0]:.4g} to {known[-1]:.4g}"
    low, high = min(0.0, *known), max(known) or 1.0
    right, floor = _WIDTH - _EDGE, _HEIGHT - _BOTTOM

    def across(epoch: float) -> float:
        return _LEFT + (right - _LEFT) * (epoch - 1) / max(len(losses) - 1, 1)

    def down(loss: float) -> float:
        return floor - (floor - _EDGE) * (loss - low) / (high - low)

    parts = [Markup('<path class="axis" d="M{0:.5g},{1:.5g}V{2:.5g}H{3:.5g}"/>').format(_LEFT, _EDGE, floor, right)]
    parts += [text_at(_LEFT - 6, down(tick) + 4, f"{tick:.6g}", "end") for tick in ticks_within(low, high)]
    epochs = [tick for tick in ticks_within(1, len(losses), 5) if tick == round(tick) and tick >= 1]
    parts += [text_at(across(tick), floor + 16, count_text(tick), "middle") for tick in epochs]
    parts.append(text_at(right, floor + 34, "epoch", "end"))
    steps, drawn = [], False
    for epoch, loss in enumerate(losses, 1):
        if math.isfinite(loss):
            steps.append(f"{'L' if drawn else 'M'}{across(epoch):.5g},{down(loss):.5g}")
        drawn = math.isfinite(loss)
    parts.append(Markup('<path class="curve" d="{}"/>').format("".join(steps)))
    return Markup(
        '<svg class="points" role="img" aria-label="{0}" viewBox="0 0 {1:g} {2:g}" width="{1:g}" height="{2:g}">'
        "<title>{0}</title>{3}</svg>"
    ).format(label, _WIDTH, _HEIGHT, Markup("").join(parts))
