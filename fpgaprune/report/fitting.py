"""The answer to the first question of a report: whether the network fits its part, and by which figures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from fpgaprune.fabric import placed_on
from fpgaprune.measure import (
    ANALYTIC_CSYNTH,
    ANALYTIC_OPEN_SYNTH,
    ANALYTIC_SYNTH,
    Estimate,
    Occupancy,
    Stage,
    Taken,
    VerilogPrice,
    interval_words,
    occupancy_of,
)
from fpgaprune.report.contents import RunReport
from fpgaprune.report.estimate_tables import share
from fpgaprune.report.numbers import count_text, percent_text, range_text
from fpgaprune.report.table import LABELS

# Whether something holds: a network that fits by the middle of its estimate only probably fits.
Reply = Literal["yes", "probably", "no", "unknown"]
_TONES: Mapping[Reply, str] = {"yes": "good", "no": "bad"}
_COUNTED = "counted by open synthesis, not placed"


@dataclass(frozen=True)
class FitAnswer:
    """Whether the network fits.

    Attributes:
        reply: the answer.
        part: name of the part.
        decides: what decides: the figure of the resource, and where it comes from.
        lines: the details.
        design: ` as our Verilog` where another design than the one of the run fits; else empty.
        caveat: what does not fit beside what does; else empty.
    """

    reply: Reply
    part: str
    decides: str
    lines: tuple[str, ...]
    design: str = ""
    caveat: str = ""

    @property
    def tone(self) -> str:
        """`good`, `bad` or `open`."""
        return _TONES.get(self.reply, "open")

    @property
    def verdict(self) -> str:
        """The answer in a few words: `Probably`."""
        return f"{'Not known' if self.reply == 'unknown' else self.reply.capitalize()}{self.design}"

    @property
    def sentence(self) -> str:
        """The answer in one line: `Fits xc7z020: probably (LUT 35,390–86,657 of 53,200; ...)`."""
        reply = self.verdict[0].lower() + self.verdict[1:]
        return f"Fits {self.part}: {reply}" + (f" ({self.decides})" if self.decides else "") + self.caveat


def fit_answer(report: RunReport) -> FitAnswer:
    """Return whether the network fits, as hls4ml's project or as our Verilog.

    The estimate of the hls4ml project decides, or that of our Verilog for a part whose tools build no such project. If
    open synthesis counted our Verilog, the count leads: it stands in place of the estimate of our Verilog, and a
    network that fits only as our Verilog fits.
    """
    answer = _by_project(report) if report.verilog is None else _by_verilog(report.verilog, report)
    if report.counted_elsewhere is not None and (there := measured_answer(report)) is not None:
        # A layout for one part does not say whether the network fits another one.
        return replace(answer, lines=(there.sentence, *answer.lines))
    counted = None if report.measured is None else report.measured.counted_on(report.target.part)
    if counted is None or (nearest := counted.nearest_limit()) is None:
        return answer
    decides = f"{taken_text(nearest)}, {_COUNTED}"
    reply = _reply(counted.fits, None)
    if report.verilog is not None:
        lines = (f"Counted: {counted.rows}", *answer.lines)
        answer = replace(answer, reply=reply, decides=decides, lines=lines)
        return _after_placing(answer, counted, report.verilog.memories, report)
    lines = (f"As an hls4ml project: {answer.verdict.lower()} ({answer.decides})", *answer.lines)
    if reply == "yes":
        return replace(answer, reply=reply, decides=decides, lines=lines, design=", as our Verilog")
    other = f"; as our Verilog: {reply} ({decides})"
    return replace(answer, lines=(f"As our Verilog: {reply} ({decides})", *answer.lines), caveat=other)


def measured_answer(report: RunReport) -> FitAnswer | None:
    """Return whether our Verilog fits what it was measured for; None if nothing was measured.

    That is the part that its layout was chosen for, else the run's own part, else the device that holds it after place
    and route. The hls4ml project, and its estimate, have no say.
    """
    found, ours = report.measured, ", as our Verilog"
    if found is None:
        return None
    counted = report.counted_elsewhere or found.counted_on(report.target.part)
    if counted is not None and (nearest := counted.nearest_limit()) is not None:
        decides = f"{taken_text(nearest)}, {_COUNTED}"
        return FitAnswer(_reply(counted.fits, counted.fits), counted.part, decides, (), ours)
    if found.bitstream is not None:
        return FitAnswer("yes", str(found.bitstream["device"]), "placed and routed; its bitstream is written", (), ours)
    if found.route is not None and found.route.used is not None:
        return FitAnswer("yes", found.route.device, "placed and routed", (), ours)
    families = ", ".join(found.synthesis) or "no family"
    decides = f"counted for {families}, and not as a whole design for this part"
    return FitAnswer("unknown", report.target.part.name, decides, (), ours)


def _by_project(report: RunReport) -> FitAnswer:
    """Return whether the hls4ml project fits, by its estimate."""
    part = report.target.part.name
    if report.after is None:
        return FitAnswer("unknown", part, "no estimate", (report.left_out.get("estimate", "The run has no estimate."),))
    reply = _reply(report.after.fits, report.after.fits_upper)
    lines = [_deciding(report.after)]
    if reply == "probably":
        lines.append("The middle of its 80 % range fits, the upper end does not")
    if (binding := report.after.binding) is not None:
        layer = report.after.largest(binding.resource)
        lines.append(
            f"{LABELS[binding.resource]} is the scarcest: {percent_text(share(binding.used, binding.capacity))} of the "
            f"part by the middle of the range{f'; {layer} takes most of it' if layer else ''}"
        )
    if report.before is not None and report.before.binding is not None:
        fitted = {True: "fitted", False: "did not fit", None: "is not known"}[report.before.fits]
        lines.append(f"Before it {fitted}: {_nearest(report.before.occupancy)}")
    return FitAnswer(reply, part, _decides(report.after.occupancy, ANALYTIC_SYNTH), tuple(lines))


def _deciding(estimate: Estimate) -> str:
    """Return which stage decides, and what the earlier one says of the same resource."""
    said = f"The estimate for {ANALYTIC_SYNTH.words} (synth) decides"
    near = estimate.occupancy.nearest_limit()
    early = None if near is None else estimate.at(ANALYTIC_CSYNTH).figure(near.resource)
    if near is None or early is None:
        return said
    figure = f"{LABELS[near.resource]} {_range(early.low, early.high)}"
    return f"{said}, not the earlier one for {ANALYTIC_CSYNTH.words} (csynth), {figure}"


def _by_verilog(price: VerilogPrice, report: RunReport) -> FitAnswer:
    """Return whether our Verilog fits, by its estimate."""
    part = report.target.part
    taken = occupancy_of(price.resources, part)
    lines = [
        f"As our Verilog, with a sample {interval_words(price.interval_cycles)}, it {taken.words} "
        "(estimate for open synthesis, without the harness of a board)"
    ]
    if not part.compiles_hls:
        lines.append(f"No tool of {part.vendor} builds an hls4ml project, so our Verilog is judged")
    if report.verilog_before is not None:
        before = occupancy_of(report.verilog_before.resources, part)
        fitted = {True: "fitted", False: "did not fit", None: "is not known"}[before.fits]
        lines.append(f"Before it {fitted}: {_nearest(before)}")
    if not taken.fits:
        lines.append("fpgaprune fit looks for a network and a layout that fit")
    reply = _reply(taken.fits, taken.fits_upper)
    answer = FitAnswer(reply, part.name, _decides(taken, ANALYTIC_OPEN_SYNTH), tuple(lines))
    # A count stands in place of the estimate.
    counted = report.measured is not None and report.measured.counted_on(part) is not None
    return answer if counted else _after_placing(answer, taken, price.memories, report)


def _after_placing(answer: FitAnswer, taken: Occupancy, memories: int, report: RunReport) -> FitAnswer:
    """Return `answer`, or a worse one if place and route takes more of the part than it bears, or than there is."""
    found = report.measured
    if answer.reply == "no" or (found is not None and (found.bitstream or found.route)):
        return answer
    placed = placed_on(report.target.part, {row.resource: row.used for row in taken.taken}, memories)
    worst = max(placed, key=lambda row: row.fullness, default=None)
    if worst is None or worst.fullness <= 1:
        return answer
    reply: Reply = "no" if worst.share > 1 else "probably"
    share, room = percent_text(worst.share, 0), percent_text(worst.room, 0)
    kind = LABELS.get(worst.kind, worst.kind)
    decides = f"{kind} about {share} of the part once placed; place and route copes with {room}"
    line = f"{decides}; export for a board and fit choose a layout that takes less"
    return replace(answer, reply=reply, decides=decides, lines=(line, *answer.lines))


def _reply(fits: bool | None, upper: bool | None) -> Reply:
    if fits is None:
        return "unknown"
    return "no" if not fits else "probably" if upper is False else "yes"


def _decides(taken: Occupancy, stage: Stage) -> str:
    """Return the figure that decides, with its range, and its stage."""
    return f"{_nearest(taken)}, estimate for {'open synthesis' if stage.family else stage.words}"


def _nearest(taken: Occupancy) -> str:
    """Return the resource that decides: if it fits, that whose upper end is nearest to its limit."""
    near = taken.nearest_limit("high" if taken.fits else "used")
    return "no capacity is known" if near is None else taken_text(near)


def taken_text(row: Taken) -> str:
    """Write `LUT 35,390–86,657 of 53,200`."""
    return f"{LABELS[row.resource]} {_range(row.low, row.high)} of {count_text(row.capacity)}"


def _range(low: int, high: int) -> str:
    return count_text(low) if low == high else range_text(low, high)
