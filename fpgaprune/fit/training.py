"""`Training`: how long the networks of a search are trained, and in which steps."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from fpgaprune.fit.answer import FitPoint
from fpgaprune.fit.knobs import Knobs
from fpgaprune.flow import Dataset, FinetuneConfig, Flow, TrainConfig, count_of

# A first trial trains for this part of the epochs of a usual one.
_SHORT = 4
# Least training steps of a usual trial. With few samples an epoch takes less time than a trial takes beside it.
_STEPS = 4000
# At a higher rate: most samples in a step, least steps in an epoch, and epochs.
_LARGEST, _FEWEST, _EPOCHS = 256, 64, 32
# At a higher rate so many times the epochs keep 0.2 to 0.7 points where a network has little room left:
# docs/measurements/fit_training.md, "How long a network is trained".
_LONGER = 3
# The rate at a batch of 32, as a multiple of the network's own, and the highest rate. A network that rounds and loses
# weights is trained anew, not only refined: docs/measurements/fit_training.md, "How a trial is trained".
_FASTER, _HIGHEST, _USUAL = 5.0, 0.015, 1e-3
_ADAPTIVE = {"Adam", "AdamW", "Nadam", "RMSprop"}
# A whole training is expected to take so long at most on one core: more epochs of a large network would leave a search
# time for a few trials only. It has so many epochs at least.
_SECONDS, _LEAST_EPOCHS = 120.0, 4
# A search has time for at least so many whole trainings, and takes so many seconds beside them: TensorFlow's start, and
# the other stages of its first trials and of its final run.
_TRAININGS, _BESIDE = 5, 40.0
# Seconds for one sample of one epoch, for each value that a layer hands on, and for each product.
_PER_VALUE, _PER_PRODUCT = 15e-9, 3e-10
# Values of all layers that a step of training holds in memory.
_VALUES = 2**24


@dataclass(frozen=True)
class Training:
    """How the networks of a search are trained.

    Attributes:
        short: epochs of a first trial.
        whole: epochs of a usual trial.
        long: epochs of the best network, and of those around it.
        settings: sections of a flow file to the keys that ask for the rest; what the flow says goes before.
        anew: whether a whole training of other knobs starts from the trained network. Else, as all short ones, it
            starts from the last good network of the search: at a low rate it would not find the way.
        wanted: epochs of a usual trial if they took no time.
        seconds: what a whole training may take in the time of the search.
    """

    short: int
    whole: int
    long: int
    settings: Mapping[str, Any] = field(default_factory=dict)
    anew: bool = False
    wanted: int = 0
    seconds: float = _SECONDS

    @property
    def is_cut(self) -> bool:
        """Whether the network is so large that it is trained for fewer epochs than wanted."""
        return self.long < self.wanted

    def final_epochs(self) -> Iterator[int]:
        """Epochs that the final run may have, from most to fewest: `long`, its halves, and at the end `whole`."""
        epochs = self.long
        while epochs > self.whole:
            yield epochs
            epochs //= 2
        yield self.whole

    def of(self, data: Dataset, model: Any) -> Training:
        """The same training for `model`: for as many epochs as it can be, of those that are wanted."""
        whole = _affordable(self.wanted, data, model, self.seconds)
        long = _affordable(_LONGER * self.wanted if self.anew else self.wanted, data, model, _SECONDS)
        return replace(self, short=_short(whole), whole=whole, long=long)

    def starts_from(self, good: FitPoint | None, knobs: Knobs, epochs: int) -> FitPoint | None:
        """Where a training of `knobs` starts if `good` is the last good network; None is the trained one."""
        goes_on = good is not None and Knobs.of(good.settings) == knobs
        return None if self.anew and epochs >= self.whole and not goes_on else good

    @classmethod
    def asked(cls, config: Flow, data: Dataset, model: Any, seconds: float = _SECONDS) -> Training:
        """As the flow says; what it leaves out is its default, but for more epochs of few samples.

        Epochs that the flow says are kept, whatever they take; others take at most `seconds`, as far as it is known.
        """
        settings = config[FinetuneConfig]
        if "epochs" in settings.model_fields_set:
            return cls(_short(settings.epochs), settings.epochs, settings.epochs, wanted=settings.epochs)
        steps = -(-count_of(data.x_train) // settings.batch_size)
        return cls(0, 0, 0, wanted=max(settings.epochs, -(-_STEPS // steps)), seconds=seconds).of(data, model)

    @classmethod
    def at_a_higher_rate(cls, config: Flow, data: Dataset, model: Any, seconds: float = _SECONDS) -> Training | None:
        """A higher rate, which falls, and more samples in a step; None if this is not for them.

        What the flow says of epochs, batches, rates or of a training loop of its own is kept. Optimizers that do not
        scale their steps, as SGD, keep their rate. So do few samples, of which a network would forget the others.
        """
        from fpgaprune.flow import learning_rate_of

        settings = config[FinetuneConfig]
        kind, rate = learning_rate_of(config[TrainConfig], model, data)
        if settings.model_fields_set & {"epochs", "batch_size", "learning_rate", "fit"} or kind not in _ADAPTIVE:
            return None
        usual, count = settings.batch_size, count_of(data.x_train)
        room = min(count // _FEWEST, _VALUES // max(_values(model), 1), _LARGEST)
        batch_size = 2 ** int(math.log2(max(room, 1)))
        if batch_size <= usual:
            return None
        # A rate that fell while the network was trained says little.
        rate = max(rate, min(max(rate, _USUAL) * _FASTER * math.sqrt(batch_size / usual), _HIGHEST))
        asked = {
            "finetune": {"batch_size": batch_size, "learning_rate": rate},
            "quantise": {"learning_rate": rate},
        }
        return cls(0, 0, 0, asked, anew=True, wanted=_EPOCHS, seconds=seconds).of(data, model)


def seconds_of_training(minutes: float) -> float:
    """What a whole training may take in a search of so many `minutes`."""
    return min(max(60 * minutes - _BESIDE, 0.0) / _TRAININGS, _SECONDS)


def expected_seconds(model: Any, data: Dataset, epochs: int) -> float:
    """What a training of `model` for `epochs` is expected to take, before any has been measured."""
    return epochs * count_of(data.x_train) * _seconds(model)


def most_samples(model: Any) -> int:
    """Training samples of a trial of `model`, so that its least epochs end in time."""
    return max(int(_SECONDS / _LEAST_EPOCHS / _seconds(model)), 1)


def _short(whole: int) -> int:
    """Epochs of a first trial, if the best network is trained for `whole`."""
    return max(whole // _SHORT, min(whole, 2))


def _affordable(epochs: int, data: Dataset, model: Any, seconds: float) -> int:
    """At most `epochs`, as many as take `seconds`; a few in any case."""
    most = int(seconds / expected_seconds(model, data, 1))
    return max(min(epochs, most), min(epochs, _LEAST_EPOCHS))


def _seconds(model: Any) -> float:
    """What one sample of one epoch takes: the same figure on every machine, so that a search can go on anywhere."""
    return _PER_VALUE * max(_values(model), 1) + _PER_PRODUCT * _products(model)


def _values(model: Any) -> int:
    """Values that all layers hand on, for one sample."""
    from fpgaprune.network import calls_of, graph_of

    return sum(_size(output.shape[1:]) for call in calls_of(graph_of(model)) for output in call.outputs)


def _products(model: Any) -> int:
    """Multiplications of kernels for one sample, about: those of a nested model count once."""
    from fpgaprune.network import calls_of, graph_of

    found = 0
    for call in calls_of(graph_of(model)):
        positions = max((_size(output.shape[1:-1]) for output in call.outputs), default=1)
        weights = getattr(call.operation, "trainable_weights", [])
        found += positions * sum(_size(weight.shape) for weight in weights if len(weight.shape) > 1)
    return found


def _size(shape: Any) -> int:
    """Elements of an array; an unknown size counts as 1."""
    return math.prod(size or 1 for size in shape)
