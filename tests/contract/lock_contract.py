"""What every optimizer must keep under a lock: rows are optimizers, cases are functions of a row.

A new optimizer is one line in `ROWS`; it inherits every case. A case takes the way to lock as an argument, so
that the mutants in `tests/teeth` can be shown to fail.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from keras import optimizers as ko

import fpgaprune as fp

Lock = Callable[..., Any]


class PlainMomentum(ko.Optimizer):
    """A user's optimizer that writes past `assign` and keeps its slots in a dictionary."""

    def build(self, variables: Any) -> None:
        super().build(variables)
        self.slots = {
            self._var_key(v): self.add_variable_from_reference(v, name="speed", initializer="ones") for v in variables
        }

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        speed = self.slots[self._var_key(variable)].value
        speed.assign(0.9 * speed + gradient)
        variable.assign_sub(tf.cast(learning_rate, variable.dtype) * speed)


def multi(**options: Any) -> Any:
    return ko.MultiOptimizer(
        ko.OptimizerMap(ko.SGD(0.1, momentum=0.9, **options), {".*conv.*": ko.Adam(0.01, **options)})
    )


@dataclass(frozen=True)
class Row:
    name: str
    make: Callable[..., Any]
    elementwise: bool = True  # an element's update depends on no other element
    outer: Callable[[Any], Any] = field(default=lambda optimizer: optimizer)


ROWS = [
    Row("sgd", lambda **o: ko.SGD(0.1, **o)),
    Row("momentum", lambda **o: ko.SGD(0.1, momentum=0.9, **o)),
    Row("nesterov", lambda **o: ko.SGD(0.1, momentum=0.9, nesterov=True, **o)),
    Row("rmsprop", lambda **o: ko.RMSprop(0.01, **o)),
    Row("rmsprop_centered", lambda **o: ko.RMSprop(0.01, momentum=0.9, centered=True, **o)),
    Row("adam", lambda **o: ko.Adam(0.01, **o)),
    Row("amsgrad", lambda **o: ko.Adam(0.01, amsgrad=True, **o)),
    Row("adamw", lambda **o: ko.AdamW(0.01, **{"weight_decay": 0.1, **o})),
    Row("adamax", lambda **o: ko.Adamax(0.01, **o)),
    Row("nadam", lambda **o: ko.Nadam(0.01, **o)),
    Row("adagrad", lambda **o: ko.Adagrad(0.1, **o)),
    Row("adadelta", lambda **o: ko.Adadelta(1.0, **o)),
    Row("ftrl", lambda **o: ko.Ftrl(0.1, l1_regularization_strength=0.01, **o)),
    Row("lion", lambda **o: ko.Lion(0.01, **o)),
    Row("schedule_free", lambda **o: ko.ScheduleFreeAdamW(0.01, **o)),
    Row("multi", multi),
    Row("loss_scale", lambda **o: ko.Adam(0.01, **o), outer=lambda o: ko.LossScaleOptimizer(o, initial_scale=8.0)),
    Row("user_subclass", lambda **o: PlainMomentum(0.1, **o)),
    Row("lamb", lambda **o: ko.Lamb(0.01, **o), elementwise=False),
    Row("adafactor", lambda **o: ko.Adafactor(0.01, **o), elementwise=False),
    Row("muon", lambda **o: ko.Muon(0.01, **o), elementwise=False),
]

OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "weight decay": {"weight_decay": 0.1},
    "ema": {"use_ema": True, "ema_momentum": 0.5},
    "ema overwrite": {"use_ema": True, "ema_momentum": 0.5, "ema_overwrite_frequency": 2},
    "accumulation": {"gradient_accumulation_steps": 2},
    "clipvalue": {"clipvalue": 0.1},
    "clipnorm": {"clipnorm": 0.1},
    "global_clipnorm": {"global_clipnorm": 0.1},
}

SHAPES = {"dense/kernel": (3, 4), "conv/kernel": (2, 2, 2, 3), "dense/bias": (4,)}


def lock_it(inner: Any, masks: Any, weights: dict[str, Any], values: Any = "current", **options: Any) -> Any:
    return fp.LockedOptimizer(inner, masks, values=values, weights=weights, **options)


class Trial:
    """One optimizer over three small weights; `slots` are recorded as they are made, not found by name."""

    def __init__(self, row: Row, seed: int = 0, **options: Any) -> None:
        rng = np.random.default_rng(seed)
        self.row = row
        self.weights: dict[str, Any] = {}
        for path, shape in SHAPES.items():
            scope, name = path.split("/")
            with keras.name_scope(scope):
                self.weights[path] = keras.Variable(rng.normal(size=shape).astype("float32"), name=name)
        self.inner = row.make(**options)
        self.slots: dict[str, list[Any]] = {path: [] for path in self.weights}
        self.optimizer = row.outer(self.inner)

    def build(self) -> None:
        by_id = {id(variable): path for path, variable in self.weights.items()}
        with recorded_slots() as made:
            self.optimizer.build(list(self.weights.values()))
        for reference, slot in made:
            self.slots[by_id[id(reference)]].append(slot)

    def lock(self, lock: Lock, masks: dict[str, Any], **options: Any) -> None:
        built = self.inner.built
        self.optimizer = self.row.outer(lock(self.inner, fp.MaskSet(masks), self.weights, **options))
        if built:
            self.optimizer.build(list(self.weights.values()))
        else:
            self.build()

    def run(self, gradients: list[list[Any]], jit: bool = False, eager: bool = False) -> None:
        weights = list(self.weights.values())

        def step(*grads: Any) -> None:
            self.optimizer.apply(list(grads), weights)

        if not eager:
            step = tf.function(step, jit_compile=jit, autograph=False)
        for grads in gradients:
            step(*[tf.constant(g) if isinstance(g, np.ndarray) else g for g in grads])

    def arrays(self) -> dict[str, list[Any]]:
        """Each weight and its slots, copied."""
        return {p: [np.array(v.numpy()) for v in (w, *self.slots[p])] for p, w in self.weights.items()}


@contextmanager
def recorded_slots() -> Iterator[list[tuple[Any, Any]]]:
    made: list[tuple[Any, Any]] = []
    original = ko.Optimizer.add_variable_from_reference

    def record(self: Any, reference_variable: Any, *args: Any, **kwargs: Any) -> Any:
        slot = original(self, reference_variable, *args, **kwargs)
        made.append((reference_variable, slot))
        return slot

    ko.Optimizer.add_variable_from_reference = record
    try:
        yield made
    finally:
        del ko.Optimizer.add_variable_from_reference


def random_masks(seed: int = 1) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    return {path: rng.random(shape) < 0.5 for path, shape in SHAPES.items()}


def random_gradients(steps: int, seed: int = 2) -> list[list[Any]]:
    rng = np.random.default_rng(seed)
    return [[rng.normal(size=shape).astype("float32") for shape in SHAPES.values()] for _ in range(steps)]


def same_bits(got: Any, wanted: Any) -> bool:
    return np.ascontiguousarray(got).tobytes() == np.ascontiguousarray(wanted).tobytes()


def assert_locked(before: dict[str, list[Any]], after: dict[str, list[Any]], masks: dict[str, Any]) -> None:
    for path, mask in masks.items():
        for at, (old, new) in enumerate(zip(before[path], after[path], strict=True)):
            assert same_bits(new[~mask], old[~mask]), f"{path}, array {at}: {new[~mask]} was {old[~mask]}"
        assert np.isfinite(after[path][0]).all(), f"{path} is not finite"
        moved = after[path][0][mask] != before[path][0][mask]
        assert moved.any() or not mask.any(), f"{path}: no free element moved"


def assert_free_alike(
    got: dict[str, list[Any]], wanted: dict[str, list[Any]], masks: dict[str, Any], exact: bool
) -> None:
    for path, mask in masks.items():
        for at, (one, other) in enumerate(zip(got[path], wanted[path], strict=True)):
            alike = same_bits if exact else partial(np.allclose, rtol=1e-5, atol=1e-6)
            assert alike(one[mask], other[mask]), f"{path}, array {at}: free elements differ"


# The cases


def from_the_first_step(row: Row, lock: Lock = lock_it, jit: bool = False, **options: Any) -> None:
    _locked_beside_unlocked(row, lock, 0, {"jit": jit}, options)


def after_free_steps(row: Row, lock: Lock = lock_it, eager: bool = False, **options: Any) -> None:
    _locked_beside_unlocked(row, lock, 2, {"eager": eager}, options)


def _locked_beside_unlocked(
    row: Row, lock: Lock, free_steps: int, how: dict[str, Any], options: dict[str, Any]
) -> None:
    """Locked bits stay, and free elements are those of a twin without a lock that is fed the same gradients."""
    alone, locked, masks = Trial(row, **options), Trial(row, **options), random_masks()
    for trial in (alone, locked):
        if free_steps:
            trial.build()
            trial.run(random_gradients(free_steps, seed=3))
    if not free_steps:
        alone.build()
    locked.lock(lock, masks)
    before = locked.arrays()
    for trial in (alone, locked):
        trial.run(random_gradients(4), **how)
        trial.optimizer.finalize_variable_values(list(trial.weights.values()))
    assert_locked(before, locked.arrays(), masks)
    if row.elementwise and not {"clipnorm", "global_clipnorm"} & options.keys():
        # XLA rounds as it fuses, and it fuses the two steps differently.
        assert_free_alike(locked.arrays(), alone.arrays(), masks, exact=not how.get("jit"))


def odd_bits_stay(row: Row, lock: Lock = lock_it) -> None:
    """-0.0 and denormals, in weights and slots, and gradients of NaN on locked elements."""
    trial, masks = Trial(row), random_masks()
    trial.build()
    odd = np.array([-0.0, 1e-42, -1e-42, 0.0], dtype="float32")
    for path, weight in trial.weights.items():
        for variable in (weight, *trial.slots[path]):
            array = np.array(variable.numpy())
            array[~masks[path]] = np.resize(odd, np.count_nonzero(~masks[path]))
            variable.assign(array)
    trial.lock(lock, masks)
    before = trial.arrays()
    gradients = random_gradients(3)
    if row.name not in ("loss_scale", "adafactor"):  # the one skips such a step, the other mixes it into all elements
        for gradient, mask in zip(gradients[0], masks.values(), strict=True):
            gradient[~mask] = np.nan
    trial.run(gradients)
    assert_locked(before, trial.arrays(), masks)


def step_with_infinite_gradient(row: Row, lock: Lock = lock_it) -> None:
    scaled = Row(row.name, row.make, row.elementwise, outer=lambda o: ko.LossScaleOptimizer(o, initial_scale=4.0))
    trial, masks = Trial(scaled), random_masks()
    trial.lock(lock, masks)
    before = trial.arrays()
    gradients = random_gradients(3)
    gradients[0][0][0, 0] = np.inf
    trial.run(gradients[:1])
    after = trial.arrays()
    for path in masks:
        assert all(same_bits(a, b) for a, b in zip(after[path], before[path], strict=True)), "a skipped step moved"
    trial.run(gradients[1:])
    assert_locked(before, trial.arrays(), masks)


def sparse_gradients(row: Row, lock: Lock = lock_it) -> None:
    masks = random_masks()
    dense = random_gradients(3)
    rows = [0, 2, 0]

    def sparse(gradient: Any) -> Any:
        return tf.IndexedSlices(tf.constant(gradient[:3]), tf.constant(rows), tf.constant([3, 4]))

    trial = Trial(row)
    trial.lock(lock, masks)
    before = trial.arrays()
    trial.run([[sparse(kernel), *others] for kernel, *others in dense])
    assert_locked(before, trial.arrays(), masks)


def masks_that_change(row: Row, lock: Lock = lock_it, steps: int = 8) -> None:
    """Every step another random mask; locked bits stay, and a freed slot is as it was left."""
    trial = Trial(row)
    trial.lock(lock, random_masks())
    locked = trial.inner if isinstance(trial.inner, fp.LockedOptimizer) else _locked(trial.optimizer)
    weights, traces = list(trial.weights.values()), []

    @tf.function(autograph=False)
    def step(*grads: Any) -> None:
        traces.append(1)
        trial.optimizer.apply(list(grads), weights)

    for at, grads in enumerate(random_gradients(steps)):
        masks = random_masks(seed=100 + at)
        locked.change(fp.MaskSet(masks), "current")
        before = trial.arrays()
        step(*[tf.constant(g) for g in grads])
        assert_locked(before, trial.arrays(), masks)
    assert len(traces) == 1, "a change of masks was traced again"


def _locked(optimizer: Any) -> Any:
    return optimizer if isinstance(optimizer, fp.LockedOptimizer) else optimizer.inner_optimizer
