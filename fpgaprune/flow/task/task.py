"""`Task`: the loss, the metric and the optimizer of a flow, from the user's model or from the labels."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import keras
import numpy as np

from fpgaprune.errors import CertificateError, ConfigError
from fpgaprune.files import PARSER_ERRORS, check_names, in_a_line, read_configuration
from fpgaprune.flow.file import TrainConfig, is_function_name, named_function
from fpgaprune.flow.task.data import Dataset
from fpgaprune.flow.task.labels import check_labels
from fpgaprune.flow.task.sample_weights import training_weights
from fpgaprune.flow.task.samples import Samples, arrays_of, at, count_of, for_keras
from fpgaprune.frontends import is_onnx
from fpgaprune.network import activation_in, is_of_keras, producer, read_keras_ends
from fpgaprune.values import class_numbers

# Learning rates if neither the model nor the flow names one.
TRAIN_RATE = 0.002
FINETUNE_RATE = 0.001


@dataclass(frozen=True)
class Task:
    """How a network is trained and judged.

    Attributes:
        loss: as `model.compile` takes it.
        metrics: as `model.compile` takes them.
        loss_weights: as `model.compile` takes them.
        optimizer: class and settings of the optimizer, as Keras serializes them.
        has_rate: whether the user chose the learning rate of that optimizer.
        weights: weight of each training sample in the loss, of the data set and of its class; None if all are 1.
    """

    loss: Any
    metrics: Any
    loss_weights: Any
    optimizer: Mapping[str, Any]
    has_rate: bool
    weights: Samples | None = field(default=None, compare=False)

    def compile(
        self,
        model: keras.Model,
        rate: float | None,
        default: float,
        steps: int,
        *,
        decay: float | None = None,
        restarts: bool = False,
        weighted: bool = False,
    ) -> None:
        """Compile `model` with a new optimizer.

        Args:
            model: a model with the inputs and outputs of the task.
            rate: learning rate at the start; it falls as a cosine over `steps`. None keeps the user's own, or begins
                where her schedule does, whose steps are those of another training.
            default: learning rate if there is neither.
            steps: number of training steps.
            decay: share of each kernel that a step takes away, times the rate; biases and scales keep theirs. None
                keeps the user's own.
            restarts: whether the rate starts anew every `steps`.
            weighted: whether its metrics count each sample with its weight.
        """
        optimizer = keras.optimizers.deserialize(dict(self.optimizer))
        scheduled = isinstance(optimizer.get_config().get("learning_rate"), Mapping)
        if rate is not None or scheduled or not self.has_rate:
            schedules = keras.optimizers.schedules
            own = float(optimizer.learning_rate) if self.has_rate else 0.0
            start, span = rate or own or default, max(steps, 1)
            kind = partial(schedules.CosineDecayRestarts, t_mul=1.0) if restarts else schedules.CosineDecay
            falling = kind(start, span)
            optimizer = type(optimizer).from_config({**optimizer.get_config(), "learning_rate": falling})
        if decay is not None:
            optimizer = _with_decay(optimizer, decay, model)
        metrics = {"weighted_metrics" if weighted else "metrics": _fresh(self.metrics)}
        model.compile(optimizer, self.loss, loss_weights=self.loss_weights, **metrics)

    def compile_for_scores(self, model: keras.Model) -> None:
        """Compile `model` with the loss that criteria read; it is not to be trained."""
        self.compile(model, None, FINETUNE_RATE, steps=1)

    def training_data(self, data: Dataset) -> tuple[Samples, ...]:
        """Return the training samples of `data`, their labels, and, if there are some, their weights."""
        return (data.x_train, data.y_train) if self.weights is None else (data.x_train, data.y_train, self.weights)

    def check_loss(self, model: keras.Model, labels: Samples) -> None:
        """Check that the loss of the compiled `model` takes its outputs and `labels`.

        Raises:
            ConfigError: it does not.
        """
        if not _has_known_sizes(model):
            return
        first = arrays_of(labels)[0].reshape(count_of(labels), -1)
        other = int((first != first[0]).any(axis=1).argmax())
        one = None if self.weights is None else self._weights_of_one(2)
        try:
            pair, twice = (float(self._loss_of(model, at(labels, [0, n]), one)) for n in (other, 0))
        except Exception as error:
            # A loss of hers may raise anything, and Keras's own do for labels of another shape.
            have, give = (
                " and ".join(str(tuple(one.shape[1:])) for one in each) for each in (arrays_of(labels), model.outputs)
            )
            raise ConfigError(
                f"the loss cannot be computed of labels of shape {have} and outputs of shape {give}: "
                f"{in_a_line(error)}; give labels of another shape, or name another loss with train.loss"
            ) from error
        if one is not None and not np.isclose(pair, twice):
            raise ConfigError(
                "the loss counts a sample of weight 0, because it is one number for a whole batch; wanted a loss with "
                "a value for each sample, or data without weights of samples and classes"
            )

    def _weights_of_one(self, count: int) -> Samples:
        """Return weights of `count` samples of which the first one alone counts, in the form of those of the task."""
        found = []
        for array in arrays_of(self.weights):  # type: ignore[arg-type]
            weights = np.zeros((count, *array.shape[1:]), np.float32)
            weights[0] = 1.0
            found.append(weights)
        return tuple(found) if isinstance(self.weights, tuple) else found[0]

    @staticmethod
    def _loss_of(model: keras.Model, labels: Samples, weights: Samples | None) -> Any:
        outputs = for_keras(some_outputs(model, count_of(labels)))
        return model.compute_loss(
            y=for_keras(labels), y_pred=outputs, sample_weight=None if weights is None else for_keras(weights)
        )

    def prepare(self, model: keras.Model, labels: Samples) -> None:
        """Make the variables of the compiled model's loss and metrics, so that its training is traced once.

        Keras makes them in the first step of the training. TensorFlow traces a function that makes variables twice.
        """
        if _has_known_sizes(model):
            some, outputs = for_keras(at(labels, slice(2))), for_keras(some_outputs(model, min(2, count_of(labels))))
            weights = None if self.weights is None else for_keras(at(self.weights, slice(2)))
            model.compute_loss(y=some, y_pred=outputs, sample_weight=weights)
            model.compute_metrics(None, some, outputs, weights)
            model.reset_metrics()


def _with_decay(optimizer: Any, decay: float, model: keras.Model) -> Any:
    """Return `optimizer` with this weight decay, of kernels alone."""
    config = optimizer.get_config()
    if "weight_decay" not in config:
        raise ConfigError(
            f"finetune.weight_decay is {decay}, and the optimizer {type(optimizer).__name__} has none; leave it out"
        )
    made = type(optimizer).from_config({**config, "weight_decay": decay})
    made.exclude_from_weight_decay([variable for variable in model.trainable_variables if len(variable.shape) < 2])
    return made


def learning_rate_of(settings: TrainConfig, model: keras.Model, data: Dataset) -> tuple[str, float]:
    """Return the optimizer of the task of `model`: the name of its class, and its learning rate at the first step.

    Raises:
        ConfigError: a loss, metric or optimizer is unknown, or nothing fits the labels.
        DataError: the labels are not those that the loss takes.
    """
    task = read_task(settings, model, data)
    optimizer = keras.optimizers.deserialize(dict(task.optimizer))
    return type(optimizer).__name__, float(optimizer.learning_rate) if task.has_rate else FINETUNE_RATE


def _has_known_sizes(model: keras.Model) -> bool:
    return all(size is not None for output in model.outputs for size in output.shape[1:])


def some_outputs(model: keras.Model, samples: int) -> Samples:
    """Return outputs of `samples` samples in the shape and structure of the model's, all 0.5; an unknown size is 1."""
    shapes = [tuple(size or 1 for size in output.shape[1:]) for output in model.outputs]
    outputs = tuple(np.full((samples, *shape), 0.5, np.float32) for shape in shapes)
    return outputs if len(outputs) > 1 else outputs[0]


def read_task(settings: TrainConfig, model: keras.Model, data: Dataset) -> Task:
    """Return the task of `model`: from `settings`, else from its compilation, else from the labels of `data`.

    The last activations of the model decide whether its outputs are probabilities. Its outputs get the names that they
    have in the file of the trained network, by which losses, metrics and labels call them.

    Raises:
        ConfigError: a loss, metric or optimizer is unknown, or nothing fits the labels.
        DataError: the labels are not those that the loss takes.
    """
    _name_outputs(model, settings.model)
    said = {"loss": settings.loss, "metrics": settings.metric, "optimizer": settings.optimizer}
    own = _own_compilation(settings.model, {key for key, value in said.items() if value is None} | {"loss_weights"})
    loss = _loss(settings, own, model, data)
    check_labels(loss, model, data)
    metrics = _metrics(settings, own, model, data)
    optimizer = settings.optimizer or own.get("optimizer") or "adam"
    try:
        found = keras.optimizers.get(optimizer)
    except (ValueError, TypeError) as error:
        raise ConfigError(
            f"train.optimizer is {optimizer!r}, which Keras does not know; wanted a name as 'adam'"
        ) from error
    kinds = [kind for kind, _ in _questions(model, data)] if settings.class_weight else []
    return Task(
        loss,
        metrics,
        own.get("loss_weights") if settings.loss is None else None,
        keras.optimizers.serialize(found),
        has_rate="optimizer" in own and settings.optimizer is None,
        weights=training_weights(data.sample_weight_train, settings.class_weight, data.y_train, kinds, model),
    )


def _name_outputs(model: keras.Model, trained: Path | None) -> None:
    """Give the outputs of `model` the names that they have in the file `trained`.

    A network that rounds has a layer of its own for a softmax, whose name Keras would look up in the losses.
    """
    if trained is None or trained.is_dir() or is_onnx(trained) or not hasattr(model, "output_names"):
        return
    with suppress(CertificateError):
        names = read_keras_ends(trained).outputs
        if len(names) == len(model.outputs) and list(names) != list(model.output_names):
            model.output_names = list(names)


def _own_compilation(path: Path | None, asked: set[str]) -> dict[str, Any]:
    """Return the `asked` parts of the compilation of the model at `path`, as objects of Keras; empty if unknown."""
    if path is None or path.is_dir() or is_onnx(path):
        return {}
    read = read_configuration(path, ConfigError)
    if path.suffix != ".keras" and read.version.startswith("2."):  # an .h5 file in the words of Keras 2
        return {}
    config = read.document.get("compile_config") or {}
    if not isinstance(config, Mapping):
        raise ConfigError(f"{path} is not a whole model file: its compile_config is not a JSON object")
    found: dict[str, Any] = {}
    for key in ("optimizer", "loss", "loss_weights", "metrics"):  # in this order, so that messages are the same
        if key not in asked or config.get(key) is None:
            continue
        try:
            check_names(config[key], keras.saving.get_custom_objects().keys())
            found[key] = keras.saving.deserialize_keras_object(config[key])
            if key == "loss":
                _require_losses(found[key])
        except PARSER_ERRORS as error:
            name = {"metrics": "metric", "loss_weights": "loss"}.get(key, key)
            raise ConfigError(
                f"train.model {path} was compiled with {_named(config[key])}, which is no {name} of Keras's own; name "
                f"it in a flow file: {name} = 'file.py:function' in [train]"
            ) from error
    return found


def _require_losses(losses: object) -> None:
    """Check that each name in `losses` is a loss of Keras's; an `.h5` file holds a user's own one by name alone."""
    for loss in keras.tree.flatten(losses):
        if isinstance(loss, str):
            keras.losses.get(loss)


def _loss(settings: TrainConfig, own: Mapping[str, object], model: keras.Model, data: Dataset) -> Any:
    if settings.loss is not None:
        return _named_in(settings.loss, "train.loss", keras.losses.get)
    if own.get("loss") is not None:
        return own["loss"]
    losses = [_fitting(kind, logits)[0] for kind, logits in _questions(model, data)]
    return losses if len(losses) > 1 else losses[0]


def _metrics(settings: TrainConfig, own: Mapping[str, object], model: keras.Model, data: Dataset) -> Any:
    if settings.metric is not None:
        if settings.metric in ("loss", "r2") or is_function_name(settings.metric):  # Keras does not compute these
            return None
        return [_named_in(settings.metric, "train.metric", keras.metrics.get)] * len(model.outputs)
    if own.get("metrics"):
        return own["metrics"]
    if settings.loss is not None or own.get("loss") is not None:
        kinds = [kind for kind, _ in _questions(model, data)]
        return [["accuracy"] if kind != "regression" else [] for kind in kinds] if len(kinds) == 1 else None
    # Of several outputs the judge takes the mean of what fits each of them.
    metrics = [_fitting(kind, logits)[1] for kind, logits in _questions(model, data)]
    return metrics if any(metrics) and len(metrics) == 1 else None


def _named_in(name: str, key: str, find: Any) -> Any:
    if is_function_name(name):
        return named_function(name, key, ConfigError)
    try:
        find(name)
    except (ValueError, TypeError) as error:
        raise ConfigError(
            f"{key} is {name!r}, which Keras does not know; wanted one of its names, or a function"
        ) from error
    return name


def _questions(model: keras.Model, data: Dataset) -> list[tuple[str, bool]]:
    """Return for each output the question of its labels, and whether the output is logits."""
    found = []
    for output, labels in zip(model.outputs, arrays_of(data.y_train), strict=True):
        question = question_of(labels, tuple(output.shape))
        if question == "classes":
            class_numbers(labels, f"data {data.name!r}: the labels of output {output.name!r}", output.shape[-1])
        found.append((question, not gives_probabilities(output)))
    return found


def question_of(labels: Any, shape: tuple[int | None, ...]) -> str:
    """Return the question that `labels` ask an output of `shape`: `classes`, `one-hot`, `yes or no` or `regression`."""
    one_number = labels.ndim == len(shape) - 1 or (labels.ndim == len(shape) and labels.shape[-1] == 1)
    if labels.dtype == np.int64 and one_number and (shape[-1] or 2) > 1:
        return "classes"
    is_binary = bool(np.isin(labels[:1000], (0, 1)).all())
    if is_binary and labels.ndim == len(shape) and labels.shape[-1] == shape[-1]:
        is_one_hot = labels.shape[-1] > 1 and bool((labels[:1000].sum(axis=-1) == 1).all())
        return "one-hot" if is_one_hot else "yes or no"
    if is_binary and labels.ndim == len(shape) - 1 and shape[-1] == 1:
        return "yes or no"
    return "regression"


def _fitting(kind: str, logits: bool) -> tuple[Any, list[Any]]:
    losses, metrics = keras.losses, keras.metrics
    if kind == "classes":
        return losses.SparseCategoricalCrossentropy(from_logits=logits), ["accuracy"]
    if kind == "one-hot":
        return losses.CategoricalCrossentropy(from_logits=logits), ["accuracy"]
    if kind == "yes or no":
        threshold = 0.0 if logits else 0.5
        return losses.BinaryCrossentropy(from_logits=logits), [metrics.BinaryAccuracy("accuracy", threshold=threshold)]
    return losses.MeanSquaredError(), []


def gives_probabilities(output: object) -> bool:
    """Return whether the layer that makes `output` ends in a softmax or a sigmoid."""
    operation = producer(output)
    if hasattr(operation, "layers"):  # a nested model
        return gives_probabilities(operation.outputs[0])
    if is_of_keras(type(operation)) and type(operation).__name__ in ("Softmax", "Sigmoid"):
        return True
    known = activation_in(operation)
    return known is not None and known.name in ("softmax", "sigmoid")


def _fresh(metrics: object) -> Any:
    """Make new metrics that have counted nothing, because a metric object serves one model."""
    return keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(metrics)) if metrics else None


def _named(config: object) -> str:
    if isinstance(config, Mapping):
        inner = config.get("config")
        return str(inner if isinstance(inner, str) else config.get("registered_name") or config.get("class_name"))
    return repr(config)
