"""`FlowStage`: one step of the flow, with everything that the runner, `verify`, `doctor` and the report need."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

import msgspec
import numpy as np
from msgspec import Struct

from fpgaprune.errors import RunError
from fpgaprune.files import read_npz
from fpgaprune.flow.file import Flow, Section, TrainConfig
from fpgaprune.flow.run import MANIFEST, Progress, RunDirectory, tell_end
from fpgaprune.flow.stages.requirements import Row
from fpgaprune.flow.task import Dataset, Reading, Samples, at
from fpgaprune.measure import LinkCheck, LockCertificate
from fpgaprune.report import Check, LinkSummary
from fpgaprune.select import Addition
from fpgaprune.values import HeldValues, MaskSet

if TYPE_CHECKING:
    import keras

    from fpgaprune.flow.task import Checkpoint, Judge, Task

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
        rounds: whether the network itself rounds its data, so that no width of the flow is left to choose.
    """

    model: str
    masks: str
    types: str | None = None
    held: str | None = None
    rounds: bool = False


@dataclass(frozen=True)
class Artefacts:
    """The files of a run, and the network that a stage reads."""

    run: RunDirectory
    network: NetworkFiles | None = None

    def file(self, name: str) -> Path:
        """Return the path of the artefact `name`."""
        return self.run.file(self.named(name) or name)

    def types(self) -> dict[str, dict[str, str]]:
        """Map layer to role to hardware type for the layers that were trained under these types; empty if none was."""
        name = self.named(TYPES)
        return {} if name is None else self.run.read_json(name)

    def held(self) -> HeldValues | None:
        """Return the weights that are held at values, None where none are."""
        name = self.named(HELD)
        return HeldValues.load(self.run.file(name)) if name and self.run.file(name).is_file() else None

    def masks(self, name: str = MASKS) -> MaskSet:
        """Return the masks in artefact `name`."""
        return MaskSet.load(self.file(name))

    def named(self, name: str) -> str | None:
        """Return the file that `name` stands for: NETWORK, MASKS, TYPES and HELD are the network's, or None."""
        if self.network is None:
            return None if name == HELD else name
        network = self.network
        return {NETWORK: network.model, MASKS: network.masks, TYPES: network.types, HELD: network.held}.get(name, name)

    def proven(self, links: Links, *further: LinkCheck) -> tuple[LinkCheck, ...]:
        """Read `further` and `links` from the files, and require that every link holds.

        Raises:
            CertificateError: a link does not hold.
        """
        found = (read(self) for read in links.values())
        checks = (*further, *(check for check in found if check is not None))
        LockCertificate(checks).require()
        return checks


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
    stages: Sequence[FlowStage[Any]] = ()

    @property
    def artefacts(self) -> Artefacts:
        """The files of the run."""
        return Artefacts(self.run, self.network)

    def model(self, name: str = NETWORK) -> keras.Model:
        """Return the Keras model in artefact `name`, uncompiled."""
        from fpgaprune.frontends import load_keras

        return load_keras(self.artefacts.file(name))

    def masks(self, name: str = MASKS) -> MaskSet:
        """Return the masks in artefact `name`."""
        return self.artefacts.masks(name)

    def trained_outputs(self) -> Samples:
        """Return the outputs of the trained network for the held-out samples."""
        arrays = tuple(array for _, array in sorted(read_npz(self.run.file("trained_outputs.npz")).items()))
        return arrays if len(arrays) > 1 else arrays[0]

    def task(self, model: keras.Model) -> Task:
        """Return how `model` is trained and judged."""
        from fpgaprune.flow.task import read_task

        return read_task(self.config[TrainConfig], model, self.data)

    def judge(self, model: keras.Model, some: slice = slice(None)) -> Judge:
        """Judge of the outputs of `model` on held-out samples, or on `some` of them."""
        weights = self.data.sample_weight_test
        return self.judge_of(model, at(self.data.y_test, some), None if weights is None else at(weights, some))

    def judge_of(self, model: keras.Model, labels: Samples, weights: Samples | None = None) -> Judge:
        """Return the judge for samples with these `labels` and `weights`."""
        from fpgaprune.flow.task import Judge

        return Judge(self.config[TrainConfig], self.task(model), model, labels, weights)

    def checkpoint(self, stage: str) -> Checkpoint:
        """Return the file with the state of the training of `stage`; it ignores the state of another key."""
        from fpgaprune.flow.task import Checkpoint

        return Checkpoint(self.run.file(f"{stage}.checkpoint.npz"), self.key)


@dataclass
class Known:
    """Facts known before training: configuration, data, and `shapes` from weight path to shape; None if unknown."""

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


class StageResult(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a stage found; the manifest holds it as JSON data. A field that is None by default is left out there.

    Attributes:
        left_out: why the stage did not do its work; None if it did.
        notes: what is worth knowing of what it did.
        links: the links of the certificate that it read; all of them hold.
    """

    left_out: str | None = None
    notes: tuple[str, ...] | None = None
    links: tuple[LinkCheck, ...] | None = None

    def to_json(self) -> dict[str, object]:
        """Return the result as JSON data."""
        plain: dict[str, object] = msgspec.to_builtins(self, enc_hook=_plain)
        return plain if self.links is None else {**plain, "links": [link.to_json() for link in self.links]}


class MaskCounts(StageResult, frozen=True, kw_only=True, omit_defaults=True):
    """How much a stage has locked.

    Attributes:
        locked: number of locked elements.
        elements: number of masked elements.
        digest: SHA-256 of the masks.
        additions: the locks that were added because they follow from others.
        warnings: what is doubtful about the locks.
    """

    locked: int
    elements: int
    digest: str
    additions: tuple[Addition, ...]
    warnings: tuple[str, ...]


R = TypeVar("R", bound=StageResult)


@dataclass(frozen=True)
class OutcomeLine:
    """A line that a terminal shows at the end of a run; `warning` says that it warns of something."""

    text: str
    warning: bool = False


class FlowStage(ABC, Generic[R]):
    """One step of the flow, with everything that the runner, `verify`, `doctor` and the report need.

    Attributes:
        name: its name in the manifest.
        result: the class of its results.
        inputs: artefacts that it reads; NETWORK, MASKS, TYPES and HELD stand for files of the latest network.
        outputs: artefacts that it writes.
        sections: its tables of the flow file, with the values of the built-in flow.
        needs_keras: whether TensorFlow is loaded for it.
        reads_results: whether it reads the results of all earlier stages, and the files in `reported`.
        network: the network that later stages read, if this one wrote these files.
        may_be_left_out: whether a run is complete without its network and its links.
        masks: keys of the certificate; each is the digest of the masks in the file with this name and `.npz`.
        links: links of the certificate that `verify` reads again, by name.
        reported: artefacts that `part` reads.
        packages: packages whose versions the manifest holds.
        folders: folders in which a killed run leaves drafts.
    """

    name: str
    result: type[R]
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    sections: ClassVar[Mapping[str, Section]] = {}
    needs_keras: bool = True
    reads_results: bool = False
    network: NetworkFiles | None = None
    may_be_left_out: bool = False
    masks: tuple[str, ...] = ()
    links: ClassVar[Links] = {}
    reported: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()

    @abstractmethod
    def run(self, context: StageContext) -> R | None:
        """Run the stage; return its result, None if the flow does not ask for the stage."""

    def asked(self, config: Flow) -> bool:
        """Return whether the flow asks for anything that the stage does; if not, a watcher learns nothing of it."""
        return True

    def settings(self, config: Flow) -> object:
        """Return the part of the configuration on which the result depends, as JSON data."""
        return None

    def checks(self, known: Known) -> Iterator[Callable[[], object]]:
        """Yield functions that raise if the flow cannot succeed; they are called before anything is trained."""
        return iter(())

    def foresee(self, config: Flow, data: Dataset, model: keras.Model) -> Iterator[str]:
        """Yield problems of the untrained Keras model, line by line; found again only if `settings` change."""
        return iter(())

    def claims(self, run: RunDirectory) -> Iterator[str]:
        """Return a line for each claim about files, other than `links`, that does not hold."""
        return iter(())

    def part(self, context: StageContext, result: R) -> ReportPart:
        """Return what the stage adds to the report."""
        return ReportPart()

    def readings(self, result: R) -> Mapping[str, Reading]:
        """Map `before`, `after` or `hardware` to a reading of the metric, with the loss until then."""
        return {}

    def outcome(self, result: R) -> Iterable[OutcomeLine]:
        """Return the lines of a terminal at the end of a run."""
        return ()

    def needs(self) -> Iterable[Row]:
        """Return rows of `fpgaprune doctor` for the stage."""
        return ()

    @property
    def foresees(self) -> bool:
        """Whether the stage looks at the untrained model."""
        return type(self).foresee is not FlowStage.foresee

    def tell_end(self, progress: Progress, result: R | None, seconds: float | None) -> None:
        """Report to `progress` how the stage ended in `seconds`; None if nothing had changed."""
        if result is None:
            tell_end(progress, self.name, seconds)
        else:
            tell_end(progress, self.name, seconds, result.left_out, result.notes or ())

    def result_in(self, run: RunDirectory) -> R | None:
        """Return the stage's result in `run`; None if the flow did not ask for the stage.

        Raises:
            RunError: the stage has not run, or its record is damaged.
        """
        return self.result_from(run.results(self.name), str(run.file(MANIFEST)))

    def result_from(self, plain: Mapping[str, object], where: str) -> R | None:
        """Return the result that `plain`, its JSON data, describes; None if it is empty.

        Raises:
            RunError: the data have another form; `where` names their file.
        """
        if not plain:
            return None
        try:
            return msgspec.convert(plain, self.result, dec_hook=_decoded)
        except msgspec.ValidationError as error:
            raise RunError(
                f"{where}: the results of stage {self.name!r} are damaged: {error}; run the flow again"
            ) from error


def _plain(value: object) -> Any:
    """Return a number of NumPy's as a number of Python's."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"a {type(value).__name__} has no JSON form")


def _decoded(kind: type, plain: object) -> Any:
    """Keep JSON data as they are; a class that chooses its form by itself, as `Compared`, reads them."""
    return plain if kind is object else kind.from_json(plain)  # type: ignore[attr-defined]


def artefacts_at(stages: Iterable[FlowStage[Any]], run: RunDirectory) -> Artefacts:
    """Return the files of `run` for a stage that comes after `stages`."""
    network = None
    for stage in stages:
        wrote = run.manifest["stages"].get(stage.name, {}).get("outputs", {})
        if stage.network is not None and wrote.get(stage.network.model) is not None:
            network = stage.network
    return Artefacts(run, network)


def inputs_of(stage: FlowStage[Any], earlier: Sequence[FlowStage[Any]], files: Artefacts) -> tuple[str, ...]:
    """Return the names of the artefacts that `stage` reads; `earlier` are the stages before it."""
    reported = [name for one in earlier for name in one.reported] if stage.reads_results else []
    names = (files.named(name) for name in (*stage.inputs, *reported))
    return tuple(name for name in names if name is not None)
