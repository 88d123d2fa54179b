"""`STAGES`: the stages of the flow in order, and `examine`: the packages and tools that they need.

A stage is a function of its artefacts, its section of the configuration and the data; it returns JSON data
for the manifest. Only stages that need TensorFlow load it, and only when they run.
"""

from __future__ import annotations

import re
from typing import Any

from fpgaprune.flow.stages import (
    certify,
    estimate,
    export,
    finetune,
    hls,
    measure,
    quantise,
    remove,
    report,
    select,
    train,
    trim,
)
from fpgaprune.flow.stages.requirements import Row, package
from fpgaprune.flow.stages.stage import FlowStage

STAGES = tuple(
    module.STAGE
    for module in (train, select, finetune, certify, remove, quantise, trim, export, hls, measure, estimate, report)
)
_APT = "sudo apt install"
_EXTRAS = re.compile(r"\[([^\]]+)\]")


def stage_named(name: str) -> FlowStage[Any]:
    """Return the stage of the flow with this name."""
    return next(stage for stage in STAGES if stage.name == name)


def examine() -> list[Row]:
    """List each package or tool, in the order of the stages; those of `fit`, which runs flows, come last."""
    return [
        *(row for stage in STAGES for row in stage.needs()),
        package("fit", "distributed", "trials of fit on several processes or machines", "search"),
    ]


def missing_extras(rows: list[Row]) -> dict[str, list[str]]:
    """Map each command of pip or apt to the missing tools that it installs."""
    commands: dict[str, list[str]] = {}
    for row in rows:
        if row["found"] is None and str(row["install"]).startswith(("pip install", _APT)):
            commands.setdefault(str(row["install"]), []).append(str(row["tool"]))
    return commands


def install_command(rows: list[Row]) -> str:
    """Return one command that installs every missing tool that pip and apt have; empty if there is none."""
    commands = list(missing_extras(rows))
    extras = [name for one in commands for name in _EXTRAS.findall(one)]
    packages = [name for one in commands if one.startswith(_APT) for name in one.removeprefix(_APT).split()]
    parts = [f"pip install 'fpgaprune[{','.join(dict.fromkeys(extras))}]'"] if extras else []
    # An installation without its base cannot start: a base that is missing is here for the sake of order.
    parts = parts or (["pip install fpgaprune"] if "pip install fpgaprune" in commands else [])
    return " && ".join([*parts, *([f"{_APT} {' '.join(dict.fromkeys(packages))}"] if packages else [])])
