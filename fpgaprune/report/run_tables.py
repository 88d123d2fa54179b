"""Tables of what the run did and proved, and how long each stage took."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from fpgaprune.report.contents import Check, LayerReport, RunReport, StageTime
from fpgaprune.report.numbers import DASH, change_text, count_text, error_text, percent_text, seconds_text
from fpgaprune.report.table import Column, Table
from fpgaprune.report.verdict import loss_figure


def kernels_table(report: RunReport) -> Table:
    """Make a table of kernels, channels and parameters of each layer that carries weights."""
    layers, counted = report.layers, report.kernel_layers

    def with_total(key: str, summed: Sequence[LayerReport]) -> list[int]:
        return [*(getattr(layer, key) for layer in layers), sum(getattr(layer, key) for layer in summed)]

    kinds = ("kept", "locked", "removed", "total")
    kept, locked, removed, total = (with_total(f"kernels_{kind}", counted) for kind in kinds)
    before, after = (with_total(key, layers) for key in ("parameters_before", "parameters_after"))
    return Table(
        "Layers that carry weights",
        (
            Column("layer", (*(layer.name for layer in layers), "all"), numeric=False),
            Column("kept", tuple(map(count_text, kept)), group="kernels"),
            Column("locked", tuple(map(count_text, locked)), group="kernels"),
            Column("removed", tuple(map(count_text, removed)), group="kernels"),
            Column("sparsity", tuple(map(_sparsity, locked, total)), group="kernels"),
            Column("before", (*(_channels(x.channels_before) for x in layers), ""), group="in × out"),
            Column("after", (*(_channels(x.channels_after) for x in layers), ""), group="in × out"),
            Column("before", tuple(map(count_text, before)), group="parameters"),
            Column("after", tuple(map(count_text, after)), group="parameters"),
            Column("change", tuple(map(change_text, before, after)), group="parameters"),
        ),
        "in × out are numbers of channels. Removed kernels were free, and left with a channel. A kernel of a Dense "
        "layer is one weight" + (", and the total does not count those." if len(counted) < len(layers) else "."),
        totals=True,
    )


def certificate_table(report: RunReport) -> Table:
    """Make a table of the certificate's links: where locked elements were compared, and if for all inputs."""
    links = report.certificate
    return Table(
        "Locked elements compared bit for bit",
        (
            Column("place", tuple(link.link for link in links), numeric=False),
            Column("weights", tuple(count_text(link.weights) for link in links)),
            Column("locked elements", tuple(count_text(link.locked) for link in links)),
            Column("violations", tuple(count_text(link.violations) for link in links)),
            Column("holds", tuple(link.inputs for link in links), numeric=False),
            Column("result", tuple(verdict(link.holds, link.left_out) for link in links), numeric=False),
        ),
    )


def checks_tables(report: RunReport) -> list[Table]:
    """Make tables of the other comparisons with their limits: zeros and bits, then the network's quality."""
    kinds = {"bits": "Comparisons of zeros and bits", "metric": "Quality against its limit"}
    rows = {caption: [check for check in report.checks if check.about == about] for about, caption in kinds.items()}
    return [_checks_table(caption, checks) for caption, checks in rows.items() if checks]


def _checks_table(caption: str, checks: Sequence[Check]) -> Table:
    limits = [DASH if c.limit is None else f"{'≥' if c.at_least else '≤'} {check_text(c, c.limit)}" for c in checks]
    return Table(
        caption,
        (
            Column("check", tuple(check.name for check in checks), numeric=False),
            Column("quantity", tuple(check.quantity for check in checks), numeric=False),
            Column("measured", tuple(check_text(check, check.measured) for check in checks)),
            Column("wanted", tuple(limits)),
            Column("samples", tuple(count_text(check.samples) for check in checks)),
            Column("result", tuple(verdict(check.holds, check.left_out) for check in checks), numeric=False),
        ),
    )


def check_text(check: Check, value: float | None) -> str:
    """Return the figure of `check` or its limit, in its unit."""
    if check.unit and value is not None:
        return loss_figure(check.unit, value)
    return percent_text(value, 2) if check.at_least else error_text(value)


def facts(report: RunReport) -> tuple[str, ...]:
    """Return the target and the data, in a few words each."""
    target = report.target
    return (
        target.part.name if target.order_number == target.part.name else target.order_number,
        f"{target.part.vendor} {target.part.family}",
        f"{target.clock_ns:g} ns clock ({1e3 / target.clock_ns:.4g} MHz)",
        target.io_type,
        f"{target.strategy} strategy",
        f"reuse {target.reuse_factor}",
        f"data: {report.metric.data}",
    )


def provenance(report: RunReport) -> tuple[tuple[str, str], ...]:
    """Return the part, versions and digests that repeat the run."""
    part = report.target.part
    head = [
        ("part", f"{part.name}, {part.vendor} {part.family}; capacities from {part.source}, checked {part.date}"),
        ("backend", report.target.backend),
        ("seed", DASH if report.seed is None else str(report.seed)),
    ]
    return (*head, *sorted(report.versions.items()))


def verdict(holds: bool | None, left_out: str | None) -> str:
    """Return one or two words for the outcome of a check."""
    if left_out is not None:
        return "left out"
    return "measured" if holds is None else "holds" if holds else "VIOLATED"


def _channels(pair: tuple[int, int] | None) -> str:
    return "gone" if pair is None else f"{pair[0]} × {pair[1]}"


def _sparsity(locked: int, total: int) -> str:
    return f"{locked / total:.2f}" if total else DASH


# Stage to the work that it is, as a user would say it.
WORK = {
    "train": "reading or training your network",
    "select": "choosing what to lock",
    "finetune": "training under the locks",
    "certify": "checking every locked weight",
    "remove": "taking out dead channels",
    "quantise": "training with the bits of the hardware",
    "trim": "trimming bits and weights",
    "export": "writing and running ONNX",
    "hls": "making and emulating the hardware",
    "measure": "simulating and synthesising our Verilog",
    "estimate": "estimating and looking for better layouts",
    "report": "writing this page",
}
UNCHANGED = "unchanged; the time is that of an earlier run"


def stage_times(
    names: Iterable[str], records: Mapping[str, Mapping[str, Any]], ran: Collection[str]
) -> list[StageTime]:
    """Return the time of each stage that has a record in the manifest.

    Args:
        names: the stages in order.
        records: stage to its record in the manifest.
        ran: the stages that ran now; the others were unchanged.
    """
    noted = {name: "" if name in ran else UNCHANGED for name in names if name in records}
    return [StageTime(name, records[name]["seconds"], note) for name, note in noted.items()]


def stages_table(report: RunReport) -> Table:
    """Return the table of how long each stage took."""
    rows = [(WORK.get(stage.name, stage.name), seconds_text(stage.seconds), stage.note) for stage in report.stages]
    known = [stage.seconds for stage in report.stages if stage.seconds is not None]
    rows.append(("all together", seconds_text(sum(known)) if known else DASH, ""))
    names, seconds, notes = zip(*rows, strict=True)
    columns = [Column("work", names, numeric=False), Column("time", seconds), Column("note", notes, numeric=False)]
    return Table("Where the time went", tuple(columns if any(notes) else columns[:2]), totals=True)
