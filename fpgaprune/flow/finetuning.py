"""Fine-tuning under a `[finetune]` section: the locks of before, or locks that a schedule sets on the way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np

from fpgaprune.errors import ConfigError
from fpgaprune.flow.classifier import compile_classifier
from fpgaprune.flow.config import FlowConfig
from fpgaprune.flow.data import Dataset
from fpgaprune.flow.progress import Progress, epochs_shown
from fpgaprune.flow.schedule_config import ConstantConfig, OneShotConfig, PolynomialConfig, RoundsConfig
from fpgaprune.flow.selecting import close_masks, score_options
from fpgaprune.masks import MaskSet

Weights = Mapping[str, Any]


@dataclass(frozen=True)
class Finetuned:
    """What fine-tuning came to.

    Attributes:
        masks: in force at the end; every locked element is zero.
        additions: the locks among them that follow from others, where those were asked for.
        changes: steps (rounds, where there are rounds) and the sparsity of units asked for at each.
    """

    masks: MaskSet
    additions: Sequence[Mapping[str, Any]] = ()
    changes: Sequence[tuple[int, float]] = ()


def finetune_model(
    model: Any, config: FlowConfig, selection: MaskSet, data: Dataset, early: Weights | None, progress: Progress
) -> Finetuned:
    """`model` is fine-tuned; what is locked at the end is at zero, and is what its schedule says.

    Args:
        model: as trained; it is compiled here.
        config: of the flow.
        selection: what is locked from the first step on.
        data: training samples.
        early: weights to go back to before each round, or None.
        progress: told of epochs.

    Raises:
        LockError: something moved a locked element.
        MaskError: a sparsity cannot be reached.
    """
    schedule = config.finetune.schedule
    work = _Work(model, config, selection, data, progress)
    if isinstance(schedule, OneShotConfig):
        return work.one_shot()
    if isinstance(schedule, RoundsConfig):
        return work.rounds(schedule, early)
    return work.gradual(schedule)


class _Work:
    """One fine-tuning, with what its parts share."""

    def __init__(self, model: Any, config: FlowConfig, selection: MaskSet, data: Dataset, progress: Progress) -> None:
        self._model = model
        self._config = config
        self._selection = selection
        self._data = data
        self._progress = progress
        self._masks = selection
        self._additions: Sequence[Mapping[str, Any]] = ()

    def one_shot(self) -> Finetuned:
        """The selection is locked all the time."""
        self._compile()
        self._train(self._selection)
        return Finetuned(self._selection)

    def gradual(self, schedule: PolynomialConfig | ConstantConfig) -> Finetuned:
        """The locks grow from step to step."""
        from fpgaprune.select.gradual import GradualLock
        from fpgaprune.train import relock

        self._compile()
        callback = GradualLock(
            schedule.over(steps_of(self._config, self._data), self._sparsity),
            lambda model, masks: relock(model, self._closed(masks)),
            base=self._selection,
            regrow_fraction=schedule.regrow_fraction,
            **self._options(),
        )
        self._train(self._may_lock(callback.initial_masks(self._model)), [callback])
        return self._finished([(step, sparsity) for step, sparsity, _ in callback.history])

    def rounds(self, schedule: RoundsConfig, early: Weights | None) -> Finetuned:
        """The locks grow from round to round; one optimizer goes through all of them, its rate starts anew in each."""
        from fpgaprune.select.rounds import prune_rounds
        from fpgaprune.train import lock, unlock

        self._compile(restarts=True)
        shares = schedule.shares(self._sparsity)
        number = count()

        def train(_: Any, masks: MaskSet) -> None:
            self._train(self._closed(masks), passed=next(number), rounds=len(shares))

        # Locked from the start, so that moments survive from round to round and nothing is traced again.
        lock(self._model, self._may_lock(self._selection))
        prune_rounds(
            self._model,
            shares,
            train,
            base=self._selection,
            rewind_to=None if early is None else {path: np.asarray(array) for path, array in early.items()},
            regrow_fraction=schedule.regrow_fraction,
            **self._options(),
        )
        unlock(self._model)
        return self._finished(list(enumerate(shares)))

    @property
    def _sparsity(self) -> float:
        sparsity = self._config.select.sparsity
        if not isinstance(sparsity, float):
            raise ConfigError(f"select.sparsity is {sparsity}; a schedule wants one fraction")
        return sparsity

    def _options(self) -> dict[str, Any]:
        data, config = self._data, self._config
        return {
            **score_options(config.select, (data.x_train, data.y_train), config.seed, config.target.target()),
            # For the gradients of regrowth, whatever the criterion reads.
            "data": (data.x_train[: config.select.samples], data.y_train[: config.select.samples]),
        }

    def _compile(self, *, restarts: bool = False) -> None:
        steps = steps_of(self._config, self._data)
        compile_classifier(self._model, self._config.finetune.learning_rate, steps, restarts=restarts)

    def _train(self, masks: MaskSet, callbacks: Sequence[Any] = (), passed: int = 0, rounds: int = 1) -> None:
        from fpgaprune.train import finetune

        settings = self._config.finetune
        shown = epochs_shown(self._progress, rounds * settings.epochs, passed * settings.epochs)
        finetune(
            self._model,
            masks,
            self._data.x_train,
            self._data.y_train,
            epochs=settings.epochs,
            batch_size=settings.batch_size,
            callbacks=[*callbacks, shown],
        )

    def _closed(self, masks: MaskSet) -> MaskSet:
        self._masks, self._additions = close_masks(self._model, self._config.select, masks)
        return self._masks

    def _may_lock(self, masks: MaskSet) -> MaskSet:
        """`masks`, and besides a free mask for each weight that a closure may come to lock."""
        from fpgaprune.weights import named_weights

        if self._config.select.close is False:
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


def steps_of(config: FlowConfig, data: Dataset) -> int:
    """Training steps of one fine-tuning, of one round where there are rounds."""
    return config.finetune.epochs * -(-len(data.x_train) // config.finetune.batch_size)
