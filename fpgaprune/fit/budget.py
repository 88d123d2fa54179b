"""The budget of a search: epochs and settings of its trainings, their seconds, and deadlines."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fpgaprune.errors import FpgaPruneError
from fpgaprune.files import read_json
from fpgaprune.fit.knobs import RECIPE_BATCH, RECIPE_TRAINING, Knobs, recipe_suits
from fpgaprune.fit.result import FitPoint
from fpgaprune.flow import Dataset, FinetuneConfig, Flow, TrainConfig, count_of
from fpgaprune.layout import joined
from fpgaprune.values import weight_shapes

if TYPE_CHECKING:
    import keras

    from fpgaprune.network import Call

# A first trial trains for this part of the epochs of a usual one.
_SHORT = 4
# Least training steps of a usual trial, and of one that trains as the recipe. With few samples an epoch takes less time
# than a trial takes beside it.
_STEPS = 4000
# At a higher rate: most samples in a step, least steps in an epoch, and epochs.
_LARGEST, _FEWEST, _EPOCHS = 256, 64, 32
# The recipe takes twice the samples in a step.
_FEWEST_OF_RECIPE = 32
# At a higher rate so many times the epochs keep 0.2 to 0.7 points where a network has little room left:
# docs/measurements/fit_training.md, "How long a network is trained".
_LONGER = 3
# The rate at a batch of 32, as a multiple of the network's own, and the highest rate. A network that rounds and loses
# weights is trained anew, not only refined: docs/measurements/fit_training.md, "How a trial is trained".
_FASTER, _HIGHEST, _USUAL = 5.0, 0.015, 1e-3
_ADAPTIVE = {"Adam", "AdamW", "Nadam", "RMSprop"}
# The share of its rate with which any other optimizer begins where BatchNorm, which let it take such steps, is folded
# away: with SGD(0.05, momentum=0.9) a network lost 49 points at its own rate, 3.7 if it fell, and 0.7 at a tenth.
_CALMER = 0.1
# A whole training is expected to take so long at most on one core: more epochs of a large network would leave a search
# time for a few trials only. It has so many epochs at least.
_SECONDS, _LEAST_EPOCHS = 120.0, 4
# A trial trains on this many samples at most; a Dense network, whose steps are few and short, on more of them. In less
# than so many minutes, those of a large network are fewer in proportion, down to the last number.
_SAMPLES, _DENSE_SAMPLES, _MINUTES, _FEWEST_SAMPLES = 20_000, 60_000, 10.0, 4000
# A search has time for at least so many whole trainings, and takes so many seconds beside them: TensorFlow's start, and
# the other stages of its first trials and of its final run.
_TRAININGS, _BESIDE_ALL = 5, 40.0
# Seconds for one sample of one epoch, for each value of an activation, and for each product.
_PER_VALUE, _PER_PRODUCT = 15e-9, 3e-10
# Seconds of each epoch and of each step of training, whatever the network, and of a step for each time step of a
# recurrent layer: 67 samples of a Dense network take 9 ms an epoch, 40 of an LSTM with 100 time steps 64 ms.
_PER_EPOCH, _PER_STEP, _PER_TIME_STEP = 4e-3, 2.5e-3, 2e-4
# A gate's values before and after its activation, and of the state that it makes.
_PER_GATE = 3
# Values of all layers that a step of training holds in memory.
_VALUES = 2**24
# The stages of a run whose time grows with the epochs and the samples.
_TRAINING = ("finetune", "quantise")
# Two trials tell what an epoch takes if one has so many times the epochs of the other.
_APART = 2
# An epoch takes at most so many times what was expected of it.
_SLOWER = 1.5
# A run takes up to this multiple of what is expected, by what runs beside it and by the report of the search.
_SLACK = 1.1
# A run of a small network takes about so many seconds beside its training, on one core.
_BESIDE_TRAINING = 10.0
# With time for fewer short trials than this, each of them has to be a network that may be the answer.
_FEW_TRIALS = 10


@dataclass(frozen=True)
class Deadline:
    """A deadline for trials of so many epochs.

    Attributes:
        moment: a time of `time.monotonic`.
        epochs: of each trial.
        slowest: epochs to the seconds of the slowest trial; deadlines may share it.
        expected: the seconds of a trial with so many epochs, as long as none has been measured.
    """

    moment: float
    epochs: int = 0
    slowest: dict[int, float] = field(default_factory=dict)
    expected: Callable[[int], float] = lambda _: 0.0

    def record(self, seconds: float) -> None:
        """Record the seconds of a trial."""
        self.slowest[self.epochs] = max(self.slowest.get(self.epochs, 0.0), seconds)

    def has_time(self, trials: int = 1, factor: float = 1.0) -> bool:
        """Tell whether so many trials, each `factor` times as long as the slowest one, end before the deadline."""
        measured = self.slowest.get(self.epochs)
        trial = self.expected(self.epochs) if measured is None else measured
        return time.monotonic() + trials * factor * trial <= self.moment


@dataclass
class RunTimes:
    """The seconds of the trials so far, and what that says of a final run and of the tool that counts it.

    Attributes:
        expected: seconds of an epoch of a trial, before any has been measured.
    """

    expected: float = math.inf
    _training: dict[int, float] = field(default_factory=dict)
    """Epochs to the seconds of the last training with so many."""
    _beside: float = 0.0
    """Seconds of the last trial beside its training."""

    def record(self, point: FitPoint) -> None:
        """Record how long each stage of the run of `point` took."""
        try:
            stages = read_json(Path(point.folder) / "manifest.json", FpgaPruneError, "a manifest", "")["stages"]
        except (FpgaPruneError, OSError, KeyError, TypeError):
            return
        seconds = {name: float(record.get("seconds", 0.0)) for name, record in stages.items()}
        self._training[point.epochs] = sum(seconds.get(name, 0.0) for name in _TRAINING)
        self._beside = sum(seconds.values()) - self._training[point.epochs]

    def seconds(self, epochs: int, samples: float = 1.0) -> float:
        """Estimate the seconds of a run with `epochs` and `samples` times the samples of a trial; 0 if none has ended.

        Two trials with different epochs tell what an epoch takes. Of one alone it is unknown how much was preparation.
        """
        if not self._training:
            return 0.0
        least, most = min(self._training), max(self._training)
        short, long = self._training[least], self._training[most]
        epoch = min(long / max(most, 1), _SLOWER * self.expected)
        if most >= _APART * max(least, 1) and long > short:
            epoch = (long - short) / (most - least)
        prepared = max(long - epoch * most, 0.0)
        return _SLACK * (self._beside + prepared + epoch * epochs * samples)

    def counting_seconds(self, calm: float) -> float:
        """Estimate the seconds of a tool that takes `calm` on a machine that does nothing else.

        What other work takes of it shows in the time that the last trial took beside its training.
        """
        return calm * max(self._beside / _BESIDE_TRAINING, 1.0)


def run_seconds(*trained: float) -> float:
    """Estimate the seconds of runs whose trainings take `trained` each, before any has been measured."""
    return sum(_BESIDE_TRAINING + seconds for seconds in trained)


@dataclass(frozen=True)
class Training:
    """How the networks of a search are trained.

    Attributes:
        short: epochs of a first trial.
        whole: epochs of a usual trial.
        long: epochs of the best network, and of those around it.
        settings: sections of a flow file to the keys that ask for the rest; what the flow says goes before.
        restarts: whether a whole training of other knobs starts from the trained network. Else, as all short ones, it
            starts from the network before it in the search: at a low rate it would not find the way.
        wanted_epochs: epochs of a usual trial if they took no time.
        seconds: what a whole training may take in the time of the search.
        keeps_epochs: whether the flow says the epochs of the final run, whatever they take.
        batch_size: samples in a step.
    """

    short: int
    whole: int
    long: int
    settings: Mapping[str, Any] = field(default_factory=dict)
    restarts: bool = False
    wanted_epochs: int = 0
    seconds: float = _SECONDS
    keeps_epochs: bool = False
    batch_size: int = 32

    @property
    def is_cut(self) -> bool:
        """Whether the network is so large that it is trained for fewer epochs than wanted."""
        return self.long < self.wanted_epochs

    def final_epochs(self) -> Iterator[int]:
        """Yield the epochs that the final run may have, from most to fewest: `long`, its halves, and `whole`."""
        epochs = self.long
        while epochs > self.whole:
            yield epochs
            epochs //= 2
        yield self.whole

    def late_epochs(self) -> Iterator[int]:
        """Yield the epochs of a final run that begins too late, from most to fewest: `whole`, its halves, and `short`.

        It goes on from a network that was trained.
        """
        epochs = self.whole
        while epochs > self.short and not self.keeps_epochs:
            yield epochs
            epochs //= 2
        yield self.whole if self.keeps_epochs else self.short

    def of(self, data: Dataset, model: keras.Model) -> Training:
        """Return the same training for `model`, for as many of the wanted epochs as there is time for."""
        epoch = expected_seconds(model, data, self.batch_size)
        whole = _affordable(self.wanted_epochs, epoch, self.seconds)
        long = _affordable(_LONGER * self.wanted_epochs if self.restarts else self.wanted_epochs, epoch, _SECONDS)
        return replace(self, short=_short(whole), whole=whole, long=long)

    def starts_from(self, parent: FitPoint | None, knobs: Knobs, epochs: int) -> FitPoint | None:
        """Return `parent` if a training of `knobs` starts from its network; None if it starts from the trained one."""
        continues = parent is not None and parent.knobs == knobs
        return None if self.restarts and epochs >= self.whole and not continues else parent

    @classmethod
    def from_flow(cls, config: Flow, data: Dataset, model: keras.Model, seconds: float = _SECONDS) -> Training:
        """Train as the flow says; what it leaves out is its default, with more epochs of few samples.

        Epochs that the flow says are kept, whatever they take; others take at most `seconds`, as far as it is known.
        Where BatchNorm is folded away, an optimizer that does not scale its steps takes smaller ones.
        """
        settings = config[FinetuneConfig]
        asked = _calmer(config, data, model)
        if "epochs" in settings.model_fields_set:
            epochs = settings.epochs
            return cls(
                *(_short(epochs), epochs, epochs, asked),
                wanted_epochs=epochs,
                keeps_epochs=True,
                batch_size=settings.batch_size,
            )
        steps = -(-count_of(data.x_train) // settings.batch_size)
        epochs = max(settings.epochs, -(-_STEPS // steps))
        usual = cls(0, 0, 0, asked, wanted_epochs=epochs, seconds=seconds, batch_size=settings.batch_size)
        return usual.of(data, model)

    @classmethod
    def at_higher_rate(
        cls, config: Flow, data: Dataset, model: keras.Model, seconds: float = _SECONDS
    ) -> Training | None:
        """Train at a higher rate, which falls, with larger batches; None if this does not suit the network or the data.

        A Dense network is trained as the recipe for adders says. What the flow says of epochs, batches, rates or of a
        training loop of its own is kept. It suits no optimizer that does not scale its steps, as SGD, and no few
        samples of a convolution, of which a network would forget the others.
        """
        from fpgaprune.flow import learning_rate_of

        settings = config[FinetuneConfig]
        kind, rate = learning_rate_of(config[TrainConfig], model, data)
        if settings.model_fields_set & {"epochs", "batch_size", "learning_rate", "fit"} or kind not in _ADAPTIVE:
            return None
        usual, count = settings.batch_size, count_of(data.x_train)
        if recipe_suits(model):
            batch_size = max(_batch_size(count // _FEWEST_OF_RECIPE, RECIPE_BATCH, model), usual)
            epochs = max(_EPOCHS, -(-_STEPS // -(-count // batch_size)))
            asked = joined(RECIPE_TRAINING, {"finetune": {"batch_size": batch_size}})
            return cls(0, 0, 0, asked, True, epochs, seconds, batch_size=batch_size).of(data, model)
        batch_size = _batch_size(count // _FEWEST, _LARGEST, model)
        if batch_size <= usual:
            return None
        # A rate that fell while the network was trained says little.
        rate = max(rate, min(max(rate, _USUAL) * _FASTER * math.sqrt(batch_size / usual), _HIGHEST))
        asked = {"finetune": {"batch_size": batch_size, "learning_rate": rate}, "quantise": {"learning_rate": rate}}
        return cls(0, 0, 0, asked, True, _EPOCHS, seconds, batch_size=batch_size).of(data, model)


def _calmer(config: Flow, data: Dataset, model: keras.Model) -> dict[str, Any]:
    """Return sections of a flow file with a lower rate, which falls; empty where the network's own one suits."""
    from fpgaprune.flow import learning_rate_of

    if config[FinetuneConfig].model_fields_set & {"learning_rate", "fit"}:
        return {}
    if not any(path.endswith("/moving_variance") for path in weight_shapes(model)):
        return {}
    kind, rate = learning_rate_of(config[TrainConfig], model, data)
    calmer = {"learning_rate": _CALMER * rate}
    return {} if kind in _ADAPTIVE else {"finetune": calmer, "quantise": calmer}


def is_short(minutes: float, trial: float, final: float) -> bool:
    """Tell whether a search has time for few trials only: so short that no trial may serve to learn something else.

    Args:
        minutes: time of the search.
        trial: seconds of the training of a first trial.
        final: seconds of the shortest training of the answer.
    """
    return 60 * minutes - run_seconds(final) < _FEW_TRIALS * run_seconds(trial)


def seconds_of_training(minutes: float) -> float:
    """Return the seconds that a whole training may take in a search of so many `minutes`."""
    return min(max(60 * minutes - _BESIDE_ALL, 0.0) / _TRAININGS, _SECONDS)


def expected_seconds(model: keras.Model, data: Dataset, batch_size: int) -> float:
    """Estimate the seconds of an epoch of training `model`, before any has been measured."""
    samples = count_of(data.x_train)
    steps = -(-samples // batch_size)
    return _PER_EPOCH + steps * (_PER_STEP + _PER_TIME_STEP * _time_steps(model)) + samples * _seconds(model)


def most_samples(model: keras.Model, minutes: float = _MINUTES) -> int:
    """Return the most training samples of a trial of `model`: its least epochs end in time with them.

    The time is that of a search of so many `minutes`.
    """
    most = _DENSE_SAMPLES if recipe_suits(model) else _SAMPLES
    in_time = int(_SECONDS / _LEAST_EPOCHS / _seconds(model))
    shorter = max(int(in_time * min(minutes / _MINUTES, 1.0)), _FEWEST_SAMPLES)
    return max(min(in_time, shorter, most), 1)


def _batch_size(samples: int, most: int, model: keras.Model) -> int:
    """Return the largest power of two up to `samples`, `most`, and what memory holds of the values of `model`."""
    return 1 << int(math.log2(max(min(samples, most, _VALUES // max(_values(model), 1)), 1)))


def _short(whole: int) -> int:
    """Return the epochs of a first trial, if a usual one has `whole`."""
    return max(whole // _SHORT, min(whole, 2))


def _affordable(epochs: int, epoch: float, seconds: float) -> int:
    """Return at most `epochs` of `epoch` seconds each, as many as take `seconds`; a few in any case."""
    return max(min(epochs, int(seconds / epoch)), min(epochs, _LEAST_EPOCHS))


def _seconds(model: keras.Model) -> float:
    """Estimate the seconds of one sample of one epoch: alike on every machine, so that a search can go on anywhere."""
    return _PER_VALUE * max(_values(model), 1) + _PER_PRODUCT * _products(model)


def _values(model: keras.Model) -> int:
    """Count the activations of all layers for one sample, and each gate in each step of a recurrent layer."""
    from fpgaprune.network import calls_of, graph_of

    calls = list(calls_of(graph_of(model)))
    outputs = sum(_size(output.shape[1:]) for call in calls for output in call.outputs)
    gates = (_steps(call) * _size(weight.shape[-1:]) for call in calls for weight in _recurrent_weights(call))
    return outputs + _PER_GATE * sum(gates)


def _time_steps(model: keras.Model) -> int:
    """Count the time steps of all recurrent layers: each computes a gate or more, one after another."""
    from fpgaprune.network import calls_of, graph_of

    return sum(_steps(call) for call in calls_of(graph_of(model)) for _ in _recurrent_weights(call))


def _products(model: keras.Model) -> int:
    """Count the multiplications by weights for one sample, about: those of a nested model count once."""
    from fpgaprune.network import calls_of, graph_of

    found = 0
    for call in calls_of(graph_of(model)):
        positions = max((_size(output.shape[1:-1]) for output in call.outputs), default=1)
        if _recurrent_weights(call):
            positions = _steps(call)
        weights = getattr(call.operation, "trainable_weights", [])
        found += positions * sum(_size(weight.shape) for weight in weights if len(weight.shape) > 1)
    return found


def _recurrent_weights(call: Call) -> list[Any]:
    """Return the weights by which a layer multiplies its state in each step; none if it is not recurrent."""
    weights = getattr(call.operation, "trainable_weights", [])
    return [weight for weight in weights if weight.name == "recurrent_kernel"]


def _steps(call: Call) -> int:
    """Return the steps of a recurrent layer, whose input has the shape (batch, steps, features)."""
    return _size(call.inputs[0].shape[1:2])


def _size(shape: Any) -> int:
    """Count the elements of an array; an unknown size counts as 1."""
    return math.prod(size or 1 for size in shape)
