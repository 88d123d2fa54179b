"""Laws of selection: the asked count, nesting, permutation, determinism."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fpgaprune.select import select
from fpgaprune.values import MaskSet
from tests.unit.select.fakes import fake_model, random_arrays

AXES = {"weight": (), "kernel": (0, 1), "filter": (0, 1, 2), "input_channel": (0, 1, 3)}
SETTINGS = settings(max_examples=40, deadline=None, derandomize=True)
OPTIONS = {
    "granularity": st.sampled_from(sorted(AXES)),
    "criterion": st.sampled_from(["l1", "l2"]),
    "scope": st.sampled_from(["network", "layer"]),
}
CHANNELS = st.lists(st.integers(1, 6), min_size=2, max_size=4).map(tuple)


def units(mask, granularity):
    return mask.any(axis=AXES[granularity]) if AXES[granularity] else mask


def largest(channels, granularity, scope):
    """The most that may be asked while one unit of each weight stays."""
    counts = [
        {"weight": 9 * i * o, "kernel": i * o, "filter": o, "input_channel": i}[granularity]
        for i, o in pairwise(channels)
    ]
    if scope == "layer":
        return min((count - 1) / count for count in counts)
    return (sum(counts) - len(counts)) / sum(counts)


@SETTINGS
@given(seed=st.integers(0, 9999), channels=CHANNELS, fraction=st.floats(0, 1), **OPTIONS)
def test_the_asked_sparsity_is_met_to_within_one_unit(seed, channels, fraction, granularity, criterion, scope):
    sparsity = fraction * largest(channels, granularity, scope)
    masks = select(fake_model(random_arrays(seed, channels)), sparsity, granularity, criterion, scope)
    free = [units(mask, granularity) for mask in masks.values()]
    for group in [[one] for one in free] if scope == "layer" else [free]:
        total = sum(one.size for one in group)
        locked = total - sum(int(one.sum()) for one in group)
        assert abs(locked - sparsity * total) < 1


@SETTINGS
@given(
    seed=st.integers(0, 9999),
    channels=CHANNELS,
    fractions=st.tuples(st.floats(0, 1), st.floats(0, 1)),
    with_base=st.booleans(),
    **OPTIONS,
)
def test_masks_nest_as_sparsity_grows(seed, channels, fractions, with_base, granularity, criterion, scope):
    top = largest(channels, granularity, scope)
    low, high = sorted(fraction * top for fraction in fractions)
    model = fake_model(random_arrays(seed, channels))
    base = MaskSet.from_slices(model, ["conv1/kernel[0, 0, 0, 0]"]) if with_base and granularity != "weight" else None
    small = select(model, low, granularity, criterion, scope, base=base)
    large = select(model, high, granularity, criterion, scope, base=base)
    assert all(not large[path][~small[path]].any() for path in small)


@SETTINGS
@given(seed=st.integers(0, 9999), fraction=st.floats(0, 1), **OPTIONS)
def test_a_permutation_of_channels_permutes_the_masks(seed, fraction, granularity, criterion, scope):
    channels = (3, 5, 4)
    arrays = random_arrays(seed, channels)
    rng = np.random.default_rng(seed)
    inputs, middle, outputs = (rng.permutation(n) for n in channels)
    moved = {
        "conv1/kernel": arrays["conv1/kernel"][:, :, inputs][..., middle],
        "conv2/kernel": arrays["conv2/kernel"][:, :, middle][..., outputs],
    }
    sparsity = fraction * largest(channels, granularity, scope)
    plain = select(fake_model(arrays), sparsity, granularity, criterion, scope)
    permuted = select(fake_model(moved), sparsity, granularity, criterion, scope)
    assert np.array_equal(permuted["conv1/kernel"], plain["conv1/kernel"][:, :, inputs][..., middle])
    assert np.array_equal(permuted["conv2/kernel"], plain["conv2/kernel"][:, :, middle][..., outputs])


@SETTINGS
@given(seed=st.integers(0, 9999), fraction=st.floats(0, 1), **OPTIONS)
def test_the_same_question_has_the_same_answer(seed, fraction, granularity, criterion, scope):
    channels = (3, 5, 4)
    sparsity = fraction * largest(channels, granularity, scope)
    answers = {
        select(fake_model(random_arrays(seed, channels)), sparsity, granularity, criterion, scope).digest()
        for _ in range(2)
    }
    assert len(answers) == 1


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_the_order_does_not_depend_on_the_unit_of_measure(scale):
    arrays = random_arrays(7)
    scaled = {path: (array.astype(float) * scale).astype(np.float32) for path, array in arrays.items()}
    assert select(fake_model(arrays), 0.5) == select(fake_model(scaled), 0.5)
