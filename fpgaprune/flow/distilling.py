"""`finetune.teacher`: labels that also say what a better network answers, and the loss that takes them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import keras

from fpgaprune.errors import ConfigError, FpgaPruneError
from fpgaprune.flow.data import Dataset
from fpgaprune.flow.models import read_model
from fpgaprune.flow.samples import at, for_keras
from fpgaprune.flow.section import Flow
from fpgaprune.flow.sections import FinetuneConfig, TrainConfig
from fpgaprune.flow.task import Task, gives_probabilities, read_task

# Share of the teacher in the labels.
_SHARE = 0.8
# Samples whose labels are softened before anything is trained, to see that they fit.
_FEW = 8


def distilled(config: Flow, task: Task, data: Dataset) -> tuple[Task, Dataset]:
    """`task` and `data` for training with the labels of `finetune.teacher`; as they are if there is no teacher.

    Training then counts no metric, because a metric of class numbers cannot read these labels.

    Raises:
        ConfigError: the teacher cannot be read, or the loss is no cross entropy of classes.
        DataError: the labels are not those of classes, or do not fit the teacher.
    """
    from fpgaprune.train import soft_labels

    settings = config[FinetuneConfig]
    if settings.teacher is None:
        return task, data
    teacher, _ = read_model(settings.teacher)
    share = _SHARE if settings.distillation is None else settings.distillation
    from_logits = not gives_probabilities(teacher.outputs[0])
    labels = soft_labels(teacher, for_keras(data.x_train), data.y_train, share, from_logits=from_logits)
    return replace(task, loss=_loss_of_shares(task.loss), metrics=None), replace(data, y_train=labels)


def teacher_problems(config: Flow, data: Dataset, model: Any) -> Iterator[str]:
    """A line if `finetune.teacher` cannot teach `model`, whose last rounding may be missing."""
    path = config[FinetuneConfig].teacher
    if path is None:
        return
    try:
        teacher, _ = read_model(path)
        for what in ("inputs", "outputs"):
            own, other = ([tuple(t.shape[1:]) for t in getattr(network, what)] for network in (model, teacher))
            if own != other:
                raise ConfigError(
                    f"{path} has {what} of shape {_listed(other)}; wanted those of the network, {_listed(own)}"
                )
        few = slice(_FEW)
        some = replace(data, x_train=at(data.x_train, few), y_train=at(data.y_train, few))
        distilled(config, read_task(config[TrainConfig], model, data), some)
    except FpgaPruneError as error:
        yield f"finetune.teacher: {error}"


def _listed(shapes: list[tuple[int, ...]]) -> str:
    return ", ".join(map(str, shapes))


def _loss_of_shares(loss: Any) -> Any:
    """The loss of the same kind as `loss` for labels that are shares of classes.

    Raises:
        ConfigError: `loss` is no cross entropy of classes.
    """
    found = keras.losses.get(loss) if isinstance(loss, str) else loss
    losses = keras.losses
    if found in (losses.sparse_categorical_crossentropy, losses.categorical_crossentropy):
        return losses.CategoricalCrossentropy()
    if isinstance(found, losses.CategoricalCrossentropy):
        return found
    if isinstance(found, losses.SparseCategoricalCrossentropy):
        config = found.get_config()
        if config.get("ignore_class") is None:
            return losses.CategoricalCrossentropy(config["from_logits"], reduction=config["reduction"])
    name = getattr(found, "name", None) or getattr(found, "__name__", type(found).__name__)
    raise ConfigError(
        f"the loss is {name!r}; wanted a cross entropy of classes that ignores none, because a teacher only answers "
        "with classes: leave finetune.teacher out"
    )
