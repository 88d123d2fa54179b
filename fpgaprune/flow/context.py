"""`Context`: what every stage is given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fpgaprune.flow.config import FlowConfig
from fpgaprune.flow.data import Dataset
from fpgaprune.flow.progress import Progress
from fpgaprune.flow.run_directory import RunDirectory
from fpgaprune.flow.samples import Samples, at
from fpgaprune.masks import MaskSet
from fpgaprune.npz_file import read_npz

if TYPE_CHECKING:
    from fpgaprune.flow.checkpoint import Checkpoint
    from fpgaprune.flow.metric import Judge
    from fpgaprune.flow.task import Task


@dataclass(frozen=True)
class Context:
    """What every stage is given."""

    run: RunDirectory
    config: FlowConfig
    data: Dataset
    progress: Progress
    # Of the packages, this one with a digest of its code.
    versions: Mapping[str, str] = field(default_factory=dict)
    # Of the stage that runs: what its result depends on.
    key: str = ""

    def model(self, name: str) -> Any:
        """The Keras model in artefact `name`, uncompiled."""
        from fpgaprune.flow.models import load_keras

        return load_keras(self.run.file(name))

    def trained_outputs(self) -> Samples:
        """What the trained network gives for the held-out samples."""
        arrays = tuple(array for _, array in sorted(read_npz(self.run.file("trained_outputs.npz")).items()))
        return arrays if len(arrays) > 1 else arrays[0]

    def task(self, model: Any) -> Task:
        """How `model` is trained and judged."""
        from fpgaprune.flow.task import read_task

        return read_task(self.config.train, model, self.data)

    def judge(self, model: Any, some: slice = slice(None)) -> Judge:
        """The metric on held-out samples, or on `some` of them; `model` has the outputs that are judged."""
        return self.judge_of(model, at(self.data.y_test, some))

    def judge_of(self, model: Any, labels: Samples) -> Judge:
        """The metric on samples with these `labels`."""
        from fpgaprune.flow.metric import Judge

        return Judge(self.config.train, self.task(model), model, labels)

    def checkpoint(self, stage: str) -> Checkpoint:
        """Where `stage` keeps the state of its training; of another key it finds none."""
        from fpgaprune.flow.checkpoint import Checkpoint

        return Checkpoint(self.run.file(f"{stage}.checkpoint.npz"), self.key)

    def masks(self, name: str) -> MaskSet:
        """The masks in artefact `name`."""
        return MaskSet.load(self.run.file(name))
