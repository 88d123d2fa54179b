"""Advice on a run or a design, and the flow file of a run with a change that its advice suggests."""

from __future__ import annotations

import shutil
import tomllib
from pathlib import Path

from fpgaprune.advice import OwnFlow, advise_on_flow, with_keys
from fpgaprune.errors import RunError
from fpgaprune.estimate import Calibration
from fpgaprune.files import is_draft, whole_folder
from fpgaprune.flow.engine import parse_config, run_flow
from fpgaprune.flow.file import Flow
from fpgaprune.flow.run import LOCK, MANIFEST, Progress, RunDirectory, load_designs, target_of
from fpgaprune.layout import FLOW, Advice, flow_text


def advice_on(
    source: Path, part: str | None = None, calibrated: Calibration | None = None, clock_ns: float | None = None
) -> Advice:
    """Return what would make the design of `source` fit: what its run has found, unless another target is asked for.

    Arguments and errors as for `price`. With another target a run's suggestions are edits of its flow for that target;
    what is not known without training again is left out.
    """
    designs = load_designs(source)
    # In a run this is the network after pruning, if it is known.
    side, design = list(designs.items())[-1]
    trained = designs.get("before") if side == "after" else None
    flow = OwnFlow()
    if (source / MANIFEST).is_file():
        run = RunDirectory.existing(source)
        given = {key: value for key, value in (("part", part), ("clock_ns", clock_ns)) if value is not None}
        found = run.read_json("estimate.json") if run.file("estimate.json").is_file() else None
        if found and found.get("advice") and not given and calibrated is None:
            return Advice.from_json(found["advice"])
        document = run.manifest["config"]
        document = {**document, "target": {**document["target"], **given}}
        flow = OwnFlow(document, given={"target": given} if given else {})
    target = target_of(design, part, clock_ns)
    return advise_on_flow(flow, design, target, trained=trained, calibrated=calibrated)


def changed_flow(run_dir: Path, number: int | None = None) -> str:
    """Write the flow file of the run `run_dir` with suggestion `number` of its advice, without keys at their default.

    Raises:
        RunError: there is no run, or it has no such suggestion, or that is no change of the flow file.
    """
    config = _changed_config(run_dir, number)
    return flow_text(config.model_dump(mode="json", exclude_defaults=True, exclude_none=True)) + "\n"


def apply_change(run_dir: Path, number: int, out: Path | None = None, progress: Progress | None = None) -> RunDirectory:
    """Run the flow with suggestion `number` of a run's advice, in a new folder beside it: RUN-NUMBER.

    It begins with a copy of that run, so that only the stages run that the change concerns. If the folder exists, that
    run goes on.

    Raises:
        RunError: as for `changed_flow`, or the folder holds something else.
    """
    folder = beside_run(run_dir, number) if out is None else out
    config = _changed_config(run_dir, number)
    if not folder.exists():
        with whole_folder(folder) as draft:
            shutil.copytree(run_dir, draft, dirs_exist_ok=True, ignore=_of_no_run)
    return run_flow(config, folder, progress)


def beside_run(run_dir: Path, number: int) -> Path:
    """Return the folder of the run with change `number` of the run `run_dir`."""
    # The name of `.` is that of the folder.
    path = run_dir if run_dir.name not in ("", "..") else run_dir.resolve()
    return path.with_name(f"{path.name}-{number}")


def _of_no_run(_: str, names: list[str]) -> list[str]:
    """Return those of `names` that a run does not take over: its lock, and drafts of a killed process."""
    return [name for name in names if name == LOCK or is_draft(name)]


def _changed_config(run_dir: Path, number: int | None) -> Flow:
    run = RunDirectory.existing(run_dir)
    document = run.manifest["config"]
    if number is not None:
        found = run.read_json("estimate.json") if run.file("estimate.json").is_file() else None
        suggested = Advice.from_json(found["advice"]).suggestions if found and found.get("advice") else ()
        if not 1 <= number <= len(suggested):
            have = f"{len(suggested)} changes" if suggested else "none; fpgaprune fit looks for a smaller network"
            raise RunError(f"{run_dir} has no change {number}: its report suggests {have}")
        suggestion = suggested[number - 1]
        if suggestion.place != FLOW:
            raise RunError(f"change {number} of {run_dir} is none of the flow file; it is made in Python, on the model")
        document = with_keys(document, tomllib.loads(suggestion.change))
    return parse_config(document, str(run.file(MANIFEST)))
