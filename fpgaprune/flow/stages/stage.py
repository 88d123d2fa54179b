"""`FlowStage`: one step of the flow, with everything that the runner, `verify`, `doctor` and the report need."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fpgaprune.certificate import LinkCheck, LockCertificate
from fpgaprune.flow.file import Flow, Section, TrainConfig
from fpgaprune.flow.run import Progress, RunDirectory
from fpgaprune.flow.stages.requirements import Row
from fpgaprune.flow.task import Dataset, Samples, at
from fpgaprune.held import HeldValues
from fpgaprune.masks import MaskSet
from fpgaprune.npz_file import read_npz
from fpgaprune.report import Check, LinkSummary

if TYPE_CHECKING:
    from fpgaprune.flow.task import Checkpoint, Judge, Task

Results = Mapping[str, Any]
Shapes = Mapping[str, tuple[int, ...]]
# Name of a link of the certificate to the function that reads it from files; None if a run has no such link.
Links = Mapping[str, "Callable[[Artefacts], LinkCheck | None]"]
# Placeholders among the inputs of a stage: the files of the network that the latest stage hands on.
NETWORK, MASKS = "the network", "the masks of the network"
TYPES, HELD = "the types of the network", "the held values of the network"


@dataclass(frozen=True)
class NetworkFiles:
    """The files in a run that hold one network.

    Attributes:
        model: its `.keras` file.
        masks: the file of its masks.
        types: the file of the hardware types under which it was trained, if it was.
        held: the file of the values at which weights are held, if some are.
    """

    model: str
    masks: str
    types: str | None = None
    held: str | None = None


@dataclass(frozen=True)
class Artefacts:
    """The files of a run, and the network that a stage reads."""

    run: RunDirectory
    network: NetworkFiles | None = None

    def file(self, name: str) -> Path:
        """The path of the artefact `name`."""
        return self.run.file(self.named(name) or name)

    def types(self) -> dict[str, dict[str, str]]:
        """Layer to role to hardware type for the layers that were trained under these types; empty if none was."""
        name = self.named(TYPES)
        return {} if name is None else self.run.read_json(name)

    def held(self) -> HeldValues | None:
        """The weights that are held at values, None where none are."""
        name = self.named(HELD)
        return HeldValues.load(self.run.file(name)) if name and self.run.file(name).is_file() else None

    def masks(self, name: str = MASKS) -> MaskSet:
        """The masks in artefact `name`."""
        return MaskSet.load(self.file(name))

    def named(self, name: str) -> str | None:
        """The file name that `name` stands for: NETWORK, MASKS, TYPES and HELD are files of the network, or None."""
        if self.network is None:
            return None if name == HELD else name
        network = self.network
        return {NETWORK: network.model, MASKS: network.masks, TYPES: network.types, HELD: network.held}.get(name, name)

    def proven(self, links: Links, *further: LinkCheck) -> dict[str, Any]:
        """`further` and `links` as JSON data for the manifest; all of them hold.

        Raises:
            CertificateError: a link does not hold.
        """
        found = (read(self) for read in links.values())
        checks = (*further, *(check for check in found if check is not None))
        LockCertificate(checks).require()
        return {"links": [check.to_json() for check in checks]}


@dataclass(frozen=True)
class StageContext:
    """What every stage gets.

    Attributes:
        run: the run folder.
        config: the flow.
        data: its samples.
        progress: learns of stages and steps.
        versions: package to version; the version of fpgaprune includes a digest of its code.
        key: digest of everything on which the result of the running stage depends.
        network: the network that earlier stages hand on.
        stages: the stages before this one.
    """

    run: RunDirectory
    config: Flow
    data: Dataset
    progress: Progress
    versions: Mapping[str, str] = field(default_factory=dict)
    key: str = ""
    network: NetworkFiles | None = None
    stages: Sequence[FlowStage] = ()

    @property
    def artefacts(self) -> Artefacts:
        """The files of the run."""
        return Artefacts(self.run, self.network)

    def model(self, name: str = NETWORK) -> Any:
        """The Keras model in artefact `name`, uncompiled."""
        from fpgaprune.frontends import load_keras

        return load_keras(self.artefacts.file(name))

    def masks(self, name: str = MASKS) -> MaskSet:
        """The masks in artefact `name`."""
        return self.artefacts.masks(name)

    def trained_outputs(self) -> Samples:
        """The outputs of the trained network for the held-out samples."""
        arrays = tuple(array for _, array in sorted(read_npz(self.run.file("trained_outputs.npz")).items()))
        return arrays if len(arrays) > 1 else arrays[0]

    def task(self, model: Any) -> Task:
        """How `model` is trained and judged."""
        from fpgaprune.flow.task import read_task

        return read_task(self.config[TrainConfig], model, self.data)

    def judge(self, model: Any, some: slice = slice(None)) -> Judge:
        """The judge for held-out samples, or for `some` of them; `model` has the outputs that are judged."""
        weights = self.data.sample_weight_test
        return self.judge_of(model, at(self.data.y_test, some), None if weights is None else at(weights, some))

    def judge_of(self, model: Any, labels: Samples, weights: Samples | None = None) -> Judge:
        """The judge for samples with these `labels` and `weights`."""
        from fpgaprune.flow.task import Judge

        return Judge(self.config[TrainConfig], self.task(model), model, labels, weights)

    def checkpoint(self, stage: str) -> Checkpoint:
        """The file with the state of the training of `stage`; it ignores the state of another key."""
        from fpgaprune.flow.task import Checkpoint

        return Checkpoint(self.run.file(f"{stage}.checkpoint.npz"), self.key)


@dataclass
class Known:
    """What is known before anything is trained; `shapes` maps weight path to shape, None is unknown."""

    config: Flow
    data: Dataset | None
    shapes: Shapes | None = None


@dataclass(frozen=True)
class ReportPart:
    """What a stage adds to the report.

    Attributes:
        fields: field of `RunReport` to its value.
        checks: comparisons.
        links: links of the certificate that could not be read.
        left_out: why the stage did not do its work; None if it did.
    """

    fields: Mapping[str, Any] = field(default_factory=dict)
    checks: Sequence[Check] = ()
    links: Sequence[LinkSummary] = ()
    left_out: str | None = None


def _nothing(*_: Any) -> Iterator[Any]:
    return iter(())


@dataclass(frozen=True)
class FlowStage:
    """One step of the flow.

    Attributes:
        name: its name in the manifest.
        run: does the work; returns JSON data for the manifest.
        inputs: artefacts that it reads; NETWORK, MASKS, TYPES and HELD stand for files of the latest network.
        outputs: artefacts that it writes.
        settings: the part of the configuration on which its result depends.
        sections: its tables of the flow file, with the values of the built-in flow.
        needs_keras: whether TensorFlow is loaded for it.
        reads_results: whether it reads the results of all earlier stages, and the files in `reported`.
        network: the network that it hands on to later stages, if it wrote these files.
        may_be_left_out: whether a run is complete without its network and its links.
        not_asked: the reason that a watcher shows if the stage has no results because the flow asks for none.
        checks: functions that raise if the flow cannot succeed; they are called before anything is trained.
        foresee: yields what is wrong with the untrained Keras model; called again only if `settings` change.
        masks: keys of the certificate; each is the digest of the masks in the file with this name and `.npz`.
        links: links of the certificate that `verify` reads again, by name.
        claims: yields a line for each other claim about files that does not hold.
        reported: artefacts that `part` reads.
        part: its part of the report.
        readings: `before`, `after` or `hardware` to a reading of the metric, with the loss until then.
        outcome: lines of the terminal at the end of a run, each with a style or "".
        packages: packages whose versions the manifest holds.
        needs: rows of `doctor`.
        folders: folders in which a killed run leaves drafts.
    """

    name: str
    run: Callable[[StageContext], dict[str, Any]]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    settings: Callable[[Flow], Any] = lambda _: None
    sections: Mapping[str, Section] = field(default_factory=dict)
    needs_keras: bool = True
    reads_results: bool = False
    network: NetworkFiles | None = None
    may_be_left_out: bool = False
    not_asked: str | None = None
    checks: Callable[[Known], Iterator[Callable[[], Any]]] = _nothing
    foresee: Callable[[Flow, Dataset, Any], Iterator[str]] | None = None
    masks: tuple[str, ...] = ()
    links: Links = field(default_factory=dict)
    claims: Callable[[RunDirectory], Iterator[str]] = _nothing
    reported: tuple[str, ...] = ()
    part: Callable[[StageContext, Results], ReportPart] = lambda *_: ReportPart()
    readings: Callable[[Results], Mapping[str, Mapping[str, Any]]] = lambda _: {}
    outcome: Callable[[Results], Iterable[tuple[str, str]]] = _nothing
    packages: tuple[str, ...] = ()
    needs: Callable[[], Iterable[Row]] = _nothing
    folders: tuple[str, ...] = ()


def artefacts_at(stages: Iterable[FlowStage], run: RunDirectory) -> Artefacts:
    """The files of `run` for a stage that comes after `stages`."""
    network = None
    for stage in stages:
        wrote = run.manifest["stages"].get(stage.name, {}).get("outputs", {})
        if stage.network is not None and wrote.get(stage.network.model) is not None:
            network = stage.network
    return Artefacts(run, network)


def inputs_of(stage: FlowStage, earlier: Sequence[FlowStage], files: Artefacts) -> tuple[str, ...]:
    """The names of the artefacts that `stage` reads; `earlier` are the stages before it."""
    reported = [name for one in earlier for name in one.reported] if stage.reads_results else []
    names = (files.named(name) for name in (*stage.inputs, *reported))
    return tuple(name for name in names if name is not None)
