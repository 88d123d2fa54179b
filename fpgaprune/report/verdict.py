"""The first line of a report: whether the network lost no more than it may, and whether it fits its part."""

from __future__ import annotations

from typing import Literal

from fpgaprune.report.contents import Metric, RunReport
from fpgaprune.report.fitting import fit_answer
from fpgaprune.report.numbers import DASH, NO_BREAK, count_text, percent_text

ADVICE = (
    "lock less (select.sparsity), choose in another way (select.criterion, select.normalize, select.protect), train "
    "longer (finetune.epochs), use more bits (hls.weight_bits, hls.activation_bits), or allow more (verdict.max_loss)"
)
# The worst first.
_TONES = ("bad", "open", "good")


def headline(report: RunReport) -> tuple[str, str]:
    """One sentence, and its tone: good, bad or open. It begins with the worse of two answers: the loss, and the fit."""
    lost, lost_tone = _loss(report.metric)
    fit = fit_answer(report)
    fits = f"{fit.verdict}{f' ({fit.binding})' if fit.binding else ''}"
    if _TONES.index(fit.tone) < _TONES.index(lost_tone):
        return f"{fits}; {lost}", fit.tone
    word = {"good": "Passed", "bad": "Failed", "open": "Not judged" if report.metric.lost is None else "Measured"}
    return f"{word[lost_tone]}: {lost}; {fits[0].lower()}{fits[1:]}", lost_tone


def _loss(metric: Metric) -> tuple[str, str]:
    """What the network lost and may lose, and its tone."""
    readings = [
        f"{value_text(metric, when)} {word}"
        for when, word in (("before", "before"), ("after", "after"), ("hardware", "in hardware"))
        if getattr(metric, when) is not None
    ]
    what = f"{metric.name} {', '.join(readings) or 'not measured'} ({count_text(metric.samples)} held-out samples)"
    if metric.lost is None:
        return what, "open"
    lost = f"{what}: {loss_text(metric)}"
    if metric.max_loss is None:
        return lost, "open"
    return f"{lost}; {limit_text(metric)}", "good" if metric.holds else "bad"


def limit_text(metric: Metric) -> str:
    """How much may be lost, in the unit of the loss: `2.00 points may be lost`; empty without a limit."""
    if metric.max_loss is None:
        return ""
    amount = _amount(metric, metric.max_loss)
    return f"{amount} may be lost" if metric.higher_is_better else f"it may grow by {amount}"


def loss_unit(metric: Metric) -> Literal["", "points", "%"]:
    """What a hundredth of the loss is: a point of a fraction, or one per cent of an error."""
    if not metric.higher_is_better:
        return "%"
    return "points" if metric.is_fraction else ""


def value_text(metric: Metric, when: str) -> str:
    """The metric `before`, `after` or in `hardware`, with its standard error."""
    value, error = getattr(metric, when), metric.errors.get(when)
    if value is None:
        return "not measured"
    if metric.is_fraction:
        return percent_text(value, 2) + ("" if error is None else f" ± {100 * error:.2f}")
    return f"{value:.4g}" + ("" if error is None else f" ± {error:.2g}")


def loss_text(metric: Metric) -> str:
    """The loss in points, in the metric's own unit, or as growth of an error."""
    if metric.lost is None:
        return DASH
    if metric.lost == 0:
        return "nothing lost"
    verbs = ("lost", "gained") if metric.higher_is_better else ("grew by", "fell by")
    return f"{verbs[metric.lost < 0]} {_amount(metric, abs(metric.lost), metric.lost_error)}"


def _amount(metric: Metric, size: float, error: float | None = None) -> str:
    unit = loss_unit(metric)
    if not unit:
        return f"{size:.3g}" + ("" if error is None else f" ± {error:.2g}")
    digits = ".2f" if unit == "points" else ".3g"
    return f"{100 * size:{digits}}" + ("" if error is None else f" ± {100 * error:.2f}") + f"{NO_BREAK}{unit}"
