"""The two answers that begin a report: whether the metric is kept, and whether the network fits its part."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

from fpgaprune.report.contents import Metric, RunReport
from fpgaprune.report.fitting import Reply, fit_answer, measured_answer
from fpgaprune.report.numbers import DASH, MINUS, NO_BREAK, percent_text

ADVICE = (
    "lock less (select.sparsity), choose in another way (select.criterion, select.normalize, select.protect), train "
    "longer (finetune.epochs), use more bits (hls.weight_bits, hls.activation_bits), or allow more (verdict.max_loss)"
)


# What an answer is about: the metric, whether the network fits, whether our Verilog fits what it was measured for, and
# in a search whether it is fast enough.
About = Literal["metric", "fit", "measured", "time"]


@dataclass(frozen=True)
class Verdict:
    """One of the answers that begin a report.

    Attributes:
        about: what it is about.
        reply: `yes`, `probably`, `no` or `unknown`.
        text: the answer in one line.
        tone: `good`, `bad` or `open`; no answer is good where the other one is bad.
    """

    about: About
    reply: Reply
    text: str
    tone: str


def verdicts(report: RunReport) -> tuple[Verdict, Verdict]:
    """Return whether the metric is kept, and whether the network fits its part."""
    reply, text = _kept(report.metric)
    fit = fit_answer(report)
    tones = [{"yes": "good", "no": "bad"}.get(reply, "open"), fit.tone]
    if "bad" in tones:
        tones = ["open" if tone == "good" else tone for tone in tones]
    return Verdict("metric", reply, text, tones[0]), Verdict("fit", fit.reply, fit.sentence, tones[1])


def measured_verdict(report: RunReport) -> Verdict | None:
    """Return whether our Verilog fits what it was measured for; None if nothing was measured."""
    answer = measured_answer(report)
    return None if answer is None else Verdict("measured", answer.reply, answer.sentence, answer.tone)


# Names of metrics that are abbreviations.
_SHORT = frozenset({"auc", "f1", "iou", "mae", "mape", "mse", "msle", "rmse"})


def metric_label(name: str) -> str:
    """Return what a sentence about the metric `name` begins with: `Accuracy`, `MAE`, `Binary accuracy`."""
    return name.upper() if name.lower() in _SHORT else f"{name[:1].upper()}{name[1:]}".replace("_", " ")


def _kept(metric: Metric) -> tuple[Reply, str]:
    """Return whether no more was lost than may be, and the answer in one line."""
    name = metric_label(metric.name)
    before = value_text(metric, "before")
    last = value_text(metric, "after" if metric.hardware is None else "hardware")
    if metric.lost is None:
        return "unknown", f"{name} not compared (before {before}, now {last})"
    figures = f"{last}, before {before}"
    if metric.max_loss is None:
        # A loss within its standard error is none.
        kept = metric.lost <= (metric.lost_error or 0.0)
        limit = "no limit was named: --max-loss or verdict.max_loss"
        return ("yes" if kept else "unknown"), f"{name} {'kept' if kept else loss_text(metric)} ({figures}; {limit})"
    if metric.holds:
        return "yes", f"{name} kept ({figures}; {limit_text(metric)})"
    return "no", f"{name} not kept ({figures}; {loss_text(metric)}, {limit_text(metric)})"


def limit_text(metric: Metric) -> str:
    """Return how much may be lost, in the unit of the loss: `2 points may be lost`; empty without a limit."""
    if metric.max_loss is None:
        return ""
    amount = _amount(metric, metric.max_loss)
    return f"{amount} may be lost" if metric.higher_is_better else f"it may grow by {amount}"


class _Measured(Protocol):
    @property
    def higher_is_better(self) -> bool: ...

    @property
    def is_fraction(self) -> bool: ...


def loss_unit(metric: _Measured) -> Literal["", "points", "%"]:
    """Return what a hundredth of the loss is: a point of a fraction, or one per cent of an error."""
    if not metric.higher_is_better:
        return "%"
    return "points" if metric.is_fraction else ""


def value_text(metric: Metric, when: str) -> str:
    """Return the metric `before`, `after` or in `hardware`, with its standard error."""
    value, error = getattr(metric, when), metric.errors.get(when)
    if value is None:
        return "not measured"
    if metric.is_fraction:
        shown = percent_text(value, 2)
        return shown if error is None else shown.replace(f"{NO_BREAK}%", f" ± {100 * error:.2f}{NO_BREAK}%")
    return f"{value:.4g}" + ("" if error is None else f" ± {error:.2g}")


def loss_text(metric: Metric) -> str:
    """Return the loss in points, in the metric's own unit, or as growth of an error."""
    if metric.lost is None:
        return DASH
    if metric.lost == 0:
        return "nothing lost"
    verbs = ("lost", "gained") if metric.higher_is_better else ("grew by", "fell by")
    return f"{verbs[metric.lost < 0]} {_amount(metric, abs(metric.lost), metric.lost_error)}"


def loss_figure(unit: str, size: float, error: float | None = None) -> str:
    """Return a loss in its unit, with its standard error: `0.82 ± 0.40 points`."""
    if not unit:
        return f"{size:.3g}".replace("-", MINUS) + ("" if error is None else f" ± {error:.2g}")
    percent = round(100 * size, 2) or 0.0
    shown = f"{percent:g}" if error is None else f"{percent:.2f} ± {100 * error:.2f}"
    return f"{shown.replace('-', MINUS)}{NO_BREAK}{'point' if unit == 'points' and shown == '1' else unit}"


def _amount(metric: Metric, size: float, error: float | None = None) -> str:
    return loss_figure(loss_unit(metric), size, error)
