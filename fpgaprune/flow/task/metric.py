"""`Judge`: the user's metric of outputs, of Keras or of the hardware, with its standard error."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import structs

from fpgaprune.errors import ConfigError
from fpgaprune.files import in_a_line
from fpgaprune.flow.file import TrainConfig, is_function_name, named_function
from fpgaprune.flow.run import flat_figures
from fpgaprune.flow.task.readings import Loss, Reading
from fpgaprune.flow.task.sample_weights import at_places
from fpgaprune.flow.task.samples import Samples, arrays_of, at, count_of, for_keras
from fpgaprune.flow.task.task import Task, gives_probabilities, question_of, some_outputs
from fpgaprune.values import Array

if TYPE_CHECKING:
    import keras


# Called with labels, outputs, and their weights or None.
Score = Callable[[Array, Array, Array | None], float]


def score_of(question: str, logits: bool) -> tuple[str, Score]:
    """Return the score of outputs whose labels ask `question`, as `question_of` says, with its name: 1 is the best one.

    Args:
        question: `classes`, `one-hot`, `yes or no` or `regression`.
        logits: whether the outputs are logits, no probabilities.
    """
    if question in ("classes", "one-hot"):
        return "accuracy", share_right
    if question == "yes or no":
        return "accuracy", partial(_share_answered, 0.0 if logits else 0.5)
    return "r2", r2


def share_right(labels: Array, outputs: Array, weights: Array | None = None) -> float:
    """Compute Keras's accuracy of classes. A run does so some hundred times, and Keras would take 50 ms each time."""
    classes = outputs.argmax(axis=-1)
    wanted = labels.argmax(axis=-1) if labels.shape == outputs.shape else labels.reshape(classes.shape)
    return _mean(classes == wanted, weights)


def r2(labels: Array, outputs: Array, weights: Array | None = None) -> float:
    """Return the share of the labels' variance that the outputs explain."""
    from sklearn.metrics import r2_score

    if weights is not None and (places := np.prod(weights.shape[1:])) > 1:
        # Each place of a sample counts by itself.
        rows = len(labels) * int(places)
        labels, outputs, weights = labels.reshape(rows, -1), outputs.reshape(rows, -1), weights.reshape(rows)
    flat = [array.reshape(len(array), -1) for array in (labels, outputs)]
    weights = None if weights is None else weights.reshape(len(labels))
    return float(r2_score(*flat, sample_weight=weights, multioutput="variance_weighted"))


def _share_answered(threshold: float, labels: Array, outputs: Array, weights: Array | None) -> float:
    right = (outputs > threshold) == (labels.reshape(outputs.shape) > 0.5)
    return _mean(right.mean(axis=-1), weights)


def _mean(values: Array, weights: Array | None) -> float:
    return float(
        values.mean() if weights is None else np.average(values, weights=np.broadcast_to(weights, values.shape))
    )


# For a standard error, the samples are divided into this many parts, and each part is left out once.
GROUPS = 20
# A metric of Keras with one of these words in its name is a fraction, and higher is better.
_FRACTIONS = ("acc", "auc", "precision", "recall", "f1", "fbeta", "r2", "iou", "sensitivity", "specificity")
_ACCURACIES = ("accuracy", "acc", "sparse_categorical_accuracy", "categorical_accuracy")
_ERRORS = ("r2", "mse", "mae", "mean_squared_error", "mean_absolute_error", "root_mean_squared_error")
_HIGHER = (*_FRACTIONS, "similarity")


# The metric of labels, outputs and weights.
Value = Callable[..., float]


class Judge:
    """One metric on one set of held-out samples.

    Attributes:
        name: name of the metric, as `accuracy`.
        higher_is_better: False for an error.
        is_fraction: whether the metric is printed in per cent.
        samples: number of judged samples.
    """

    def __init__(
        self, settings: TrainConfig, task: Task, model: keras.Model, labels: Samples, weights: Samples | None = None
    ) -> None:
        """Make a judge of outputs for `labels`. The metric is the first of `task`.

        Without one it is R² for a regression, and for several outputs the mean of what fits each of them. A metric with
        a value for each class counts by the mean of its values.

        Args:
            settings: the section `[train]`; its `metric` and `mode` have priority.
            task: the loss and the metrics.
            model: a Keras model with these outputs; it is compiled, and its weights do not matter.
            labels: the labels of the held-out samples.
            weights: the weights of these samples; None if all are 1.

        Raises:
            ConfigError: there is no such metric, or it cannot be computed of these labels.
        """
        self._model = model
        self._labels = labels
        self._weights = None if weights is None else at_places(weights, model.outputs)
        self.samples = count_of(labels)
        task.compile(model, None, 1.0, steps=1, weighted=weights is not None)
        self.name, self._value = self._metric(settings)
        if weights is not None:
            self.name = f"weighted {self.name}"
        lower = self.name.lower()
        self.higher_is_better = any(word in lower for word in _HIGHER)
        if settings.mode is not None:
            self.higher_is_better = settings.mode == "max"
        self.is_fraction = self.higher_is_better and any(word in lower for word in _FRACTIONS)

    def reading(self, outputs: Samples, before: Samples | None = None) -> Reading:
        """Return the metric of `outputs`, with its loss against the outputs `before` if they are given."""
        return Reading(
            name=self.name,
            value=self.value(outputs),
            error=self._error(lambda index: self._of(outputs, index)),
            samples=self.samples,
            higher_is_better=self.higher_is_better,
            is_fraction=self.is_fraction,
            **({} if before is None else structs.asdict(self.lost(before, outputs))),
        )

    def value(self, outputs: Samples) -> float:
        """Return the metric of `outputs` without its standard error, which takes less time than a `reading`."""
        return self._of(outputs, slice(None))

    def constant(self) -> float | None:
        """Return the metric of the best network that gives all samples one answer; None if that is not known.

        Of samples without weights and one output it is known for the accuracy, which is then the share of the commonest
        class, and for the error or the R² of a regression, where the answer is the mean of the labels.
        """
        labels, shape = self._labels, tuple(self._model.outputs[0].shape)
        if isinstance(labels, tuple) or self._weights is not None:
            return None
        question = question_of(labels, shape)
        if question == "regression" and self.name in _ERRORS:
            mean = np.broadcast_to(labels.mean(axis=0), labels.shape)
            return self.value(mean.reshape(len(labels), *mean.shape[1:], *[1] * (len(shape) - labels.ndim)))
        if question == "regression" or self.name not in (*_ACCURACIES, "binary_accuracy"):
            return None
        numbers = labels.argmax(axis=-1) if question == "one-hot" else labels
        return float(np.unique(numbers, return_counts=True)[1].max() / numbers.size)

    def lost(self, before: Samples, after: Samples) -> Loss:
        """Return how much worse the outputs `after` are than the outputs `before`.

        If the metric should be high, the loss is the difference: 0.01 is a point of accuracy. If the metric is an
        error, the loss is its growth as a share of the error before. Both are judged on the same samples, so the
        standard error counts only where they differ.
        """

        def lost(index: object) -> float:
            was, now = self._of(before, index), self._of(after, index)
            if self.higher_is_better:
                return was - now
            return (now - was) / abs(was) if was else float(now > was)

        return Loss(lost(slice(None)), self._error(lost))

    def _of(self, outputs: Samples, index: object) -> float:
        weights = None if self._weights is None else at(self._weights, index)
        return self._value(at(self._labels, index), at(outputs, index), weights)

    def _error(self, value: Callable[[Any], float]) -> float:
        """Return the standard error by the jackknife: each part of the samples is left out once.

        Source: Efron, "The Jackknife, the Bootstrap and Other Resampling Plans", 1982, chapter 3.
        """
        groups = min(GROUPS, self.samples)
        if groups < 2:
            return 0.0
        # Samples may be sorted, so the parts are drawn at random.
        number = np.random.default_rng(0).permutation(self.samples) % groups
        values = np.array([value(number != group) for group in range(groups)])
        return float(np.sqrt((groups - 1) * np.square(values - values.mean()).mean()))

    def _metric(self, settings: TrainConfig) -> tuple[str, Value]:
        if settings.metric is not None and is_function_name(settings.metric):
            return self._own(settings.metric)
        if settings.metric == "loss":
            return "loss", self._loss
        some = slice(0, 2)
        weights = None if self._weights is None else at(self._weights, some)
        try:
            found = self._keras_metrics(
                at(self._labels, some), some_outputs(self._model, min(2, self.samples)), weights
            )
        except Exception as error:
            # A metric of hers may raise anything, and Keras's own do for labels of another shape.
            raise ConfigError(
                f"the metric {repr(settings.metric) if settings.metric else 'of the model'} cannot be computed of "
                f"these labels: "
                f"{in_a_line(error)}; name another with train.metric"
            ) from error
        names = [name for name in found if name != "loss"]
        if settings.metric == "r2" or not names:
            return self._scores(only_r2=settings.metric == "r2")
        name = names[0]
        if name in _ACCURACIES and isinstance(self._labels, np.ndarray):
            kind = question_of(self._labels, tuple(self._model.outputs[0].shape))
            if kind in ("classes", "one-hot"):
                return name, lambda y, outputs, weights=None: share_right(
                    arrays_of(y)[0], arrays_of(outputs)[0], weights
                )
        many = np.ndim(found[name]) > 0
        return f"mean {name}" if many else name, lambda y, outputs, weights=None: float(
            np.mean(self._keras_metrics(y, outputs, weights)[name])
        )

    def _own(self, name: str) -> tuple[str, Value]:
        """Find the user's function of labels and outputs; it takes `sample_weight` where samples have weights."""
        function = named_function(name, "train.metric", ConfigError)
        if self._weights is not None and "sample_weight" not in inspect.signature(function).parameters:
            raise ConfigError(
                f"train.metric {name!r} takes no sample_weight, and the samples have weights; wanted a function "
                "(labels, outputs, sample_weight), or data without sample_weight_test"
            )

        def value(y: Samples, outputs: Samples, weights: Samples | None = None) -> float:
            more = {} if weights is None else {"sample_weight": for_keras(weights)}
            found = function(for_keras(y), for_keras(outputs), **more)
            try:
                return float(found)
            except (TypeError, ValueError) as error:
                what = f"an array of shape {np.shape(found)}" if np.ndim(found) else f"a {type(found).__name__}"
                raise ConfigError(f"train.metric {name!r} returned {what}; wanted one number") from error

        return function.__name__, value

    def _scores(self, *, only_r2: bool) -> tuple[str, Value]:
        """Return R² of one output, or the mean of one score for each output: accuracy for classes, else R²."""
        labels, outputs = arrays_of(self._labels), self._model.outputs
        kinds = [
            ("regression" if only_r2 else question_of(y, tuple(output.shape)), gives_probabilities(output))
            for y, output in zip(labels, outputs, strict=True)
        ]
        scores = [score_of("regression" if len(kinds) == 1 else kind, not sure) for kind, sure in kinds]

        def value(y: Samples, given: Samples, weights: Samples | None = None) -> float:
            each = arrays_of(weights) if weights is not None else (None,) * len(scores)
            pairs = zip(scores, arrays_of(y), arrays_of(given), each, strict=True)
            return float(np.mean([score(wanted, got, weight) for (_, score), wanted, got, weight in pairs]))

        if len(scores) == 1:
            return scores[0][0], value
        named = zip(self._model.output_names, scores, strict=True)
        return f"mean of {', '.join(f'{output} {name}' for output, (name, _) in named)}", value

    def _keras_metrics(self, y: Samples, outputs: Samples, weights: Samples | None = None) -> dict[str, Any]:
        """Return a dict: name of a metric to its value, or to its values for each class."""
        self._model.reset_metrics()
        given = None if weights is None else for_keras(weights)
        found = self._model.compute_metrics(None, for_keras(y), for_keras(outputs), given)
        return {name: np.asarray(value, dtype=np.float64) for name, value in flat_figures(found).items()}

    def _loss(self, y: Samples, outputs: Samples, weights: Samples | None = None) -> float:
        given = None if weights is None else for_keras(weights)
        return float(
            np.asarray(self._model.compute_loss(y=for_keras(y), y_pred=for_keras(outputs), sample_weight=given))
        )
