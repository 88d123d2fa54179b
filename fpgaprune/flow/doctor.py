"""`examine`: the packages and tools that this machine has, stage by stage, and how to install the missing ones."""

from __future__ import annotations

from fpgaprune.flow.requirements import Row
from fpgaprune.flow.stages import STAGES


def examine() -> list[Row]:
    """One row for each package or tool, in the order of the stages."""
    return [row for stage in STAGES for row in stage.needs()]


def missing_extras(rows: list[Row]) -> dict[str, list[str]]:
    """Command of pip to the missing tools that it installs."""
    commands: dict[str, list[str]] = {}
    for row in rows:
        if row["found"] is None and str(row["install"]).startswith("pip install"):
            commands.setdefault(str(row["install"]), []).append(str(row["tool"]))
    return commands
