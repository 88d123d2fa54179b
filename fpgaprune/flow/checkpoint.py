"""`Checkpoint`: a training's state on disk after each epoch, from which a killed one goes on as if undisturbed."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import keras
import numpy as np
from numpy.typing import NDArray

from fpgaprune.npz_file import read_npz, write_npz

Array = NDArray[Any]


@dataclass(frozen=True)
class State:
    """Where a training was stopped.

    Attributes:
        epoch: epochs that are done, of the round where there are rounds.
        facts: further JSON data of whoever trains.
        arrays: further arrays of whoever trains, as masks.
        model, optimizer: their variables, in Keras's order; seeds of dropout are among them.
    """

    epoch: int
    facts: Mapping[str, Any] = field(default_factory=dict)
    arrays: Mapping[str, Array] = field(default_factory=dict)
    model: tuple[Array, ...] = ()
    optimizer: tuple[Array, ...] = ()

    def restore(self, model: Any) -> None:
        """The variables of `model` and of its optimizer, which is built, have the bits of this state."""
        for variables, arrays in ((model.variables, self.model), (model.optimizer.variables, self.optimizer)):
            for variable, array in zip(variables, arrays, strict=True):
                variable.assign(array)


class Checkpoint:
    """A file that holds the state of one training, and of no other: `key` says of which."""

    def __init__(self, path: Path, key: str) -> None:
        """The file at `path`, for the training that `key` describes: its settings, inputs and data."""
        self._path = path
        self._key = key

    def load(self) -> State | None:
        """The state that was saved last; None where there is none, or where it belongs to another training."""
        try:
            arrays = read_npz(self._path)
            head = json.loads(arrays.pop("head").tobytes())
        except (FileNotFoundError, ValueError, KeyError):
            # A file that was not written whole holds no state.
            return None
        if head["key"] != self._key:
            return None

        def of(kind: str) -> dict[str, Array]:
            return {name.partition("/")[2]: array for name, array in arrays.items() if name.startswith(f"{kind}/")}

        model, optimizer = (tuple(array for _, array in sorted(of(kind).items())) for kind in ("model", "optimizer"))
        return State(head["epoch"], head["facts"], of("own"), model, optimizer)

    def save(self, state: State, model: Any) -> None:
        """The file holds `state` and the variables of `model` and its optimizer."""
        head = json.dumps({"key": self._key, "epoch": state.epoch, "facts": dict(state.facts)}, sort_keys=True)
        kinds = {"model": model.variables, "optimizer": model.optimizer.variables}
        arrays = {f"own/{name}": array for name, array in state.arrays.items()}
        for kind, variables in kinds.items():
            arrays.update({f"{kind}/{number:05}": np.asarray(v) for number, v in enumerate(variables)})
        write_npz(self._path, {**arrays, "head": np.frombuffer(head.encode(), np.uint8)})

    def remove(self) -> None:
        """There is no file any more."""
        self._path.unlink(missing_ok=True)


class Resume(keras.callbacks.Callback):  # type: ignore[misc, unused-ignore]
    """Takes up a training where a `State` left it, and saves one after each epoch."""

    def __init__(self, checkpoint: Checkpoint, start: State | None, facts: Any = None) -> None:
        """A callback for `model.fit(initial_epoch=start.epoch)`.

        Args:
            checkpoint: where states are saved.
            start: what to go on from; None for a training that begins.
            facts: a function without arguments that gives the facts and arrays of a `State`.
        """
        super().__init__()
        self._checkpoint = checkpoint
        self._start = start
        self._facts: Callable[[], tuple[Mapping[str, Any], Mapping[str, Array]]] = facts or (lambda: ({}, {}))

    def on_train_begin(self, logs: Any = None) -> None:  # noqa: ARG002
        """The variables have the bits of the saved state."""
        if self._start is not None:
            self._start.restore(self.model)

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:  # noqa: ARG002
        """The state after this epoch is on disk."""
        facts, arrays = self._facts()
        self._checkpoint.save(State(epoch + 1, facts, arrays), self.model)
