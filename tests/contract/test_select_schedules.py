"""Schedules, the callback, rounds and regrowth, on locked models that train."""

from itertools import pairwise

import keras
import numpy as np
import pytest

import fpgaprune as fp
from fpgaprune.errors import LockError, MaskError
from fpgaprune.select import (
    ConstantSparsity,
    GradualLock,
    PolynomialDecay,
    advance,
    mean_gradient_size,
    prune_rounds,
    regrow,
    rewind,
    select,
    snapshot,
)
from fpgaprune.values import MaskSet, named_weights
from tests.unit.select.networks import plain, samples


@pytest.fixture
def model():
    network = plain()
    network.compile(keras.optimizers.Adam(1e-3), "sparse_categorical_crossentropy")
    return network


def locked_kernels(masks):
    return sum(int((~mask.any(axis=(0, 1))).sum()) for mask in masks.values())


def kernel_moments(model):
    slots = model.optimizer.inner_optimizer.variables
    return [slot.numpy() for slot in slots if "momentum" in slot.path and "kernel" in slot.path]


def check_zero(model, masks):
    weights = named_weights(model)
    for path, mask in masks.items():
        assert not weights[path].numpy()[~mask].view(np.int32).any()


def test_the_callback_follows_the_schedule_and_what_is_locked_stays(model):
    x, y = samples(model, count=32)
    schedule = PolynomialDecay(0.25, 0.75, begin_step=2, end_step=10, frequency=2)
    callback = GradualLock(schedule, fp.relock, granularity="kernel")
    fp.lock(model, callback.initial_masks(model))
    seen = []
    watch = keras.callbacks.LambdaCallback(on_train_batch_end=lambda batch, logs: seen.append(callback.masks))
    model.fit(x, y, batch_size=8, epochs=3, callbacks=[callback, watch], verbose=0)
    assert seen[0] is seen[1] is None
    total = 4 + 20
    for step, masks in enumerate(seen[2:], start=2):
        assert masks is not None, "a change is due at step 2"
        asked = schedule(min(step - step % 2, 10))[1]
        assert locked_kernels(masks) == round(asked * total)
    assert all(not b[path][~a[path]].any() for a, b in pairwise(seen[2:]) for path in a)
    assert [step for step, _, _ in callback.history] == [2, 4, 6, 8]  # at step 10 the count is 18 already
    check_zero(model, callback.masks)
    assert locked_kernels(callback.masks) == 18


def test_a_pattern_keeps_fewer_channels_at_each_change_until_it_keeps_n_of_m(model):
    """Of each output channel alike, whatever the number of input channels is."""
    x, y = samples(model, count=32)
    schedule = PolynomialDecay(0.0, 0.9, begin_step=0, end_step=8, power=1, frequency=4)
    callback = GradualLock(schedule, fp.relock, granularity="2:20", paths=["*/kernel"])
    fp.lock(model, callback.initial_masks(model))
    kept = []
    watch = keras.callbacks.LambdaCallback(
        on_train_batch_end=lambda batch, logs: kept.append(
            {path: set(mask.sum(axis=-2).ravel().tolist()) for path, mask in callback.masks.items()}
        )
    )
    model.fit(x, y, batch_size=8, epochs=3, callbacks=[callback, watch], verbose=0)
    channels = {path: mask.shape[-2] for path, mask in callback.masks.items()}
    assert max(channels.values()) == 20
    for step, found in enumerate(kept):
        most = [20, 11, 2][min(step // 4, 2)]
        assert found == {path: {min(most, count)} for path, count in channels.items()}
    check_zero(model, callback.masks)
    nested = prune_rounds(model, [0.5, 0.9], lambda *_: None, granularity="2:20", paths=["*/kernel"])
    assert {path: set(mask.sum(axis=-2).ravel().tolist()) for path, mask in nested.items()} == kept[-1]


def test_regrowth_within_a_pattern_is_refused_before_any_step():
    with pytest.raises(MaskError, match="an n:m pattern always keeps n of m; regrow in another granularity"):
        GradualLock(ConstantSparsity(0.5, 0), fp.relock, granularity="2:4", regrow_fraction=0.1, data=(1, 2))


# Each time a flow takes steps together, in test_select_finetuning.py.
@pytest.mark.slow
def test_steps_that_keras_takes_together_have_the_locks_of_single_steps():
    """Where each change falls on the first step of a group, all bits are those of single steps."""
    found = []
    for together in (1, 2):
        network = plain()
        network.compile(keras.optimizers.Adam(1e-3), "sparse_categorical_crossentropy", steps_per_execution=together)
        x, y = samples(network, count=32)
        callback = GradualLock(PolynomialDecay(0.25, 0.75, 2, 8, frequency=2), fp.relock, granularity="kernel")
        fp.lock(network, callback.initial_masks(network))
        network.fit(x, y, batch_size=8, epochs=3, callbacks=[callback], verbose=0, shuffle=False)
        check_zero(network, callback.masks)
        found.append((callback, [weight.numpy() for weight in network.weights]))
    (single, ones), (grouped, twos) = found
    assert [step for step, _, _ in single.history] == [2, 4, 6]
    assert grouped.history == single.history
    assert grouped.masks == single.masks
    assert all(np.array_equal(a, b) for a, b in zip(ones, twos, strict=True))


def test_a_change_within_a_group_of_steps_is_made_before_the_group(model):
    x, y = samples(model, count=32)
    model.steps_per_execution = 2
    callback = GradualLock(ConstantSparsity(0.5, 3, 3), fp.relock)
    fp.lock(model, callback.initial_masks(model))
    model.fit(x, y, batch_size=8, verbose=0)
    assert not callback.history
    model.fit(x, y, batch_size=8, callbacks=[callback], verbose=0)
    assert [(step, asked) for step, asked, _ in callback.history] == [(2, 0.5)]
    check_zero(model, callback.masks)


def test_moments_survive_a_change_of_locks(model):
    x, y = samples(model, count=32)
    callback = GradualLock(ConstantSparsity(0.5, 4, 4), fp.relock)
    fp.lock(model, callback.initial_masks(model))
    model.fit(x, y, batch_size=8, verbose=0)
    moments = kernel_moments(model)
    assert moments
    callback.set_model(model)
    callback._step = 4
    callback.on_train_batch_begin(0)
    after = kernel_moments(model)
    assert all(np.array_equal(a, b) for a, b in zip(moments, after, strict=True))


def test_a_base_is_locked_from_the_start_and_for_good(model):
    x, y = samples(model, count=16)
    base = MaskSet.from_slices(model, ["conv2/kernel[:, :, 0]"])
    callback = GradualLock(
        ConstantSparsity(0.5, 0, frequency=1), fp.relock, base=base, regrow_fraction=0.5, data=(x, y), criterion="l1"
    )
    initial = callback.initial_masks(model)
    assert sorted(initial) == ["conv1/kernel", "conv2/kernel"]
    assert initial.locked_count == base.locked_count
    fp.lock(model, initial)
    model.fit(x, y, batch_size=8, epochs=2, callbacks=[callback], verbose=0)
    assert locked_kernels(callback.masks) == 12
    assert not callback.masks["conv2/kernel"][:, :, 0].any()
    assert len(callback.history) > 1, "regrowth exchanges locks at equal sparsity"
    check_zero(model, callback.masks)


def test_an_unlocked_model_is_refused(model):
    x, y = samples(model, count=8)
    with pytest.raises(LockError, match=r"is not locked; call fp\.lock first"):
        model.fit(x, y, callbacks=[GradualLock(ConstantSparsity(0.5, 0), fp.relock)], verbose=0)


def test_regrowth_frees_the_largest_gradients(model):
    x, y = samples(model)
    masks = select(model, 0.75)
    gradients = mean_gradient_size(model, list(masks), (x, y), batch_size=5)
    freed = regrow(masks, 0.5, model, (x, y), batch_size=5)
    assert freed == regrow(masks, 0.5, gradients=gradients)
    assert locked_kernels(freed) == 9
    sizes, was, now = (
        np.concatenate([array.ravel() for array in arrays])
        for arrays in (
            [gradients[path].mean(axis=(0, 1)) for path in masks],
            [masks[path].any(axis=(0, 1)) for path in masks],
            [freed[path].any(axis=(0, 1)) for path in masks],
        )
    )
    assert sizes[now & ~was].min() > sizes[~now].max()
    assert now[was].all()


def test_gradients_are_means_over_samples(model):
    x, y = samples(model, count=10)
    whole = mean_gradient_size(model, ["conv2/kernel"], (x, y), batch_size=10)
    parts = mean_gradient_size(model, ["conv2/kernel"], (x, y), batch_size=4)
    assert np.allclose(whole["conv2/kernel"], parts["conv2/kernel"], rtol=1e-4, atol=1e-7)


def test_a_round_exchanges_locks_and_keeps_the_sparsity(model):
    x, y = samples(model)
    first = select(model, 0.5)
    fp.lock(model, first)
    second = advance(model, 0.5, first, None, 0.25, {"data": (x, y)})
    assert locked_kernels(second) == locked_kernels(first) == 12
    assert second != first
    assert locked_kernels(first | second) == 12 - 3, "a quarter of the locks went elsewhere"


def test_rounds_nest_and_rewind(model):
    x, y = samples(model, count=16)
    start = snapshot(model)
    rounds = []

    def finetune(network, masks):
        weights = named_weights(network)
        for path, array in start.items():
            assert np.array_equal(weights[path].numpy(), np.where(masks.get(path, True), array, 0))
        fp.finetune(network, masks, x, y, batch_size=8)

    final = prune_rounds(
        model, [0.25, 0.5, 0.75], finetune, rewind_to=start, after_round=lambda n, masks: rounds.append((n, masks))
    )
    assert [n for n, _ in rounds] == [0, 1, 2]
    assert [locked_kernels(masks) for _, masks in rounds] == [6, 12, 18]
    assert all(not b[path][~a[path]].any() for (_, a), (_, b) in pairwise(rounds) for path in a)
    assert final == rounds[-1][1]
    check_zero(model, final)


@pytest.mark.parametrize("sparsities", [[], [0.5, 0.4]])
def test_rounds_that_fall_are_refused(model, sparsities):
    with pytest.raises(MaskError, match="wanted at least one, and none that falls"):
        prune_rounds(model, sparsities, lambda *_: None)


def test_rewinding_to_another_model_is_refused_before_anything_changes(model):
    start = snapshot(model)
    before = snapshot(model)
    start["out/bias"] = np.zeros(9, np.float32)
    start["conv1/kernel"] = start["conv1/kernel"] + 1
    with pytest.raises(MaskError, match=r"'out/bias' of shape \(9,\); the weight has \(3,\)"):
        rewind(model, start, MaskSet({}))
    assert all(np.array_equal(array, before[path]) for path, array in snapshot(model).items())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"regrow_fraction": 1.0, "data": 1}, r"regrow_fraction is 1\.0; wanted 0 or more and below 1"),
        ({"regrow_fraction": 0.5}, "regrowth needs samples for the gradient"),
        ({"sparsity": 0.5}, "'sparsity' is no option of a scheduled selection"),
    ],
)
def test_options_that_cannot_be_are_refused(options, message):
    with pytest.raises(MaskError, match=message):
        GradualLock(ConstantSparsity(0.5, 0), fp.relock, **options)


class Watched(keras.layers.Layer):
    """Counts how often it is traced for inference."""

    traced = 0

    def call(self, x, training=None):
        Watched.traced += training is False
        return x


def test_what_a_model_computes_is_looked_at_once_in_a_training():
    """A trace takes longer than a step of a small network."""
    layers = [keras.layers.Dense(8, name="one"), Watched(), keras.layers.Dense(3, name="two")]
    model = keras.Sequential([keras.Input((6,)), *layers])
    model.compile("adam", "mse")
    x, y = np.ones((40, 6)), np.ones((40, 3))
    callback = GradualLock(PolynomialDecay(0.0, 0.8, 0, 8, frequency=1), fp.relock, granularity="weight")
    fp.lock(model, callback.initial_masks(model))
    model.fit(x, y, batch_size=8, epochs=1, verbose=0)
    Watched.traced = 0
    model.fit(x, y, batch_size=8, epochs=2, callbacks=[callback], verbose=0)
    assert len(callback.history) >= 6
    assert Watched.traced <= 2, "by the first selection and by the first lock"
    Watched.traced = 0
    callback = GradualLock(ConstantSparsity(0.9, 0, frequency=1), fp.relock, granularity="weight")
    model.fit(x, y, batch_size=8, epochs=2, callbacks=[callback], verbose=0)
    assert Watched.traced >= 1, "another training looks again"
