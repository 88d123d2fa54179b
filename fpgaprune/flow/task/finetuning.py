"""Fine-tuning under the locks of the selection, or under the locks that a schedule sets."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import keras
import numpy as np

from fpgaprune.errors import ConfigError, LockError
from fpgaprune.flow.file import (
    ConstantConfig,
    FinetuneConfig,
    Flow,
    OneShotConfig,
    PolynomialConfig,
    RoundsConfig,
    SelectConfig,
    TargetConfig,
    named_function,
)
from fpgaprune.flow.run import Progress, epochs_shown
from fpgaprune.flow.task.checkpoint import Checkpoint, Resume, State
from fpgaprune.flow.task.data import KEYS, WEIGHTS, Dataset
from fpgaprune.flow.task.epochs import shuffled_batches, steps_in_epoch, steps_of, steps_together
from fpgaprune.flow.task.samples import Samples, for_keras
from fpgaprune.flow.task.selecting import close_masks, criterion_data, score_options
from fpgaprune.flow.task.task import FINETUNE_RATE, Task
from fpgaprune.values import MaskSet

Weights = Mapping[str, Any]


@dataclass(frozen=True)
class Finetuned:
    """The result of a fine-tuning.

    Attributes:
        masks: the masks at the end; every locked element is zero.
        additions: the locks that were added because they follow from others.
        changes: for each change of the locks its step, or its round, and the sparsity that was asked for.
        losses: the loss of each epoch; empty for a training loop of the user's.
    """

    masks: MaskSet
    additions: Sequence[Mapping[str, Any]] = ()
    changes: Sequence[tuple[int, float]] = ()
    losses: Sequence[float] = ()


@dataclass
class Finetuning:
    """One fine-tuning under the schedule of `config`.

    Attributes:
        model: the trained network; it is compiled here.
        config: the flow.
        task: the loss, the metric and the optimizer.
        selection: the locks from the first step on.
        data: the training samples.
        progress: learns of each epoch.
        checkpoint: holds the state after each epoch; a killed fine-tuning continues from it.
        smaller: layer to the size of its kernel over that in the trained network, whose steps it gets.
    """

    model: Any
    config: Flow
    task: Task
    selection: MaskSet
    data: Dataset
    progress: Progress
    checkpoint: Checkpoint
    smaller: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._masks = self.selection
        self._additions: Sequence[Mapping[str, Any]] = ()
        self._losses: list[float] = []

    def run(self, early: Weights | None = None) -> Finetuned:
        """Fine-tune `model`; every element that its schedule locks is zero at the end.

        Rounds go back to the weights `early`, if they are given.

        Raises:
            LockError: something moved a locked element.
            MaskError: a sparsity cannot be reached.
        """
        schedule = self.config[FinetuneConfig].schedule
        if isinstance(schedule, OneShotConfig):
            return self._one_shot()
        if isinstance(schedule, RoundsConfig):
            return self._rounds(schedule, early)
        return self._gradual(schedule)

    def _one_shot(self) -> Finetuned:
        """Train with the selection locked from the first step to the last."""
        self._compile()
        self._train(self.selection, start=self.checkpoint.load())
        return Finetuned(self.selection, losses=self._losses)

    def _gradual(self, schedule: PolynomialConfig | ConstantConfig) -> Finetuned:
        """Train while the locks grow from step to step."""
        from fpgaprune.select import GradualLock
        from fpgaprune.train import relock

        self._compile()
        settings, steps = self.config[FinetuneConfig], self._steps(1)
        changes = schedule.over(settings.epochs, steps, self._sparsity)
        callback = GradualLock(
            changes,
            lambda model, masks: relock(model, self._closed(masks)),
            base=self.selection,
            regrow_fraction=schedule.regrow_fraction,
            **self._options(),
        )

        def state() -> tuple[dict[str, Any], Mapping[str, Any]]:
            return {"history": callback.history}, callback.masks or {}

        masks = self._may_lock(callback.initial_masks(self.model))
        callbacks: list[Any] = [callback]
        start = self.checkpoint.load()
        if start is not None:
            history = [(int(step), float(asked), float(got)) for step, asked, got in start.facts["history"]]
            then = MaskSet(start.arrays) if start.arrays else None
            callback.resume(then, history, self._steps(start.epoch))
            if then is not None:
                # These locks are set now, not before the first step, because regrowth may free some of them later.
                again = keras.callbacks.LambdaCallback(on_train_begin=lambda _: relock(self.model, self._closed(then)))
                callbacks.append(again)
        # Between two changes of the locks TensorFlow needs no callback.
        together = math.gcd(steps, changes.begin_step, changes.frequency)
        self._train(masks, callbacks, start=start, state=state, together=together)
        return self._finished([(step, sparsity) for step, sparsity, _ in callback.history])

    def _rounds(self, schedule: RoundsConfig, early: Weights | None) -> Finetuned:
        """Train in rounds, from each of which the locks grow; the optimizer stays, its learning rate starts anew."""
        from fpgaprune.select import prune_rounds
        from fpgaprune.train import lock, relock, unlock

        self._compile(restarts=True)
        shares = schedule.shares(self._sparsity)
        start = self.checkpoint.load()
        first = 0 if start is None else int(start.facts["round"])
        number = first

        def train(_: object, masks: MaskSet) -> None:
            nonlocal number, start
            now, begin = number, start
            number, start = number + 1, None
            if self.config[FinetuneConfig].epochs == 0:
                relock(self.model, self._closed(masks))
                return
            self._train(
                self._closed(masks), passed=now, rounds=len(shares), start=begin, state=lambda: ({"round": now}, masks)
            )

        # Locking now keeps the moments from round to round, and nothing is traced again.
        lock(self.model, self._may_lock(self.selection))
        prune_rounds(
            self.model,
            shares,
            train,
            base=self.selection,
            rewind_to=None if early is None else {path: np.asarray(array) for path, array in early.items()},
            regrow_fraction=schedule.regrow_fraction,
            within=None if start is None else (first, MaskSet(start.arrays)),
            **self._options(),
        )
        unlock(self.model)
        return self._finished(list(enumerate(shares)))

    @property
    def _sparsity(self) -> float:
        sparsity = self.config[SelectConfig].share
        if not isinstance(sparsity, float):
            raise ConfigError(f"select.sparsity is {sparsity}; a schedule wants one fraction")
        return sparsity

    @property
    def _samples(self) -> tuple[Samples, ...]:
        return self.task.training_data(self.data)

    def _options(self) -> dict[str, Any]:
        config = self.config
        return {
            **score_options(config[SelectConfig], self._samples, config.seed, config[TargetConfig].target()),
            # Regrowth needs the samples for its gradients, whatever the criterion reads.
            "data": criterion_data(config[SelectConfig], self._samples),
        }

    def _compile(self, *, restarts: bool = False) -> None:
        from fpgaprune.train import shorten_steps

        steps = steps_of(self.config, self.data)
        settings = self.config[FinetuneConfig]
        rate, decay = settings.learning_rate, settings.weight_decay
        self.task.compile(self.model, rate, FINETUNE_RATE, steps, decay=decay, restarts=restarts)
        shorten_steps(self.model, self.smaller)
        self.task.prepare(self.model, self.data.y_train)

    def _steps(self, epochs: int) -> int:
        return epochs * steps_in_epoch(self.data.x_train, self.config[FinetuneConfig].batch_size)

    def _train(
        self,
        masks: MaskSet,
        callbacks: Sequence[Any] = (),
        passed: int = 0,
        rounds: int = 1,
        start: State | None = None,
        state: Any = None,
        together: int | None = None,
    ) -> None:
        from fpgaprune.train import finetune, lock, unlock

        settings = self.config[FinetuneConfig]
        if settings.epochs == 0 or settings.fit is not None:
            lock(self.model, masks)
            if settings.fit is not None:
                self._own_loop(settings.fit, masks)
            unlock(self.model)
            return
        done = 0 if start is None else start.epoch
        before = passed * settings.epochs
        shown = epochs_shown(self.progress, rounds * settings.epochs, before)
        steps = self._steps(1)
        if start is not None:
            self._losses = [float(loss) for loss in start.facts["losses"]]
        # Six digits: the curve of a page needs no more.
        curve = keras.callbacks.LambdaCallback(
            on_epoch_end=lambda _, logs: self._losses.append(float(f"{logs['loss']:.6g}"))
        )

        def resumed() -> tuple[Mapping[str, Any], Mapping[str, Any]]:
            facts, arrays = ({}, {}) if state is None else state()
            return {**facts, "losses": self._losses}, arrays

        own = [] if settings.callbacks is None else self._own_callbacks(settings.callbacks)
        with steps_together(self.model, together or steps):
            finetune(
                self.model,
                masks,
                self._batches(before + done),
                epochs=settings.epochs,
                initial_epoch=done,
                steps_per_epoch=steps,
                shuffle=False,
                callbacks=[*callbacks, *own, curve, Resume(self.checkpoint, start, resumed), shown],
            )

    def _batches(self, epoch: int) -> Any:
        data, size = self.data, self.config[FinetuneConfig].batch_size
        return shuffled_batches(data.x_train, data.y_train, size, self.config.seed, epoch, self.task.weights)

    def _own_callbacks(self, name: str) -> list[Any]:
        """Return the Keras callbacks that the user's function makes for the run folder; each round has new ones."""
        made = named_function(name, "finetune.callbacks", ConfigError)(self.checkpoint.folder)
        found = list(made) if isinstance(made, list | tuple) else [made]
        for one in found:
            if not isinstance(one, keras.callbacks.Callback):
                raise ConfigError(
                    f"finetune.callbacks {name!r} returned a {type(one).__name__}; wanted a Keras callback, or a list "
                    "of them"
                )
        return found

    def _own_loop(self, name: str, masks: MaskSet) -> None:
        """Let the user's own loop train the model under the lock; it may not move a locked element."""
        from fpgaprune.certify import check_model

        data = self.data
        given = {key: for_keras(getattr(data, key)) for key in KEYS}
        weights = {key: getattr(data, key) for key in WEIGHTS[:2]}
        given |= {key: for_keras(array) for key, array in weights.items() if array is not None}
        named_function(name, "finetune.fit", ConfigError)(self.model, given)
        for weight in check_model(self.model, masks).weights:
            if weight.violations:
                raise LockError(
                    f"finetune.fit {name!r} moved {weight.violations} locked elements of {weight.path!r}, the first "
                    f"{weight.first_violation}; let model.optimizer take the steps, which holds the lock, and leave "
                    "model.compile out"
                )

    def _closed(self, masks: MaskSet) -> MaskSet:
        self._masks, self._additions = close_masks(self.model, self.config[SelectConfig], masks)
        return self._masks

    def _may_lock(self, masks: MaskSet) -> MaskSet:
        """Return `masks`, and a free mask for each other weight that a closure may lock later."""
        from fpgaprune.values import named_weights

        if self.config[SelectConfig].close is False:
            return masks
        trained = {id(variable) for variable in self.model.trainable_variables}
        free = {
            path: np.ones(variable.shape, dtype=bool)
            for path, variable in named_weights(self.model).items()
            if id(variable) in trained
        }
        return MaskSet({**free, **masks})

    def _finished(self, changes: Sequence[tuple[int, float]]) -> Finetuned:
        return Finetuned(self._masks, self._additions, changes, self._losses)
