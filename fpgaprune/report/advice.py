"""Texts and a table: which resources are short, and what each change would bring.

The page and the terminal print the same texts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fpgaprune.layout import Advice, DesignLayout, Shortage, Suggestion
from fpgaprune.report.estimate_tables import RESOURCES
from fpgaprune.report.numbers import DASH, NO_BREAK, count_text, percent_text, range_text
from fpgaprune.report.table import LABELS, Column, Table

_PLACES = {
    "flow file": "In flow.toml of the run, in place of what these keys and tables hold:",
    "model": "In Python, of the trained model:",
}

# The text for (the upper end of the estimate fits, its middle fits).
_FITS = {(True, True): "yes", (False, True): "by the middle", (False, False): "no", (False, None): DASH}


@dataclass(frozen=True)
class Change:
    """One suggestion in words.

    Attributes:
        number: from 1 on; the best change has 1.
        knob: the setting that changes.
        place: where the change is made, as a heading.
        change: what to write.
        verdict: whether it would fit.
        tone: good, open or bad.
        figures: the share of the part that the design would take, with its range.
        cost: what the change costs, in words.
    """

    number: int
    knob: str
    place: str
    change: str
    verdict: str
    tone: str
    figures: str
    cost: str


def shortage_lines(advice: Advice) -> tuple[str, ...]:
    """Return a sentence for each resource that is short: used, available, by how much, and in which layers."""
    return tuple(_shortage(shortage) for shortage in advice.shortages)


def suggested_changes(advice: Advice) -> tuple[Change, ...]:
    """Return the suggestions, the best first."""
    return tuple(_change(number, row) for number, row in enumerate(advice.suggestions, start=1))


def changes_tables(advice: Advice) -> tuple[Table, ...]:
    """Return the design as it is and after each change: a table for hls4ml projects, and one for our own Verilog."""
    numbered = [(f"{n}. {row.knob}", row.after) for n, row in enumerate(advice.suggestions, start=1)]
    if not numbered:
        return ()
    projects = [("as it is", advice.now), *(pair for pair in numbered if pair[1].stage == advice.now.stage)]
    verilog = [pair for pair in numbered if pair[1].stage != advice.now.stage]
    return tuple(_table(rows) for rows in (projects, verilog) if rows)


def _table(rows: Sequence[tuple[str, DesignLayout]]) -> Table:
    """Return the names and estimates of one stage, as a table."""
    names, sides = zip(*rows, strict=True)
    whole = [side.measured for side in sides]
    columns = [
        Column("change", names, numeric=False),
        Column("fits", tuple(_FITS[side.fits_upper or False, side.fits] for side in sides), numeric=False),
        *(
            Column(label, tuple(count_text(getattr(side, key)) for side in sides), group="cycles")
            for key, label in (("latency_cycles", "latency"), ("interval_cycles", "interval"))
        ),
    ]
    for key, label in RESOURCES:
        columns += [
            Column.of("", key, whole, group=label),
            Column.of("range", key, whole, group=label, show=lambda figure: range_text(figure.low, figure.high)),
        ]
    stage = whole[0].stage
    said = "open synthesis will count of our Verilog" if stage.family else f"{stage.words} ({stage.step}) will report"
    return Table(
        f"The design after each change: analytic estimate of what {said}",
        tuple(columns),
        "Four of five true values are expected within the range. The column fits says yes if the upper end fits too.",
    ).shown_columns()


def _shortage(shortage: Shortage) -> str:
    used, capacity = shortage.used, shortage.capacity
    label = LABELS[shortage.resource]
    share = percent_text(used.value / capacity) if capacity else "none available"
    spread = range_text(used.low, used.high)
    said = f"{label}: {count_text(used.value)} of {count_text(capacity)} ({share}), expected within {spread}"
    beyond = used.value - capacity
    if beyond > 0:
        said += f"; {count_text(beyond)} too many"
    else:
        said += f"; the middle of the range fits, its upper end is {count_text(used.high - capacity)} too many"
    layers = [f"{layer.layer} ({percent_text(layer.share, 0)})" for layer in shortage.layers]
    return f"{said}. Most of it goes to {_listed(layers)}." if layers else f"{said}."


def _change(number: int, row: Suggestion) -> Change:
    verdict, tone = _verdict(row.after)
    return Change(number, row.knob, _PLACES[row.place], row.change, verdict, tone, _shares(row.after), row.cost)


def _verdict(after: DesignLayout) -> tuple[str, str]:
    part = after.part
    if after.fits_upper:
        return f"fits {part}, also by its upper end", "good"
    if after.fits:
        return f"fits {part} by its middle, not by its upper end", "open"
    return f"does not fit {part}", "bad"


def _shares(after: DesignLayout) -> str:
    """Return each resource as a share of the part, with the range of that share."""
    said = []
    for row in after.occupancy.taken:
        if row.capacity:
            low, middle, high = (percent_text(row.share(end), 0) for end in ("low", "used", "high"))
            spread = "" if low == high else f" ({low.removesuffix(f'{NO_BREAK}%')}–{high})"
            said.append(f"{LABELS[row.resource]} {middle}{spread}")
    return ", ".join(said)


def _listed(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
