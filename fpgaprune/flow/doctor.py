"""`examine`: which packages and tools this machine has, stage by stage, and what brings those that are missing."""

from __future__ import annotations

from fpgaprune.flow.requirements import Row
from fpgaprune.flow.stages import STAGES


def examine() -> list[Row]:
    """One row a package or tool, those of one stage together.

    Returns:
        `stage`, `tool`, `found` (version or path, None where missing), `unlocks`, and `install`: what brings it.
    """
    return [row for stage in STAGES for row in stage.needs()]


def missing_extras(rows: list[Row]) -> dict[str, list[str]]:
    """Command to the tools that it would bring, for what is missing and pip can bring."""
    commands: dict[str, list[str]] = {}
    for row in rows:
        if row["found"] is None and str(row["install"]).startswith("pip install"):
            commands.setdefault(str(row["install"]), []).append(str(row["tool"]))
    return commands
