"""The four answers at the top of a report: whether it fits, what it cost, what was saved, what is proven."""

from __future__ import annotations

from dataclasses import dataclass

from fpgaprune.measure import ANALYTIC_SYNTH, Estimate
from fpgaprune.report.contents import Check, LinkSummary, RunReport
from fpgaprune.report.estimate_tables import figure_of, share
from fpgaprune.report.estimates import RESOURCES
from fpgaprune.report.numbers import change_text, count_text, percent_text, time_text
from fpgaprune.report.table import LABELS
from fpgaprune.report.verdict import ADVICE, loss_text, value_text

_PROVEN = "Are zeros and bits proven?"


@dataclass(frozen=True)
class Answer:
    """The answer to a question.

    Attributes:
        question: the question.
        verdict: the answer in a few words.
        lines: the details.
        tone: `good`, `bad` or `open`.
    """

    question: str
    verdict: str
    lines: tuple[str, ...]
    tone: str = "open"


def give_answers(report: RunReport) -> tuple[Answer, ...]:
    """The four answers in the order of the report."""
    return (_fit(report), _cost(report), _saved(report), _proven(report))


def left_out(report: RunReport) -> tuple[tuple[str, str], ...]:
    """What was not done, with the reason."""
    return (*report.left_out.items(), *_unchecked(report))


def _fit(report: RunReport) -> Answer:
    question, part = "Does it fit?", report.target.part.name
    if report.after is None:
        return Answer(question, "Not estimated", (report.left_out.get("estimate", "The run has no estimate."),))
    fits, upper = report.after.fits, report.after.fits_upper
    verdict = f"Cannot tell for {part}" if fits is None else f"{'Fits' if fits else 'Does not fit'} {part}"
    if fits and upper is False:
        verdict = f"May fit {part}"
    lines = [_binding(report.after, "is the scarcest: ")]
    if upper is not None and fits:
        lines.append(
            "The upper end of the 80 % range of the estimate fits too"
            if upper
            else "The upper end of the 80 % range of the estimate does not fit"
        )
    if report.before is not None:
        fitted = report.before.fits
        word = "" if fitted is None else " it fitted" if fitted else " it did not fit"
        lines.append(f"Before{word}: {_binding(report.before, '')}")
    tone = "open" if fits is None or (fits and upper is False) else "good" if fits else "bad"
    return Answer(question, verdict, tuple(lines), tone)


def _binding(estimate: Estimate, link: str) -> str:
    """What runs out first, and by how much."""
    binding = estimate.binding
    if binding is None:
        return "the scarcest resource is unknown"
    where = f"; {binding.layer} takes most of it" if binding.layer else ""
    return (
        f"{LABELS[binding.resource]} {link}{percent_text(share(binding.used, binding.capacity))} of the part, "
        f"{count_text(binding.used)} of {count_text(binding.capacity)} ({binding.stage} estimate){where}"
    )


def _cost(report: RunReport) -> Answer:
    metric = report.metric
    lines = [
        f"{value_text(metric, 'hardware')} in hardware"
        if metric.hardware is not None
        else f"{value_text(metric, 'after')} after",
        *([f"{value_text(metric, 'after')} after, in floating point"] if metric.hardware is not None else []),
        f"{value_text(metric, 'before')} before",
        f"{count_text(metric.samples)} held-out samples of {metric.data}; ± is one standard error",
    ]
    if metric.lost is None:
        return Answer("What was lost?", "Not measured", tuple(lines))
    if metric.max_loss is not None:
        lines.append(f"A loss of at most {metric.max_loss:g} is allowed (verdict.max_loss)")
    if metric.holds is False:
        lines.append(f"What may help: {ADVICE}")
    tone = "open" if metric.holds is None else "good" if metric.holds else "bad"
    text = loss_text(metric)
    what = f"{metric.name} {text}" if not metric.higher_is_better else f"{text[0].upper()}{text[1:]} of {metric.name}"
    return Answer("What was lost?", "Nothing lost" if metric.lost == 0 else what, tuple(lines), tone)


def _saved(report: RunReport) -> Answer:
    question = "What was saved?"
    locked = sum(layer.kernels_locked for layer in report.kernel_layers)
    total = sum(layer.kernels_total for layer in report.kernel_layers)
    parameters = [sum(getattr(layer, f"parameters_{when}") for layer in report.layers) for when in ("before", "after")]
    lines = [
        f"{count_text(locked)} of {count_text(total)} kernels locked"
        + (f", sparsity {locked / total:.2f}" if total else ""),
        f"Parameters: {count_text(parameters[1])}, before {count_text(parameters[0])}",
    ]
    if report.before is None or report.after is None:
        return Answer(
            question,
            lines[0] if report.layers else "The run reports no layer",
            tuple(lines[1:]) if report.layers else (),
        )
    # The last stage is nearest to the chip. Figures of another stage cannot be compared with it.
    sides = (report.before, report.after)
    changes = []
    for key, label in RESOURCES:
        old, new = (figure_of(side.at(ANALYTIC_SYNTH), key) for side in sides)
        if old is not None and new is not None:
            changes.append(f"{label} {change_text(old.value, new.value)}")
    times = [time_text(side.latency_us) for side in sides]
    speed = f"Latency: {times[1]}, before {times[0]}"
    if not changes:
        return Answer(question, lines[0], (speed, *lines[1:]))
    step = ANALYTIC_SYNTH.step
    others = f"{', '.join(changes[1:])} ({step} estimates)" if len(changes) > 1 else f"{step} estimate"
    return Answer(question, changes[0], (others, speed, *lines))


def _proven(report: RunReport) -> Answer:
    checks = [check for check in report.checks if check.about == "bits"]
    claims: list[LinkSummary | Check] = [*report.certificate, *checks]
    outcomes = [claim.holds for claim in claims]
    failed, held = outcomes.count(False), outcomes.count(True)
    skipped = sum(claim.left_out is not None for claim in claims)
    lines = []
    violations = [link.violations for link in report.certificate if link.violations is not None]
    if violations:
        elements = max(link.locked or 0 for link in report.certificate)
        lines.append(
            f"{count_text(elements)} locked elements compared bit for bit in {len(violations)} "
            f"place{'s' * (len(violations) != 1)}: {count_text(sum(violations))} violations"
        )
    lines += [f"{check.name} does not hold" for check in checks if check.holds is False]
    lines += [f"{name} was left out: {why}" for name, why in _unchecked(report)]
    checked = failed + held
    if not checked:
        return Answer(_PROVEN, "Nothing was checked", tuple(lines))
    if failed:
        return Answer(_PROVEN, f"{failed} of {checked} checks fail{'s' * (failed == 1)}", tuple(lines), "bad")
    verdict = f"{checked} check{'s' * (checked != 1)} hold{'s' * (checked == 1)}"
    if skipped:
        return Answer(_PROVEN, f"{verdict}, {skipped} left out", tuple(lines))
    return Answer(_PROVEN, f"All {verdict}" if checked > 1 else verdict, tuple(lines), "good")


def _unchecked(report: RunReport) -> list[tuple[str, str]]:
    links = [(f"certificate, {link.link}", link.left_out) for link in report.certificate if link.left_out is not None]
    return links + [(check.name, check.left_out) for check in report.checks if check.left_out is not None]
