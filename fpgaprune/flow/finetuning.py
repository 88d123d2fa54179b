"""Fine-tuning as `[finetune]` says: under the locks of the selection, or under those that a schedule sets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import keras
import numpy as np

from fpgaprune.errors import ConfigError, LockError
from fpgaprune.flow.checkpoint import Checkpoint, Resume, State
from fpgaprune.flow.data import Dataset
from fpgaprune.flow.epochs import shuffled_batches, steps_in_epoch, steps_of
from fpgaprune.flow.named_function import named_function
from fpgaprune.flow.progress import Progress, epochs_shown
from fpgaprune.flow.samples import for_keras
from fpgaprune.flow.schedule_config import ConstantConfig, OneShotConfig, PolynomialConfig, RoundsConfig
from fpgaprune.flow.section import Flow
from fpgaprune.flow.sections import FinetuneConfig, SelectConfig, TargetConfig
from fpgaprune.flow.selecting import close_masks, criterion_data, score_options
from fpgaprune.flow.task import FINETUNE_RATE, Task
from fpgaprune.masks import MaskSet

Weights = Mapping[str, Any]


@dataclass(frozen=True)
class Finetuned:
    """The result of a fine-tuning.

    Attributes:
        masks: in force at the end; every locked element is zero.
        additions: the locks among them that follow from others, where those were asked for.
        changes: steps (rounds, where there are rounds) and the sparsity of units asked for at each.
    """

    masks: MaskSet
    additions: Sequence[Mapping[str, Any]] = ()
    changes: Sequence[tuple[int, float]] = ()


def finetune_model(
    model: Any,
    config: Flow,
    task: Task,
    selection: MaskSet,
    data: Dataset,
    early: Weights | None,
    progress: Progress,
    checkpoint: Checkpoint,
) -> Finetuned:
    """`model` is fine-tuned; every element that its schedule locks is zero at the end.

    Args:
        model: as trained; it is compiled here.
        config: of the flow.
        task: the loss, the metric and the optimizer.
        selection: what is locked from the first step on.
        data: training samples.
        early: weights to go back to before each round, or None.
        progress: told of epochs.
        checkpoint: holds the state after each epoch; a fine-tuning that was killed goes on from it.

    Raises:
        LockError: something moved a locked element.
        MaskError: a sparsity cannot be reached.
    """
    schedule = config[FinetuneConfig].schedule
    work = _Work(model, config, task, selection, data, progress, checkpoint)
    if isinstance(schedule, OneShotConfig):
        return work.one_shot()
    if isinstance(schedule, RoundsConfig):
        return work.rounds(schedule, early)
    return work.gradual(schedule)


class _Work:
    """One fine-tuning, with what its parts share."""

    def __init__(
        self,
        model: Any,
        config: Flow,
        task: Task,
        selection: MaskSet,
        data: Dataset,
        progress: Progress,
        checkpoint: Checkpoint,
    ) -> None:
        self._model = model
        self._config = config
        self._task = task
        self._selection = selection
        self._data = data
        self._progress = progress
        self._checkpoint = checkpoint
        self._masks = selection
        self._additions: Sequence[Mapping[str, Any]] = ()

    def one_shot(self) -> Finetuned:
        """The selection is locked all the time."""
        self._compile()
        self._train(self._selection, start=self._checkpoint.load())
        return Finetuned(self._selection)

    def gradual(self, schedule: PolynomialConfig | ConstantConfig) -> Finetuned:
        """The locks grow from step to step."""
        from fpgaprune.select import GradualLock
        from fpgaprune.train import relock

        self._compile()
        callback = GradualLock(
            schedule.over(steps_of(self._config, self._data), self._sparsity),
            lambda model, masks: relock(model, self._closed(masks)),
            base=self._selection,
            regrow_fraction=schedule.regrow_fraction,
            **self._options(),
        )

        def state() -> tuple[dict[str, Any], Mapping[str, Any]]:
            return {"history": callback.history}, callback.masks or {}

        masks = self._may_lock(callback.initial_masks(self._model))
        callbacks: list[Any] = [callback]
        start = self._checkpoint.load()
        if start is not None:
            history = [(int(step), float(asked), float(got)) for step, asked, got in start.facts["history"]]
            then = MaskSet(start.arrays) if start.arrays else None
            callback.resume(then, history, self._steps(start.epoch))
            if then is not None:
                # These locks are set here and not from the start: regrowth may free some of them later.
                again = keras.callbacks.LambdaCallback(on_train_begin=lambda _: relock(self._model, self._closed(then)))
                callbacks.append(again)
        self._train(masks, callbacks, start=start, state=state)
        return self._finished([(step, sparsity) for step, sparsity, _ in callback.history])

    def rounds(self, schedule: RoundsConfig, early: Weights | None) -> Finetuned:
        """The locks grow from round to round; one optimizer goes through all of them, its rate starts anew in each."""
        from fpgaprune.select import prune_rounds
        from fpgaprune.train import lock, unlock

        self._compile(restarts=True)
        shares = schedule.shares(self._sparsity)
        start = self._checkpoint.load()
        first = 0 if start is None else int(start.facts["round"])
        number = first

        def train(_: Any, masks: MaskSet) -> None:
            nonlocal number, start
            now, begin = number, start
            number, start = number + 1, None
            self._train(
                self._closed(masks),
                passed=now,
                rounds=len(shares),
                start=begin,
                state=lambda: ({"round": now}, masks),
            )

        # Locked from the start, so that moments survive from round to round and nothing is traced again.
        lock(self._model, self._may_lock(self._selection))
        prune_rounds(
            self._model,
            shares,
            train,
            base=self._selection,
            rewind_to=None if early is None else {path: np.asarray(array) for path, array in early.items()},
            regrow_fraction=schedule.regrow_fraction,
            within=None if start is None else (first, MaskSet(start.arrays)),
            **self._options(),
        )
        unlock(self._model)
        return self._finished(list(enumerate(shares)))

    @property
    def _sparsity(self) -> float:
        sparsity = self._config[SelectConfig].sparsity
        if not isinstance(sparsity, float):
            raise ConfigError(f"select.sparsity is {sparsity}; a schedule wants one fraction")
        return sparsity

    def _options(self) -> dict[str, Any]:
        data, config = self._data, self._config
        return {
            **score_options(
                config[SelectConfig], (data.x_train, data.y_train), config.seed, config[TargetConfig].target()
            ),
            # Regrowth needs the samples for its gradients, whatever the criterion reads.
            "data": criterion_data(config[SelectConfig], (data.x_train, data.y_train)),
        }

    def _compile(self, *, restarts: bool = False) -> None:
        steps = steps_of(self._config, self._data)
        rate = self._config[FinetuneConfig].learning_rate
        self._task.compile(self._model, rate, FINETUNE_RATE, steps, restarts=restarts)

    def _steps(self, epochs: int) -> int:
        return epochs * steps_in_epoch(self._data.x_train, self._config[FinetuneConfig].batch_size)

    def _train(
        self,
        masks: MaskSet,
        callbacks: Sequence[Any] = (),
        passed: int = 0,
        rounds: int = 1,
        start: State | None = None,
        state: Any = None,
    ) -> None:
        from fpgaprune.train import finetune, lock, unlock

        settings, data = self._config[FinetuneConfig], self._data
        if settings.epochs == 0 or settings.fit is not None:
            lock(self._model, masks)
            if settings.fit is not None:
                self._own_loop(settings.fit, masks)
            unlock(self._model)
            return
        done = 0 if start is None else start.epoch
        before = passed * settings.epochs
        shown = epochs_shown(self._progress, rounds * settings.epochs, before)
        finetune(
            self._model,
            masks,
            shuffled_batches(data.x_train, data.y_train, settings.batch_size, self._config.seed, before + done),
            epochs=settings.epochs,
            initial_epoch=done,
            steps_per_epoch=steps_in_epoch(data.x_train, settings.batch_size),
            class_weight=self._task.class_weight,
            shuffle=False,
            callbacks=[*callbacks, Resume(self._checkpoint, start, state), shown],
        )

    def _own_loop(self, name: str, masks: MaskSet) -> None:
        """The user's own loop trained the model under the lock, and moved no locked element."""
        from fpgaprune.certify import check_model

        data = self._data
        given = {key: for_keras(getattr(data, key)) for key in ("x_train", "y_train", "x_test", "y_test")}
        named_function(name, "finetune.fit", ConfigError)(self._model, given)
        for weight in check_model(self._model, masks).weights:
            if weight.violations:
                raise LockError(
                    f"finetune.fit {name!r} moved {weight.violations} locked elements of {weight.path!r}, the first "
                    f"{weight.first_violation}; let model.optimizer take the steps, which holds the lock, and leave "
                    "model.compile out"
                )

    def _closed(self, masks: MaskSet) -> MaskSet:
        self._masks, self._additions = close_masks(self._model, self._config[SelectConfig], masks)
        return self._masks

    def _may_lock(self, masks: MaskSet) -> MaskSet:
        """`masks`, and besides a free mask for each weight that a closure may come to lock."""
        from fpgaprune.weights import named_weights

        if self._config[SelectConfig].close is False:
            return masks
        trained = {id(variable) for variable in self._model.trainable_variables}
        free = {
            path: np.ones(variable.shape, dtype=bool)
            for path, variable in named_weights(self._model).items()
            if id(variable) in trained
        }
        return MaskSet({**free, **masks})

    def _finished(self, changes: Sequence[tuple[int, float]]) -> Finetuned:
        return Finetuned(self._masks, self._additions, changes)
