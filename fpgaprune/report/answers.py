"""The four answers at the top of a report: whether it fits, what it cost, what was saved, what is proven."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from fpgaprune.measure import ANALYTIC_SYNTH, Figure, Measurement
from fpgaprune.report.contents import Check, LinkSummary, RunReport
from fpgaprune.report.estimate_tables import RESOURCES, figure_of
from fpgaprune.report.fitting import fit_answer
from fpgaprune.report.numbers import change_text, count_text, time_text
from fpgaprune.report.verdict import ADVICE, limit_text, loss_text, value_text, verdicts
from fpgaprune.values import loss_text as limit_of_file


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


_PROVEN = "Are zeros and bits proven?"


def give_answers(report: RunReport) -> tuple[Answer, ...]:
    """Return the four answers in the order of the report."""
    fit = fit_answer(report)
    metric, fits = verdicts(report)
    part = f"Does it fit {fit.part}?"
    return (
        _cost(report, metric.tone),
        Answer(part, fit.verdict, fit.lines, fits.tone),
        _saved(report),
        _proven(report),
    )


def left_out(report: RunReport) -> tuple[tuple[str, str], ...]:
    """Return the steps that were left out, with their reasons."""
    return (*report.left_out.items(), *_unchecked(report))


def _cost(report: RunReport, tone: str) -> Answer:
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
        lines.append(
            f"{limit_text(metric)[0].upper()}{limit_text(metric)[1:]}, and one standard error more "
            f'(verdict.max_loss = "{limit_of_file(metric.max_loss)}")'
        )
    if metric.holds is False:
        lines.append(f"What may help, in flow.toml of this folder: {ADVICE}")
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
    if report.verilog is not None and report.verilog_before is not None:
        changes = _changes(report.verilog_before.whole, report.verilog.whole)
        if changes:
            others = f"{', '.join(changes[1:])} (estimates of our Verilog, at the same interval)"
            return Answer(question, changes[0], (others, *lines))
    if report.before is None or report.after is None:
        return Answer(
            question,
            lines[0] if report.layers else "The run reports no layer",
            tuple(lines[1:]) if report.layers else (),
        )
    # The last stage is nearest to the chip. Figures of another stage cannot be compared with it.
    sides = (report.before, report.after)
    changes = _changes(*(side.at(ANALYTIC_SYNTH) for side in sides))
    times = [time_text(side.latency_us) for side in sides]
    speed = f"Latency: {times[1]}, before {times[0]}"
    if not changes:
        return Answer(question, lines[0], (speed, *lines[1:]))
    step = ANALYTIC_SYNTH.step
    others = f"{', '.join(changes[1:])} ({step} estimates)" if len(changes) > 1 else f"{step} estimate"
    return Answer(question, changes[0], (others, speed, *lines))


def _changes(before: Measurement[Figure], after: Measurement[Figure]) -> list[str]:
    """Return the change of each resource that both know, as `LUT` with its per cent."""
    pairs = [(label, figure_of(before, key), figure_of(after, key)) for key, label in RESOURCES]
    return [
        f"{label} {change_text(old.value, new.value)}"
        for label, old, new in pairs
        if old is not None and new is not None
    ]


def _proven(report: RunReport) -> Answer:
    checks = [check for check in report.checks if check.about == "bits"]
    claims: list[LinkSummary | Check] = [*report.certificate, *checks]
    outcomes = [claim.holds for claim in claims]
    failed, held = outcomes.count(False), outcomes.count(True)
    skipped = sum(claim.left_out is not None for claim in claims)
    unlimited = outcomes.count(None) - skipped
    counts = ((skipped, "left out"), (unlimited, "measured without a limit"))
    open_ends = [f"{count} {what}" for count, what in counts if count]
    lines = []
    compared = Counter(link.locked for link in report.certificate if link.locked is not None)
    if compared:
        where = ", ".join(
            f"{count_text(elements)} in {places} place{'s' * (places != 1)}"
            for elements, places in sorted(compared.items(), reverse=True)
        )
        violations = sum(link.violations or 0 for link in report.certificate)
        lines.append(f"Locked elements compared bit for bit: {where}; {count_text(violations)} violations")
    lines += [f"{check.name} does not hold" for check in checks if check.holds is False]
    lines += [f"{name} was left out: {why}" for name, why in _unchecked(report)]
    checked = failed + held
    if not checked:
        return Answer(_PROVEN, "Nothing was checked", tuple(lines))
    whole = f"{'All ' if checked > 1 and not failed and not open_ends else ''}{checked}"
    if failed:
        verdict = f"{failed} of {checked} checks of zeros and bits fail{'s' * (failed == 1)}"
    else:
        verdict = f"{whole} check{'s' * (checked != 1)} of zeros and bits hold{'s' * (checked == 1)}"
    if open_ends:
        verdict = f"{verdict}, {', '.join(open_ends)}"
    tone = "bad" if failed else "open" if skipped else "good"
    return Answer(_PROVEN, verdict, tuple(lines), tone)


def _unchecked(report: RunReport) -> list[tuple[str, str]]:
    links = [(f"certificate, {link.link}", link.left_out) for link in report.certificate if link.left_out is not None]
    return links + [(check.name, check.left_out) for check in report.checks if check.left_out is not None]
