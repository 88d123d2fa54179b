"""The first line of a report: what the network lost on its way to the hardware, and whether that is allowed."""

from __future__ import annotations

from fpgaprune.report.contents import Metric
from fpgaprune.report.numbers import DASH, NO_BREAK, count_text, percent_text

ADVICE = (
    "lock less (select.sparsity), choose in another way (select.criterion, select.normalize, select.protect), train "
    "longer (finetune.epochs), use more bits (hls.weight_bits, hls.activation_bits), or allow more (verdict.max_loss)"
)


def headline(metric: Metric) -> tuple[str, str]:
    """One sentence, and its tone: good, bad or open."""
    readings = [
        f"{value_text(metric, when)} {word}"
        for when, word in (("before", "before"), ("after", "after"), ("hardware", "in hardware"))
        if getattr(metric, when) is not None
    ]
    what = f"{metric.name} {', '.join(readings) or 'not measured'} ({count_text(metric.samples)} held-out samples)"
    if metric.lost is None:
        return f"Not judged: {what}", "open"
    lost = f"{what}: {loss_text(metric)}"
    if metric.max_loss is None:
        return f"Measured: {lost}", "open"
    lost = f"{lost}; {_amount(metric, metric.max_loss)} may be lost"
    return (f"Passed: {lost}", "good") if metric.holds else (f"Failed: {lost}", "bad")


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
    if metric.higher_is_better and not metric.is_fraction:
        return f"{size:.3g}" + ("" if error is None else f" ± {error:.2g}")
    digits, unit = (".2f", "points") if metric.is_fraction else (".3g", "%")
    return f"{100 * size:{digits}}" + ("" if error is None else f" ± {100 * error:.2f}") + f"{NO_BREAK}{unit}"
