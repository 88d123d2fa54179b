"""`Judge`: the user's metric of outputs, of Keras or of the hardware, with its standard error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpgaprune.errors import ConfigError
from fpgaprune.flow.named_function import is_function_name, named_function
from fpgaprune.flow.samples import Samples, arrays_of, at, count_of, for_keras
from fpgaprune.flow.sections import TrainConfig
from fpgaprune.flow.task import Task, question_of, some_outputs

# For a standard error, the samples are divided into this many parts, and each part is left out once.
GROUPS = 20
# A metric of Keras with one of these words in its name is a fraction, and higher is better.
_FRACTIONS = ("acc", "auc", "precision", "recall", "f1", "fbeta", "r2", "iou", "sensitivity", "specificity")
_ACCURACIES = ("accuracy", "acc", "sparse_categorical_accuracy", "categorical_accuracy")
_ERRORS = ("r2", "mse", "mae", "mean_squared_error", "mean_absolute_error", "root_mean_squared_error")
_HIGHER = (*_FRACTIONS, "similarity")


class Judge:
    """One metric on one set of held-out samples.

    Attributes:
        name: name of the metric, as `accuracy`.
        higher_is_better: False for an error.
        is_fraction: whether the metric is printed in per cent.
        samples: number of judged samples.
    """

    def __init__(self, settings: TrainConfig, task: Task, model: Any, labels: Samples) -> None:
        """A judge of outputs for `labels`. The metric is the first of `task`, or R² for a regression without a metric.

        Args:
            settings: the section `[train]`; its `metric` and `mode` have priority.
            task: the loss and the metrics.
            model: a Keras model with these outputs; it is compiled, and its weights do not matter.
            labels: the labels of the held-out samples.

        Raises:
            ConfigError: there is no such metric.
        """
        self._model = model
        self._labels = labels
        self.samples = count_of(labels)
        task.compile(model, None, 1.0, steps=1)
        self.name, self._value = self._metric(settings)
        lower = self.name.lower()
        self.higher_is_better = any(word in lower for word in _HIGHER)
        if settings.mode is not None:
            self.higher_is_better = settings.mode == "max"
        self.is_fraction = self.higher_is_better and any(word in lower for word in _FRACTIONS)

    def reading(self, outputs: Samples) -> dict[str, Any]:
        """The metric of `outputs` as JSON data: its `value`, its standard error `error`, and the kind of metric."""
        return {
            "name": self.name,
            "value": self.value(outputs),
            "error": self._error(lambda index: self._of(outputs, index)),
            "samples": self.samples,
            "higher_is_better": self.higher_is_better,
            "is_fraction": self.is_fraction,
        }

    def value(self, outputs: Samples) -> float:
        """The metric of `outputs` without its standard error, which takes less time than a `reading`."""
        return self._of(outputs, slice(None))

    def constant(self) -> float | None:
        """The metric of the best network that gives all samples one answer; None if that is not known.

        It is known for the accuracy of one output, which is then the share of the commonest class, and for the error or
        the R² of a regression, where the answer is the mean of the labels.
        """
        labels, shape = self._labels, tuple(self._model.outputs[0].shape)
        if isinstance(labels, tuple):
            return None
        question = question_of(labels, shape)
        if question == "regression" and self.name in _ERRORS:
            mean = np.broadcast_to(labels.mean(axis=0), labels.shape)
            return self.value(mean.reshape(len(labels), *mean.shape[1:], *[1] * (len(shape) - labels.ndim)))
        if question == "regression" or self.name not in (*_ACCURACIES, "binary_accuracy"):
            return None
        numbers = labels.argmax(axis=-1) if question == "one-hot" else labels
        return float(np.unique(numbers, return_counts=True)[1].max() / numbers.size)

    def lost(self, before: Samples, after: Samples) -> dict[str, Any]:
        """How much worse `after` is than `before`, as JSON data: `lost`, and its standard error `lost_error`.

        If the metric should be high, the loss is the difference: 0.01 is a point of accuracy. If the metric is an
        error, the loss is its growth as a share of the error before. Both are judged on the same samples, so the
        standard error counts only where they differ.
        """

        def lost(index: Any) -> float:
            was, now = self._of(before, index), self._of(after, index)
            if self.higher_is_better:
                return was - now
            return (now - was) / abs(was) if was else float(now > was)

        return {"lost": lost(slice(None)), "lost_error": self._error(lost)}

    def _of(self, outputs: Samples, index: Any) -> float:
        return self._value(at(self._labels, index), at(outputs, index))

    def _error(self, value: Callable[[Any], float]) -> float:
        """The standard error by the jackknife: each part of the samples is left out once.

        Source: Efron, "The Jackknife, the Bootstrap and Other Resampling Plans", 1982, chapter 3.
        """
        groups = min(GROUPS, self.samples)
        if groups < 2:
            return 0.0
        # Samples may be sorted, so the parts are drawn at random.
        number = np.random.default_rng(0).permutation(self.samples) % groups
        values = np.array([value(number != group) for group in range(groups)])
        return float(np.sqrt((groups - 1) * np.square(values - values.mean()).mean()))

    def _metric(self, settings: TrainConfig) -> tuple[str, Callable[[Samples, Samples], float]]:
        if settings.metric is not None and is_function_name(settings.metric):
            function = named_function(settings.metric, "train.metric", ConfigError)
            return function.__name__, lambda y, outputs: float(function(for_keras(y), for_keras(outputs)))
        if settings.metric == "loss":
            return "loss", self._loss
        found = self._keras_metrics(at(self._labels, slice(0, 2)), some_outputs(self._model, min(2, self.samples)))
        names = [name for name in found if name != "loss"]
        if settings.metric == "r2" or not names:
            return "r2", _r2
        if names[0] in _ACCURACIES and isinstance(self._labels, np.ndarray):
            kind = question_of(self._labels, tuple(self._model.outputs[0].shape))
            if kind in ("classes", "one-hot"):
                return names[0], _share_right
        return names[0], lambda y, outputs: self._keras_metrics(y, outputs)[names[0]]

    def _keras_metrics(self, y: Samples, outputs: Samples) -> dict[str, float]:
        self._model.reset_metrics()
        found = self._model.compute_metrics(None, for_keras(y), for_keras(outputs))
        return {name: float(np.asarray(value)) for name, value in found.items() if np.ndim(value) == 0}

    def _loss(self, y: Samples, outputs: Samples) -> float:
        return float(np.asarray(self._model.compute_loss(y=for_keras(y), y_pred=for_keras(outputs))))


def _share_right(y: Samples, outputs: Samples) -> float:
    """Keras's accuracy of classes. A run computes it some hundred times, and Keras would take 50 ms each time."""
    labels, given = arrays_of(y)[0], arrays_of(outputs)[0]
    classes = given.argmax(axis=-1)
    wanted = labels.argmax(axis=-1) if labels.shape == given.shape else labels.reshape(classes.shape)
    return float((classes == wanted).mean())


def _r2(y: Samples, outputs: Samples) -> float:
    """The share of the labels' variance that the outputs explain, over all outputs together."""
    from sklearn.metrics import r2_score

    def flat(samples: Samples) -> NDArray[Any]:
        return np.concatenate([array.reshape(len(array), -1) for array in arrays_of(samples)], axis=1)

    return float(r2_score(flat(y), flat(outputs), multioutput="variance_weighted"))
