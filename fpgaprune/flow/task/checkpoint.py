"""`Checkpoint`: the state of a training on disk after its epochs. A killed training continues from it, to the bit."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import keras
import numpy as np

from fpgaprune.files import read_npz, write_npz
from fpgaprune.values import Array


@dataclass(frozen=True)
class State:
    """Where a training was stopped.

    Attributes:
        epoch: number of finished epochs, of the current round if there are rounds.
        facts: further JSON data of the training.
        arrays: further arrays of the training, as masks.
        model: the variables of the model in Keras's order; the seeds of dropout are among them.
        optimizer: the variables of the optimizer.
    """

    epoch: int
    facts: Mapping[str, Any] = field(default_factory=dict)
    arrays: Mapping[str, Array] = field(default_factory=dict)
    model: tuple[Array, ...] = ()
    optimizer: tuple[Array, ...] = ()

    def restore(self, model: keras.Model) -> None:
        """Give the variables of `model` and of its optimizer, which is built, the bits of this state."""
        for variables, arrays in ((model.variables, self.model), (model.optimizer.variables, self.optimizer)):
            for variable, array in zip(variables, arrays, strict=True):
                variable.assign(array)


class Checkpoint:
    """A file that holds the state of the training with this `key`."""

    def __init__(self, path: Path, key: str, share: float = 0.02) -> None:
        """Keep the file at `path`, for the training that `key` describes: its settings, inputs and data.

        Saving takes at most about `share` of the training's time: a small network has epochs of some milliseconds, and
        its state takes as long to write. With a `share` of 1 it is due after every epoch.
        """
        self._path = path
        self._key = key
        self._share = share
        self._due = 0.0  # s, of `time.monotonic`

    @property
    def folder(self) -> Path:
        """The folder of the file: that of the run."""
        return self._path.parent

    def load(self) -> State | None:
        """Return the last saved state; None if there is none, or if it belongs to another training."""
        try:
            arrays = read_npz(self._path)
            head = json.loads(arrays.pop("head").tobytes())
        except (FileNotFoundError, ValueError, KeyError):
            # An incomplete file holds no state.
            return None
        if head["key"] != self._key:
            return None

        def of(kind: str) -> dict[str, Array]:
            return {name.partition("/")[2]: array for name, array in arrays.items() if name.startswith(f"{kind}/")}

        model, optimizer = (tuple(array for _, array in sorted(of(kind).items())) for kind in ("model", "optimizer"))
        return State(head["epoch"], head["facts"], of("own"), model, optimizer)

    def due(self) -> bool:
        """Whether the training has gone on for long enough since the last `save`."""
        return time.monotonic() >= self._due

    def save(self, state: State, model: keras.Model) -> None:
        """Write `state` and the variables of `model` and its optimizer to the file."""
        start = time.monotonic()
        head = json.dumps({"key": self._key, "epoch": state.epoch, "facts": dict(state.facts)}, sort_keys=True)
        kinds = {"model": model.variables, "optimizer": model.optimizer.variables}
        arrays = {f"own/{name}": array for name, array in state.arrays.items()}
        for kind, variables in kinds.items():
            arrays.update({f"{kind}/{number:05}": np.asarray(v) for number, v in enumerate(variables)})
        write_npz(self._path, {**arrays, "head": np.frombuffer(head.encode(), np.uint8)})
        end = time.monotonic()
        self._due = end + (end - start) * (1 / self._share - 1)

    def remove(self) -> None:
        """Delete the file, if there is one."""
        self._path.unlink(missing_ok=True)


class Resume(keras.callbacks.Callback):  # type: ignore[misc, unused-ignore]
    """Continues a training from a `State`, and saves one after an epoch where that is due."""

    def __init__(self, checkpoint: Checkpoint, start: State | None, facts: Any = None) -> None:
        """Make a callback for `model.fit(initial_epoch=start.epoch)`; `facts` gives a `State` facts and arrays."""
        super().__init__()
        self._checkpoint = checkpoint
        self._start = start
        self._facts: Callable[[], tuple[Mapping[str, Any], Mapping[str, Array]]] = facts or (lambda: ({}, {}))

    def on_train_begin(self, logs: object = None) -> None:  # noqa: ARG002
        """Give the variables the bits of the saved state."""
        if self._start is not None:
            self._start.restore(self.model)

    def on_epoch_end(self, epoch: int, logs: object = None) -> None:  # noqa: ARG002
        """Save the state after this epoch, if that is due."""
        if not self._checkpoint.due():
            return
        facts, arrays = self._facts()
        self._checkpoint.save(State(epoch + 1, facts, arrays), self.model)
