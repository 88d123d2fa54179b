"""`run_flow`: the stages in order, each only where something that it depends on has changed."""

from __future__ import annotations

import hashlib
import json
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from importlib import resources
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from fpgaprune import __version__
from fpgaprune.certificate import LinkCheck, LockCertificate
from fpgaprune.errors import ToolError
from fpgaprune.fabric import versions_found
from fpgaprune.flow.checking import check_flow
from fpgaprune.flow.config import FlowConfig, parse_config
from fpgaprune.flow.context import Context
from fpgaprune.flow.convertible import require_convertible
from fpgaprune.flow.data import load_data
from fpgaprune.flow.digests import digest_tree
from fpgaprune.flow.hardware_sections import MeasureConfig
from fpgaprune.flow.keras_sections import MULTIPLIER
from fpgaprune.flow.progress import Progress, Silent, tell_end
from fpgaprune.flow.run_directory import MANIFEST, RunDirectory
from fpgaprune.flow.session import start_session
from fpgaprune.flow.stages.certify import certify
from fpgaprune.flow.stages.estimate import estimate
from fpgaprune.flow.stages.export import export
from fpgaprune.flow.stages.finetune import finetune
from fpgaprune.flow.stages.hls import hls
from fpgaprune.flow.stages.measure import measure
from fpgaprune.flow.stages.opinion import opinion
from fpgaprune.flow.stages.remove import remove
from fpgaprune.flow.stages.report import write_run_report
from fpgaprune.flow.stages.select import select
from fpgaprune.flow.stages.train import train
from fpgaprune.masks import MaskSet
from fpgaprune.measure import ROUTE_ECP5
from fpgaprune.report import stage_times
from fpgaprune.target import hardware_path
from fpgaprune.vendor.tools import find_tools

_PACKAGES = ("tensorflow", "keras", "numpy", "onnx", "tf2onnx", "onnxruntime", "hls4ml", "scikit-learn")


@dataclass(frozen=True)
class Stage:
    """One step of the flow.

    Attributes:
        name: as in the manifest.
        run: the work; returns JSON data for the manifest.
        inputs: artefacts read. outputs: artefacts written.
        settings: what of the configuration the result depends on.
        reads: earlier stages whose results are read.
        needs_keras: whether TensorFlow is loaded for it.
    """

    name: str
    run: Callable[[Context], dict[str, Any]]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    settings: Callable[[FlowConfig], Any]
    reads: tuple[str, ...] = ()
    needs_keras: bool = True


def _section(section: Any) -> Any:
    return json.loads(section.model_dump_json())


def _judged(config: FlowConfig) -> Any:
    """What says how outputs are judged; the file of a function of the user's may change while its name stays."""
    train = config.train
    names = [name for name in (train.metric, train.loss) if name is not None]
    return [_digest(train.model), train.metric, train.mode, train.loss, [_code(name) for name in names]]


def _code(function: str | None) -> str | None:
    """The digest of the file of a user's function; None where there is no file."""
    home = "" if function is None else function.rpartition(":")[0]
    return _digest(Path(home)) if home.endswith(".py") else None


def _report(context: Context) -> dict[str, Any]:
    earlier = (stage.name for stage in STAGES if stage.run is not _report)
    return write_run_report(context, stage_times(earlier, context.run.manifest["stages"], context.run.ran))


def _no_settings(_: FlowConfig) -> None:
    return None


STAGES = (
    Stage(
        "train",
        train,
        (),
        ("trained.keras", "trained_outputs.npz", "early.npz"),
        lambda c: [_section(c.train), _judged(c), c.finetune.rewind_epoch],
    ),
    Stage(
        "select",
        select,
        ("trained.keras",),
        ("selection.npz",),
        lambda c: [
            _section(c.select),
            _digest(c.select.masks),
            c.finetune.schedule.kind,
            _section(c.target) if c.select.granularity == MULTIPLIER else None,
        ],
    ),
    Stage(
        "finetune",
        finetune,
        ("trained.keras", "early.npz", "selection.npz"),
        ("finetuned.keras", "masks.npz"),
        # What a schedule sets on the way, it chooses as [select] says.
        lambda c: [
            _section(c.finetune),
            *(_digest(c.finetune.rewind_file), _judged(c), _code(c.finetune.fit)),
            None if c.finetune.schedule.kind == "one_shot" else [_section(c.select), _section(c.target)],
        ],
    ),
    Stage("certify", certify, ("finetuned.keras", "masks.npz"), (), _no_settings),
    Stage(
        "remove",
        remove,
        ("trained_outputs.npz", "finetuned.keras", "masks.npz"),
        ("removed.keras", "removed_masks.npz", "removal.json"),
        lambda c: _judged(c),
    ),
    Stage(
        "export",
        export,
        ("removed.keras", "removed_masks.npz"),
        ("model.onnx",),
        lambda c: [c.export.batch, c.export.opset],
    ),
    Stage(
        "hls",
        hls,
        ("trained.keras", "trained_outputs.npz", "removed.keras", "removed_masks.npz"),
        ("hls", "design.json", "design.npz", "design_trained.json", "design_trained.npz"),
        # With a compiler or a vendor's tool installed since, what was left out can be done.
        lambda c: [
            *(c.name, _section(c.hls), _section(c.target), _judged(c), shutil.which("g++") is not None),
            sorted(find_tools()) if c.hls.build else [],
        ],
    ),
    Stage(
        "opinion",
        opinion,
        ("model.onnx", "design.json", "design.npz"),
        (),
        # With qonnx installed since, what was left out can be done.
        lambda c: [_section(c.export), find_spec("qonnx") is not None],
        needs_keras=False,
    ),
    Stage(
        "measure",
        measure,
        ("design.json", "design.npz", "removed_masks.npz"),
        ("measure.json", "rtl"),
        # With a tool installed since, what was left out can be done.
        lambda c: [_section(c.measure), c.target.part, *_open_tools(c)],
        needs_keras=False,
    ),
    Stage(
        "estimate",
        estimate,
        ("design.json", "design.npz", "design_trained.json", "design_trained.npz"),
        ("estimate.json",),
        lambda c: _section(c.target),
        needs_keras=False,
    ),
    Stage(
        "report",
        _report,
        (
            "masks.npz",
            "removed_masks.npz",
            "removal.json",
            "estimate.json",
            "measure.json",
            "trained.keras",
            "removed.keras",
        ),
        ("report.html", "report.md", "report.json"),
        lambda c: [c.name, _section(c.target), _section(c.verdict), c.data.source],
        reads=("train", "select", "finetune", "certify", "remove", "export", "hls", "opinion", "measure"),
        needs_keras=False,
    ),
)


def run_flow(config: FlowConfig, out: Path, progress: Progress | None = None) -> RunDirectory:
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
    # What follows may take a while.
    run.require_unused()
    versions = _versions()
    checked = _hardware_key(config, versions)
    if run.manifest.get("checked") != checked:
        require_convertible(config, data)
    with run.locked():
        run.manifest.update(
            config=json.loads(config.model_dump_json()), seed=config.seed, versions=versions, data=data.digest()
        )
        run.manifest["checked"] = checked
        # Before any artefact: a folder with a manifest is a run, wherever it was killed.
        run.write_manifest()
        context = Context(run, config, data, progress or Silent(), versions)
        for stage in STAGES:
            _bring_up_to_date(stage, context)
        run.write_certificate(assemble_certificate(run))
    return run


def measure_run(out: Path, settings: MeasureConfig, progress: Progress | None = None) -> RunDirectory:
    """The finished run `out` has been measured as `settings` say; its report and its certificate show it.

    Raises:
        RunError: there is no run with a hardware project, or it is in use.
        ToolError: what was asked for could not be measured; the message says why. The report was written without it.
    """
    run = RunDirectory.existing(out)
    run.results("hls")
    document = {**run.manifest["config"], "measure": settings.model_dump()}
    config = parse_config(document, str(run.file(MANIFEST)))
    data = load_data(config.data.source)
    with run.locked():
        run.manifest["config"] = json.loads(config.model_dump_json())
        context = Context(run, config, data, progress or Silent(), _versions())
        for stage in STAGES:
            if stage.name in ("measure", "report"):
                _bring_up_to_date(stage, context)
        run.write_certificate(assemble_certificate(run))
    left_out = run.results("measure").get("left_out")
    if left_out is not None:
        raise ToolError(f"{out}: nothing was measured: {left_out}")
    return run


def assemble_certificate(run: RunDirectory) -> dict[str, Any]:
    """The certificate of `run` as JSON data: the links that its stages checked, and how masks were carried over."""
    records = run.manifest["stages"]
    links = [
        LinkCheck.from_json(link)
        for stage in STAGES
        for link in records.get(stage.name, {}).get("results", {}).get("links", [])
    ]
    return {
        "format": 1,
        "fpgaprune": __version__,
        "masks": MaskSet.load(run.file("masks.npz")).digest(),
        "removed_masks": MaskSet.load(run.file("removed_masks.npz")).digest(),
        **LockCertificate(tuple(links)).to_json(),
    }


def _bring_up_to_date(stage: Stage, context: Context) -> None:
    """`stage` has run with what it depends on now."""
    run, told = context.run, context.progress
    key = _key(stage, context)
    if run.is_current(stage.name, key):
        tell_end(told, stage.name, run.results(stage.name), None)
        return
    told.stage(stage.name, "running")
    started = time.monotonic()
    if stage.needs_keras:
        start_session(context.config.seed)
    results = stage.run(replace(context, key=key))
    inputs = run.digests(stage.inputs)
    seconds = time.monotonic() - started
    run.record(stage.name, key, inputs, run.digests(stage.outputs), results, seconds)
    tell_end(told, stage.name, results, seconds)


def _hardware_key(config: FlowConfig, versions: Mapping[str, str]) -> str:
    """What decides whether the network can become the hardware that is asked for."""
    asked = [config.name, _section(config.hls), _section(config.target), _digest(config.train.model), versions]
    return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()


def _key(stage: Stage, context: Context) -> str:
    run, config = context.run, context.config
    inputs = run.digests(stage.inputs)
    content = {
        "stage": stage.name,
        "seed": config.seed,
        "settings": stage.settings(config),
        "inputs": inputs,
        "reads": {name: run.manifest["stages"].get(name, {}).get("results") for name in stage.reads},
        "data": run.manifest["data"],
        # Of today: what an older fpgaprune measured of a finished run is measured again.
        "versions": context.versions,
    }
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _open_tools(config: FlowConfig) -> list[str]:
    """What the stage `measure` would run, each with its version; nothing where it asks for nothing."""
    return versions_found(ROUTE_ECP5.family) if config.measure.asks else []


def _digest(path: Path | None) -> str | None:
    return None if path is None else digest_tree(path)


def _versions() -> dict[str, str]:
    found = {"fpgaprune": f"{__version__}+{_own_digest()}"}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found


def _own_digest() -> str:
    """Eight hex digits over this package's code and data: what it writes may change between commits of one version."""
    digest = hashlib.sha256()
    # A wheel has the one within the other.
    homes = (Path(str(resources.files("fpgaprune"))), hardware_path())
    for path in sorted({path for home in homes for path in home.rglob("*") if path.suffix != ".pyc"}):
        if path.is_file():
            digest.update(path.read_bytes())
    return digest.hexdigest()[:8]
