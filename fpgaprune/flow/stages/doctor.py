"""`examine`: the packages and tools that this machine has, stage by stage, and how to install the missing ones."""

from __future__ import annotations

from fpgaprune.flow.stages import STAGES
from fpgaprune.flow.stages.requirements import Row, package


def examine() -> list[Row]:
    """One row for each package or tool, in the order of the stages; those of `fit`, which runs flows, come last."""
    return [
        *(row for stage in STAGES for row in stage.needs()),
        package("fit", "distributed", "trials of fit on several processes or machines", "search"),
    ]


def missing_extras(rows: list[Row]) -> dict[str, list[str]]:
    """Command of pip or apt to the missing tools that it installs."""
    commands: dict[str, list[str]] = {}
    for row in rows:
        if row["found"] is None and str(row["install"]).startswith(("pip install", "sudo apt install")):
            commands.setdefault(str(row["install"]), []).append(str(row["tool"]))
    return commands
