"""`run_flow`: the stages in order, each only where something that it depends on has changed."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from importlib import resources
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from fpgaprune import __version__
from fpgaprune.certificate import LinkCheck, LockCertificate
from fpgaprune.flow.checking import check_flow, foresee_flow
from fpgaprune.flow.config import parse_config
from fpgaprune.flow.data import load_data
from fpgaprune.flow.progress import Progress, Silent, tell_end
from fpgaprune.flow.run_directory import MANIFEST, RunDirectory
from fpgaprune.flow.section import Flow, Section
from fpgaprune.flow.sections import DataConfig
from fpgaprune.flow.session import start_session
from fpgaprune.flow.stage import FlowStage, StageContext, artefacts_at, inputs_of
from fpgaprune.flow.stages import STAGES
from fpgaprune.masks import MaskSet
from fpgaprune.target import hardware_path


def run_flow(config: Flow, out: Path, progress: Progress | None = None) -> RunDirectory:
    """`out` holds every artefact of the flow; stages whose inputs and settings are unchanged did not run.

    Args:
        config: the flow.
        out: the run directory; made where it is missing.
        progress: told of stages and steps.

    Raises:
        FpgaPruneError: the configuration does not fit its data or model (nothing is written then), the
            directory is in use, or a stage could not keep its promise (earlier artefacts stay).
    """
    data = check_flow(config)
    run = RunDirectory(out)
    # A run in use is an error now, before the checks that take long.
    run.require_unused()
    versions = _versions()
    checked = _foreseen_key(config, versions)
    if run.manifest.get("checked") != checked:
        foresee_flow(config, data)
    with run.locked(_folders()):
        run.manifest.update(
            config=json.loads(config.model_dump_json()), seed=config.seed, versions=versions, data=data.digest()
        )
        run.manifest["checked"] = checked
        # The manifest is written before any artefact, so that a killed run is known as one.
        run.write_manifest()
        _finish(STAGES, StageContext(run, config, data, progress or Silent(), versions))
    return run


def run_again(
    out: Path, stage: FlowStage, sections: Mapping[str, Section], progress: Progress | None = None
) -> RunDirectory:
    """The finished run `out` has done `stage` as `sections` say instead; its report and its certificate show it.

    Raises:
        RunError: there is no run, or it is in use.
    """
    run = RunDirectory.existing(out)
    document = {**run.manifest["config"], **{name: section.model_dump() for name, section in sections.items()}}
    config = parse_config(document, str(run.file(MANIFEST)))
    data = load_data(config[DataConfig].source)
    with run.locked(_folders()):
        run.manifest["config"] = json.loads(config.model_dump_json())
        again = [one for one in STAGES if one is stage or one.reads_results]
        _finish(again, StageContext(run, config, data, progress or Silent(), _versions()))
    return run


def assemble_certificate(run: RunDirectory) -> dict[str, Any]:
    """The certificate of `run` as JSON data: the links that its stages checked, and how masks were carried over."""
    records = run.manifest["stages"]
    links = [
        LinkCheck.from_json(link)
        for stage in STAGES
        for link in records.get(stage.name, {}).get("results", {}).get("links", [])
    ]
    masks = {key: run.file(f"{key}.npz") for stage in STAGES for key in stage.masks if _wrote(run, stage, f"{key}.npz")}
    return {
        "format": 1,
        "fpgaprune": __version__,
        **{key: MaskSet.load(path).digest() for key, path in masks.items()},
        **LockCertificate(tuple(links)).to_json(),
    }


def _wrote(run: RunDirectory, stage: FlowStage, name: str) -> bool:
    return run.manifest["stages"].get(stage.name, {}).get("outputs", {}).get(name) is not None


def _finish(stages: Iterable[FlowStage], context: StageContext) -> None:
    """`stages` are up to date, and the certificate says what they found."""
    for stage in stages:
        _bring_up_to_date(stage, context)
    context.run.write_certificate(assemble_certificate(context.run))


def _bring_up_to_date(stage: FlowStage, context: StageContext) -> None:
    """`stage` has run with what it depends on now."""
    run, told = context.run, context.progress
    earlier = STAGES[: STAGES.index(stage)]
    files = artefacts_at(earlier, run)
    names = inputs_of(stage, earlier, files)
    key = _key(stage, context, names, earlier)
    if run.is_current(stage.name, key):
        tell_end(told, stage.name, run.results(stage.name), None, stage.not_asked)
        return
    told.stage(stage.name, "running")
    started = time.monotonic()
    if stage.needs_keras:
        start_session(context.config.seed)
    results = stage.run(replace(context, key=key, network=files.network, stages=earlier))
    inputs = run.digests(names)
    seconds = time.monotonic() - started
    run.record(stage.name, key, inputs, run.digests(stage.outputs), results, seconds)
    tell_end(told, stage.name, results, seconds, stage.not_asked)


def _foreseen_key(config: Flow, versions: Mapping[str, str]) -> str:
    """What decides whether the network can become the hardware that is asked for."""
    asked = [versions, *(stage.settings(config) for stage in STAGES if stage.foresee is not None)]
    return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()


def _key(stage: FlowStage, context: StageContext, inputs: Iterable[str], earlier: Iterable[FlowStage]) -> str:
    run, config = context.run, context.config
    content = {
        "stage": stage.name,
        "seed": config.seed,
        "settings": stage.settings(config),
        "inputs": run.digests(inputs),
        "reads": {one.name: _results(run, one) for one in earlier} if stage.reads_results else {},
        "data": run.manifest["data"],
        # The versions of today: a stage that an older fpgaprune ran runs again.
        "versions": context.versions,
    }
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _results(run: RunDirectory, stage: FlowStage) -> Any:
    return run.manifest["stages"].get(stage.name, {}).get("results")


def _folders() -> list[str]:
    return [folder for stage in STAGES for folder in stage.folders]


def _versions() -> dict[str, str]:
    found = {"fpgaprune": f"{__version__}+{_own_digest()}"}
    # The last one holds the digits.
    for package in (*(package for stage in STAGES for package in stage.packages), "scikit-learn"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found


def _own_digest() -> str:
    """Eight hex digits over this package's code and data: what it writes may change between commits of one version."""
    digest = hashlib.sha256()
    # In a wheel, the data lie inside the package.
    homes = (Path(str(resources.files("fpgaprune"))), hardware_path())
    for path in sorted({path for home in homes for path in home.rglob("*") if path.suffix != ".pyc"}):
        if path.is_file():
            digest.update(path.read_bytes())
    return digest.hexdigest()[:8]
