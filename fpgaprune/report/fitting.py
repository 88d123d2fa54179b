"""The answer to the first question of a report: whether the network fits its part, and by which figures."""

from __future__ import annotations

from dataclasses import dataclass, replace

from fpgaprune.measure import ANALYTIC_SYNTH, OPEN_SYNTH, Estimate, VerilogPrice, interval_words, occupancy_of
from fpgaprune.report.contents import RunReport
from fpgaprune.report.estimate_tables import share
from fpgaprune.report.numbers import count_text, percent_text
from fpgaprune.report.table import LABELS

_QUESTION = "Does it fit?"


@dataclass(frozen=True)
class Answer:
    """The answer to a question.

    Attributes:
        question: the question.
        verdict: the answer in a few words.
        lines: the details.
        tone: `good`, `bad` or `open`.
        binding: the figure that decides, in a few words, or "".
    """

    question: str
    verdict: str
    lines: tuple[str, ...]
    tone: str = "open"
    binding: str = ""


def fit_answer(report: RunReport) -> Answer:
    """Whether the network fits, as hls4ml's project or as our Verilog.

    The estimate of the hls4ml project decides, or that of our Verilog for a part whose tools build no such project. If
    open synthesis counted our Verilog, the count stands in place of its estimate, and a network that fits only as our
    Verilog fits.
    """
    counted = None if report.measured is None else report.measured.counted_on(report.target.part)
    said = () if counted is None else (f"As our Verilog it {counted.words} ({OPEN_SYNTH}: counted, not placed)",)
    answer = _by_project(report) if report.verilog is None else _by_verilog(report.verilog, report)
    answer = replace(answer, lines=(*answer.lines, *said))
    if counted is None or (nearest := counted.nearest_limit()) is None:
        return answer
    binding = f"{nearest.words}, counted by synthesis"
    if report.verilog is not None:
        return replace(
            answer, verdict=_verdict(counted.fits, None, report), tone=_tone(counted.fits, None), binding=binding
        )
    if counted.fits and answer.tone != "good":
        return replace(answer, verdict=f"Fits {counted.part} as our Verilog", tone="good", binding=binding)
    return answer


def _by_project(report: RunReport) -> Answer:
    """Whether the hls4ml project fits, by its estimate."""
    if report.after is None:
        reason = report.left_out.get("estimate", "The run has no estimate.")
        return Answer(_QUESTION, f"Not estimated for {report.target.part.name}", (reason,))
    fits, upper = report.after.fits, report.after.fits_upper
    lines = [_binding(report.after, "is the scarcest: ")]
    if upper is not None and fits:
        lines.append(f"The upper end of the 80 % range of the estimate {'fits too' if upper else 'does not fit'}")
    if report.before is not None:
        fitted = report.before.fits
        word = "" if fitted is None else " it fitted" if fitted else " it did not fit"
        lines.append(f"Before{word}: {_binding(report.before, '')}")
    return Answer(_QUESTION, _verdict(fits, upper, report), tuple(lines), _tone(fits, upper), _short(report.after))


def _by_verilog(price: VerilogPrice, report: RunReport) -> Answer:
    """Whether our Verilog fits, by its estimate."""
    part = report.target.part
    taken = occupancy_of(price.resources, part)
    lines = [
        f"As our Verilog, with a sample {interval_words(price.interval_cycles)}, it {taken.words} "
        f"({price.whole.stage}: estimated, without the harness of a board)",
        f"No tool of {part.vendor} builds an hls4ml project, so that its estimate says nothing here",
    ]
    if not taken.fits:
        lines.append("fpgaprune fit looks for a network and a layout that fit")
    nearest = taken.nearest_limit()
    binding = "" if nearest is None else f"{nearest.words}, estimated"
    upper = taken.fits_upper
    return Answer(_QUESTION, _verdict(taken.fits, upper, report), tuple(lines), _tone(taken.fits, upper), binding)


def _verdict(fits: bool | None, upper: bool | None, report: RunReport) -> str:
    part = report.target.part.name
    if fits is None:
        return f"Cannot tell for {part}"
    if not fits:
        return f"Does not fit {part}"
    return f"May fit {part}" if upper is False else f"Fits {part}"


def _tone(fits: bool | None, upper: bool | None) -> str:
    return "open" if fits is None or (fits and upper is False) else "good" if fits else "bad"


def _short(estimate: Estimate) -> str:
    binding = estimate.binding
    if binding is None:
        return ""
    return f"{LABELS[binding.resource]} {percent_text(share(binding.used, binding.capacity))} of the part, estimated"


def _binding(estimate: Estimate, link: str) -> str:
    """What runs out first, and by how much."""
    binding = estimate.binding
    if binding is None:
        return "the scarcest resource is unknown"
    layer = estimate.largest(binding.resource)
    where = f"; {layer} takes most of it" if layer else ""
    return (
        f"{LABELS[binding.resource]} {link}{percent_text(share(binding.used, binding.capacity))} of the part, "
        f"{count_text(binding.used)} of {count_text(binding.capacity)} ({ANALYTIC_SYNTH.step} estimate){where}"
    )
