"""`advice_on`: what would make the design of a run or of a file fit."""

from __future__ import annotations

from pathlib import Path

from fpgaprune.advice import OwnFlow, advise_on_flow
from fpgaprune.estimate import Calibration
from fpgaprune.flow.run import MANIFEST, RunDirectory, load_designs, target_of
from fpgaprune.layout import Advice


def advice_on(
    source: Path, part: str | None = None, calibrated: Calibration | None = None, clock_ns: float | None = None
) -> Advice:
    """What would make the design of `source` fit: what its run has found, unless another target is asked for.

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
