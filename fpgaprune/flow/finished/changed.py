"""`changed_flow`: the flow file of a run, as it is or with a change that the run's advice suggests."""

from __future__ import annotations

import tomllib
from pathlib import Path

from fpgaprune.advice import with_keys
from fpgaprune.errors import RunError
from fpgaprune.flow.engine import parse_config
from fpgaprune.flow.run import MANIFEST, RunDirectory
from fpgaprune.layout import FLOW, Advice, flow_text


def changed_flow(run_dir: Path, number: int | None = None) -> str:
    """The flow file of the run `run_dir`, with suggestion `number` of its advice; keys with their default are left out.

    Raises:
        RunError: there is no run, or it has no such suggestion, or that is no change of the flow file.
    """
    run = RunDirectory.existing(run_dir)
    document = run.manifest["config"]
    if number is not None:
        found = run.read_json("estimate.json") if run.file("estimate.json").is_file() else None
        suggested = Advice.from_json(found["advice"]).suggestions if found and found.get("advice") else ()
        if not 1 <= number <= len(suggested):
            have = f"{len(suggested)} changes" if suggested else "none"
            raise RunError(f"{run_dir} has no change {number}: its report suggests {have}")
        suggestion = suggested[number - 1]
        if suggestion.place != FLOW:
            raise RunError(f"change {number} of {run_dir} is none of the flow file; it is made in Python, on the model")
        document = with_keys(document, tomllib.loads(suggestion.change))
    config = parse_config(document, str(run.file(MANIFEST)))
    return flow_text(config.model_dump(mode="json", exclude_defaults=True, exclude_none=True)) + "\n"
