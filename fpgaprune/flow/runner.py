"""`run_flow`: the stages in order, each only where something that it depends on has changed."""

from __future__ import annotations

import hashlib
import json
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib import resources
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from fpgaprune import __version__
from fpgaprune.certificate import LinkCheck, LockCertificate
from fpgaprune.errors import CertificateError, ConfigError, MaskError
from fpgaprune.files import digest_file
from fpgaprune.flow import stages
from fpgaprune.flow.config import FlowConfig
from fpgaprune.flow.data import Dataset, load_data
from fpgaprune.flow.network import small_cnn_shapes
from fpgaprune.flow.progress import Progress, Silent
from fpgaprune.flow.reporting import write_run_report
from fpgaprune.flow.run_directory import RunDirectory
from fpgaprune.flow.session import start_session
from fpgaprune.keras_file import read_keras_shapes, read_keras_weights
from fpgaprune.masks import MaskSet
from fpgaprune.vendor.tools import find_tools
from fpgaprune.weights import match_paths

_PACKAGES = ("tensorflow", "keras", "numpy", "onnx", "tf2onnx", "onnxruntime", "hls4ml", "scikit-learn")
CERTIFICATE = "certificate.json"


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
    run: Callable[[stages.Context], dict[str, Any]]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    settings: Callable[[FlowConfig], Any]
    reads: tuple[str, ...] = ()
    needs_keras: bool = True


def _section(section: Any) -> Any:
    return json.loads(section.model_dump_json())


def _no_settings(_: FlowConfig) -> None:
    return None


STAGES = (
    Stage("train", stages.train, (), ("trained.keras",), lambda c: [_section(c.train), _digest(c.train.model)]),
    Stage(
        "select",
        stages.select,
        ("trained.keras",),
        ("masks.npz",),
        lambda c: [_section(c.select), _digest(c.select.masks)],
    ),
    Stage(
        "finetune",
        stages.finetune,
        ("trained.keras", "masks.npz"),
        ("finetuned.keras",),
        lambda c: _section(c.finetune),
    ),
    Stage("certify", stages.certify, ("finetuned.keras", "masks.npz"), (), _no_settings),
    Stage(
        "remove",
        stages.remove,
        ("finetuned.keras", "masks.npz"),
        ("removed.keras", "removed_masks.npz", "removal.json"),
        _no_settings,
    ),
    Stage("export", stages.export, ("removed.keras", "removed_masks.npz"), ("model.onnx",), _no_settings),
    Stage(
        "hls",
        stages.hls,
        ("trained.keras", "removed.keras", "removed_masks.npz"),
        ("hls", "design.json", "design.npz", "design_trained.json", "design_trained.npz"),
        # With a compiler or a vendor's tool installed since, what was left out can be done.
        lambda c: [
            *(c.name, _section(c.hls), _section(c.target), shutil.which("g++") is not None),
            sorted(find_tools()) if c.hls.build else [],
        ],
    ),
    Stage(
        "estimate",
        stages.estimate,
        ("design.json", "design.npz", "design_trained.json", "design_trained.npz"),
        ("estimate.json",),
        lambda c: _section(c.target),
        needs_keras=False,
    ),
    Stage(
        "report",
        write_run_report,
        ("masks.npz", "removed_masks.npz", "removal.json", "estimate.json", "trained.keras", "removed.keras"),
        ("report.html", "report.md", "report.json"),
        lambda c: [c.name, _section(c.target), c.data.source],
        reads=("train", "select", "finetune", "certify", "remove", "export", "hls"),
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
    told = progress or Silent()
    data = check_flow(config)
    run = RunDirectory(out)
    with run.locked():
        run.manifest.update(
            config=json.loads(config.model_dump_json()), seed=config.seed, versions=_versions(), data=data.digest()
        )
        context = stages.Context(run, config, data, told)
        for stage in STAGES:
            key = _key(stage, context)
            if run.is_current(stage.name, key):
                told.stage(stage.name, "unchanged")
                continue
            told.stage(stage.name, "running")
            started = time.monotonic()
            if stage.needs_keras:
                start_session(config.seed)
            results = stage.run(context)
            inputs = run.digests(stage.inputs)
            seconds = time.monotonic() - started
            run.record(stage.name, key, inputs, run.digests(stage.outputs), results, seconds)
            told.stage(stage.name, "done")
        _write_certificate(run)
    return run


def check_flow(config: FlowConfig) -> Dataset:
    """The flow's data, where configuration, data and weights fit one another; nothing is written.

    Raises:
        ConfigError: a slice or glob matches no weight, an index is out of range, or the model file cannot be read.
        DataError: the data cannot be read or do not fit.
    """
    data = load_data(config.data.source)
    shapes = _weight_shapes(config, data)
    try:
        MaskSet.from_slices(shapes, config.select.locks)
        for pattern in config.select.patterns:
            match_paths(pattern, shapes)
        if config.select.masks is not None:
            MaskSet.load(config.select.masks).check_fits(shapes)
    except MaskError as error:
        raise ConfigError(f"select: {error}") from error
    return data


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


def _write_certificate(run: RunDirectory) -> None:
    stages.write_json(run, CERTIFICATE, assemble_certificate(run))


def _key(stage: Stage, context: stages.Context) -> str:
    run, config = context.run, context.config
    inputs = run.digests(stage.inputs)
    content = {
        "stage": stage.name,
        "seed": config.seed,
        "settings": stage.settings(config),
        "inputs": inputs,
        "reads": {name: run.manifest["stages"].get(name, {}).get("results") for name in stage.reads},
        "data": run.manifest["data"],
        "versions": run.manifest["versions"],
    }
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _weight_shapes(config: FlowConfig, data: Dataset) -> dict[str, tuple[int, ...]]:
    if config.train.model is None:
        shape = data.x_train.shape[1:]
        if len(shape) != 3 or min(shape[:2]) < 6:
            raise ConfigError(
                f"data {data.name!r} has samples of shape {shape}; the built-in network takes (height, width, "
                "channels) of 6 x 6 or more: name a model with train.model"
            )
        return small_cnn_shapes(shape, data.classes)
    try:
        sample, classes = read_keras_shapes(config.train.model)
        shapes = {path: array.shape for path, array in read_keras_weights(config.train.model).items()}
    except CertificateError as error:
        raise ConfigError(f"train.model: {error}") from error
    where = f"train.model {config.train.model}"
    if sample is not None and not _fits(data.x_train.shape[1:], sample):
        raise ConfigError(f"{where} takes samples of shape {sample}; data {data.name!r} has {data.x_train.shape[1:]}")
    if classes is not None and data.classes > classes:
        raise ConfigError(f"{where} has {classes} outputs; data {data.name!r} has {data.classes} classes")
    return shapes


def _fits(shape: tuple[int, ...], wanted: tuple[int | None, ...]) -> bool:
    return len(shape) == len(wanted) and all(w in (None, size) for size, w in zip(shape, wanted, strict=True))


def _digest(path: Path | None) -> str | None:
    return None if path is None else digest_file(path)


def _versions() -> dict[str, str]:
    found = {"fpgaprune": f"{__version__}+{_own_digest()}"}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found


def _own_digest() -> str:
    """Eight hex digits over this package's code: what it writes may change between two commits of one version."""
    package = Path(str(resources.files("fpgaprune")))
    digest = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:8]
