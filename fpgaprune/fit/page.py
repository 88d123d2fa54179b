"""The answer of a search as a page, and in the words of the page and the terminal."""

from __future__ import annotations

import re
from pathlib import Path

from fpgaprune.fit.answer import Fit, FitPoint
from fpgaprune.fit.changes import layer_changes, reasons
from fpgaprune.fit.limits import Limits
from fpgaprune.measure import interval_words
from fpgaprune.report import LABELS, NO_BREAK, FrontPoint, FrontReport, time_text, write_front

# Where a line of a narrow table ends: at a comma outside of brackets, and before a bracket.
_APART = re.compile(r", (?![^(]*\))| (?=\()")


def write_page(answer: Fit, folder: Path) -> Path:
    """`folder` holds report.html, the page of `answer`."""
    front = set(map(id, answer.front))
    points = [
        FrontPoint(
            number,
            point.knobs,
            point.lost,
            point.lost_error,
            point.share,
            LABELS[point.resource],
            point.latency_cycles,
            id(point) in front,
            point.meets_limits,
            _link(Path(point.folder), folder),
        )
        for number, point in enumerate(answer.points, 1)
    ]
    return write_front(
        folder,
        FrontReport(
            answer.name,
            answer.part,
            limit_words(answer),
            headline(answer),
            "good" if answer.meets_limits else "bad",
            facts(answer.best, answer),
            answer.best.folder,
            points,
            _limits(answer).most_loss(searching=True),
            _limits(answer).share,
            f"Shares are upper ends of the {answer.price}, divided by what the part has.",
            answer.notes,
            layer_changes(Path(answer.best.folder)),
            reasons(answer),
        ),
    )


def headline(answer: Fit) -> str:
    """The answer in a sentence."""
    best = answer.best
    loss = f"{best.metric} {best.lost_in_words()} on {best.samples:,} held-out samples"
    price = f"{best.share:.0%} of the {LABELS[best.resource]}s, {best.latency_cycles:,} cycles"
    if answer.meets_limits:
        return f"Fits: {price}; {loss}."
    broken = [
        *([] if best.fits else [f"it takes {best.share:.0%} of the {LABELS[best.resource]}s"]),
        *([] if best.loses_little else [loss]),
        *(
            []
            if best.in_time
            else [f"it takes {best.latency_cycles:,} cycles, a sample {interval_words(best.interval_cycles)}"]
        ),
    ]
    return f"No network that was tried keeps every limit. The nearest one: {' and '.join(broken)}."


def front_title(answer: Fit) -> str:
    """What stands over the table of the points that no other beats."""
    more = f"; in the search {100 * extra:.2f} % more may be lost" if (extra := _limits(answer).forgotten) else ""
    return f"the best networks: no other is better in loss, share and latency at once{more}"


def front_rows(answer: Fit) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """The headings and the rows of a table of the points that no other beats."""
    rows: list[tuple[str, ...]] = [
        (
            _APART.sub("\n", point.knobs),
            f"{100 * point.lost:.2f} ± {100 * point.lost_error:.2f} %",
            f"{point.share:.0%} {LABELS[point.resource]}",
            f"{point.latency_cycles:,}",
            "yes" if point.meets_limits else "no",
        )
        for point in sorted(answer.front, key=lambda point: point.lost)
    ]
    return ("network", "loss", "share", "cycles", "limits\nkept"), rows


def limit_words(answer: Fit) -> list[str]:
    """What must hold, each in words."""
    limits = _limits(answer)
    words = [f"{answer.clock_ns:g} ns", f"at most {limits.max_loss} lost, plus one standard error"]
    if limits.forgotten:
        words.append(f"in the search {100 * limits.forgotten:.2f} % more")
    words.append(f"at most {100 * limits.share:g} % of each resource")
    if limits.latency_us is not None:
        words.append(f"at most {limits.latency_us:g} µs")
    if limits.interval_cycles is not None:
        words.append(f"a sample {interval_words(limits.interval_cycles)}")
    if limits.samples_per_s is not None:
        words.append(f"at least {limits.samples_per_s:,.10g} samples a second")
    return words


def facts(best: FitPoint, answer: Fit) -> list[tuple[str, str]]:
    """Name and text of each fact of the best network."""
    priced = [f"{count:,} {LABELS[name]}" for name, count in best.used.items() if count is not None]
    measured = [f"{count:,} {LABELS[name]}" for name, count in (best.measured or {}).items() if count is not None]
    latency = time_text(best.latency_cycles * answer.clock_ns / 1000).replace(NO_BREAK, " ")
    return [
        ("network", best.knobs),
        (best.metric, f"{best.value:.4g} in hardware, {best.lost_in_words()}"),
        ("takes", f"{', '.join(priced)} ({answer.price})"),
        *([("measured", f"{', '.join(measured)} ({answer.counted_by})")] if measured else []),
        (
            "nearest limit",
            f"{best.share:.0%} of the {LABELS[best.resource]}s{'' if measured else ', by the upper end'}",
        ),
        (
            "latency",
            f"{best.latency_cycles:,} cycles, {latency}; a sample {interval_words(best.interval_cycles)}",
        ),
        ("run", best.folder),
    ]


def _link(run: Path, folder: Path) -> str | None:
    page = run / "report.html"
    return str(page.relative_to(folder)) if page.is_file() and page.is_relative_to(folder) else None


def _limits(answer: Fit) -> Limits:
    return Limits(**answer.limits)  # type: ignore[arg-type]
