"""`run_flow` runs the stages in order, each only if something that it depends on has changed."""

from __future__ import annotations

import gc
import hashlib
import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any

from fpgaprune import __version__
from fpgaprune.files import hardware_path
from fpgaprune.flow.engine.checking import check_flow, foresee_flow, read_data, with_route
from fpgaprune.flow.engine.config import parse_config
from fpgaprune.flow.engine.guide import write_guide
from fpgaprune.flow.engine.origin import Origin
from fpgaprune.flow.file import Flow, Section
from fpgaprune.flow.run import MANIFEST, Progress, RunDirectory, Silent
from fpgaprune.flow.stages import STAGES, FlowStage, StageContext, artefacts_at, fitting_data, inputs_of, installed
from fpgaprune.flow.task import Dataset, start_session
from fpgaprune.measure import LinkCheck, LockCertificate
from fpgaprune.values import MaskSet


def run_flow(config: Flow, out: Path, progress: Progress | None = None, *, replace: bool = False) -> RunDirectory:
    """Run the flow, and write every artefact to `out`; a stage with unchanged inputs and settings is skipped.

    Args:
        config: the flow.
        out: the run folder: new, or of an earlier run of the same network.
        progress: learns of stages and steps.
        replace: whether a run of another network in `out` is lost.

    Raises:
        RunError: `out` holds a run of another network.
        FpgaPruneError: the configuration does not fit its data or model (then nothing is written), the
            directory is in use, or a stage could not keep its promise (then earlier artefacts stay).
    """
    data = check_flow(config, progress)
    # Later commands read the run from other folders.
    config = config.beside(Path.cwd())
    run = RunDirectory(out)
    # The slow checks come after this error.
    run.require_unused()
    origin = Origin.of(config, data)
    if not replace:
        origin.require_same(run)
    versions = _versions()
    checked = _foreseen_key(config, versions)
    if run.manifest.get("checked") == checked:
        config = with_route(config, run.manifest["config"]["target"]["route"])
    else:
        config = foresee_flow(config, data, progress)
    with run.locked(_folders()):
        run.manifest.update(
            config=json.loads(config.model_dump_json()), seed=config.seed, versions=versions, data=data.digest()
        )
        run.manifest["checked"] = checked
        origin.record(run)
        # The manifest is written before any artefact, so that a killed run is recognised as a run.
        run.write_manifest()
        _finish(STAGES, StageContext(run, config, data, progress or Silent(), versions))
    return run


def flow_key(config: Flow, data: Dataset) -> str:
    """Return the digest of everything that decides what a run of `config` with the samples `data` makes.

    That is its settings, the content of the files that it names, the samples, and the versions of the packages.
    """
    asked = [config.seed, _versions(), data.digest(), *(stage.settings(config) for stage in STAGES)]
    return _digest(asked)


def run_again(out: Path, stage: str, sections: Mapping[str, Section], progress: Progress | None = None) -> RunDirectory:
    """Run `stage` of the finished run `out` again with other `sections`; its report and certificate show it.

    Raises:
        RunError: there is no run, or it is in use.
    """
    run = RunDirectory.existing(out)
    document = {**run.manifest["config"], **{name: section.model_dump() for name, section in sections.items()}}
    config = parse_config(document, str(run.file(MANIFEST)))
    data = fitting_data(config, read_data(config, progress))
    with run.locked(_folders()):
        run.manifest["config"] = json.loads(config.model_dump_json())
        again = [one for one in STAGES if one.name == stage or one.reads_results]
        _finish(again, StageContext(run, config, data, progress or Silent(), _versions()))
    return run


def assemble_certificate(run: RunDirectory) -> dict[str, Any]:
    """Return the certificate of `run` as JSON data: the links that its stages checked, and the digests of its masks."""
    records = run.manifest["stages"]
    links = [
        LinkCheck.from_json(link)
        for stage in STAGES
        for link in records.get(stage.name, {}).get("results", {}).get("links", [])
    ]
    wrote = {name for record in records.values() for name, digest in record["outputs"].items() if digest is not None}
    masks = [key for stage in STAGES for key in stage.masks if f"{key}.npz" in wrote]
    measured = records.get("measure", {}).get("results", {})
    return {
        "format": 1,
        "fpgaprune": __version__,
        **{key: measured[key] for key in ("modules", "bitstream") if measured.get(key)},
        **{key: MaskSet.load(run.file(f"{key}.npz")).digest() for key in masks},
        **LockCertificate(tuple(links)).to_json(),
    }


def _finish(stages: Iterable[FlowStage[Any]], context: StageContext) -> None:
    """Bring `stages` up to date, and write the certificate."""
    # Python can only unfreeze all objects: what the caller has frozen stays as it is.
    freezes = gc.get_freeze_count() == 0
    try:
        for stage in stages:
            _bring_up_to_date(stage, context, freezes)
    finally:
        if freezes:
            gc.unfreeze()
    context.run.write_certificate(assemble_certificate(context.run))
    write_guide(context.run)


def _bring_up_to_date(stage: FlowStage[Any], context: StageContext, freezes: bool) -> None:
    """Run `stage`, unless it has run with the same inputs and settings; what lives then is frozen if it `freezes`."""
    run, progress = context.run, context.progress if stage.asked(context.config) else Silent()
    earlier = STAGES[: STAGES.index(stage)]
    files = artefacts_at(earlier, run)
    names = inputs_of(stage, earlier, files)
    key = _key(stage, context, names, earlier)
    if run.is_current(stage.name, key):
        stage.tell_end(progress, stage.result_in(run), None)
        return
    progress.stage(stage.name, "running")
    started = time.monotonic()
    if stage.needs_keras:
        start_session(context.config.seed)
        if freezes:
            # The collector went through all of TensorFlow's objects again and again: a third of a small network's run.
            gc.freeze()
    result = stage.run(replace(context, key=key, network=files.network, stages=earlier))
    inputs = run.digests(names)
    seconds = time.monotonic() - started
    run.record(stage.name, key, inputs, run.digests(stage.outputs), {} if result is None else result.to_json(), seconds)
    stage.tell_end(progress, result, seconds)


def _foreseen_key(config: Flow, versions: Mapping[str, str]) -> str:
    """Return the digest of everything that decides whether the network can become the wanted hardware."""
    asked = [versions, *(stage.settings(config) for stage in STAGES if stage.foresees)]
    return _digest(asked)


def _key(stage: FlowStage[Any], context: StageContext, inputs: Iterable[str], earlier: Iterable[FlowStage[Any]]) -> str:
    run, config, records = context.run, context.config, context.run.manifest["stages"]
    content = {
        "stage": stage.name,
        "seed": config.seed,
        "settings": stage.settings(config),
        "inputs": run.digests(inputs),
        "reads": {one.name: records.get(one.name, {}).get("results") for one in earlier} if stage.reads_results else {},
        "data": run.manifest["data"],
        # A stage that an older fpgaprune ran runs again.
        "versions": context.versions,
    }
    return _digest(content)


def _digest(content: object) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _folders() -> list[str]:
    return [folder for stage in STAGES for folder in stage.folders]


def _versions() -> dict[str, str]:
    found = {"fpgaprune": f"{__version__}+{_own_digest()}"}
    # scikit-learn holds the digits.
    for package in (*(package for stage in STAGES for package in stage.packages), "scikit-learn"):
        found[package] = installed(package) or "not installed"
    return found


def _own_digest() -> str:
    """Return eight hex digits over this package's code and data: commits of one version may write other results."""
    digest = hashlib.sha256()
    # In a wheel, the data lie inside the package.
    homes = (Path(str(resources.files("fpgaprune"))), hardware_path())
    for path in sorted({path for home in homes for path in home.rglob("*") if path.suffix != ".pyc"}):
        if path.is_file():
            digest.update(path.read_bytes())
    return digest.hexdigest()[:8]
