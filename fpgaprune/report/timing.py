"""The time of each stage of a run."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from fpgaprune.report.contents import RunReport, StageTime
from fpgaprune.report.numbers import DASH, seconds_text
from fpgaprune.report.table import Column, Table

# Stage to the work that it is, as a user would say it.
WORK = {
    "train": "reading or training your network",
    "select": "choosing what to lock",
    "finetune": "training under the locks",
    "certify": "checking every locked weight",
    "remove": "taking out dead channels",
    "quantise": "training with the bits of the hardware",
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
    """The time of each stage that has a record in the manifest.

    Args:
        names: the stages in order.
        records: stage to its record in the manifest.
        ran: the stages that ran now; the others were unchanged.
    """
    noted = {name: "" if name in ran else UNCHANGED for name in names if name in records}
    return [StageTime(name, records[name]["seconds"], note) for name, note in noted.items()]


def stages_table(report: RunReport) -> Table:
    """The table of how long each stage took."""
    rows = [(WORK.get(stage.name, stage.name), seconds_text(stage.seconds), stage.note) for stage in report.stages]
    known = [stage.seconds for stage in report.stages if stage.seconds is not None]
    rows.append(("all together", seconds_text(sum(known)) if known else DASH, ""))
    names, seconds, notes = zip(*rows, strict=True)
    columns = [Column("work", names, numeric=False), Column("time", seconds), Column("note", notes, numeric=False)]
    return Table("Where the time went", tuple(columns if any(notes) else columns[:2]), totals=True)
