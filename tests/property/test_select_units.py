"""Laws that hold in any granularity, with any protection, normalisation and criterion."""

import re

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from fpgaprune.errors import MaskError
from fpgaprune.network import PLAIN
from fpgaprune.select import NORMALIZATIONS, Block, Multiplier, Protection, parse_granularity, regrow, select
from tests.unit.select.fakes import fake_model, random_arrays

SETTINGS = settings(max_examples=60, deadline=None, derandomize=True)
GRANULARITIES = ["kernel", "filter", "input_channel", Block((2, 3)), Block((3, 1, 1, 2)), Multiplier("resource", 9)]
QUESTION = {
    "seed": st.integers(0, 9999),
    "granularity": st.sampled_from(GRANULARITIES),
    "criterion": st.sampled_from(["l1", "l2", "random", "geometric_median"]),
    "normalize": st.sampled_from(sorted(NORMALIZATIONS)),
    "protect": st.builds(Protection, min_free=st.integers(0, 4)),
}
CHANNELS = (3, 6, 5)


def locked_units(masks, granularity):
    """Units that are locked, all units; a unit that is locked in part is an error."""
    locked = total = 0
    for path, mask in masks.items():
        partition = parse_granularity(granularity).partition(path, mask.shape, PLAIN)
        whole = partition.all(~mask)
        assert np.array_equal(partition.spread(~whole), mask)
        locked += int(whole.sum())
        total += partition.count
    return locked, total


@SETTINGS
@given(sparsity=st.floats(0, 1), **QUESTION)
def test_the_count_is_met_or_the_largest_that_can_be_is_named(
    seed, sparsity, granularity, criterion, normalize, protect
):
    model = fake_model(random_arrays(seed, CHANNELS))
    options = {"criterion": criterion, "normalize": normalize, "protect": protect, "seed": seed}
    try:
        masks = select(model, sparsity, granularity, **options)
    except MaskError as error:
        reachable = float(re.search(r"leaves (\d\.\d+) at most", str(error))[1])
        assert reachable < sparsity
        masks, sparsity = select(model, reachable, granularity, **options), reachable
    locked, total = locked_units(masks, granularity)
    assert locked == round(sparsity * total)
    for path, mask in masks.items():
        units = parse_granularity(granularity).partition(path, mask.shape, PLAIN)
        assert units.count - units.all(~mask).sum() >= min(protect.min_free, units.count)


@SETTINGS
@given(fractions=st.tuples(st.floats(0, 0.6), st.floats(0, 0.6)), **QUESTION)
def test_masks_nest(seed, fractions, granularity, criterion, normalize, protect):
    model = fake_model(random_arrays(seed, CHANNELS))
    options = {"criterion": criterion, "normalize": normalize, "protect": Protection(min_free=protect.min_free % 2)}
    small, large = (select(model, share, granularity, seed=seed, **options) for share in sorted(fractions))
    assert all(not large[path][~small[path]].any() for path in small)


@SETTINGS
@given(fraction=st.floats(0, 1), sparsity=st.floats(0, 0.6), **QUESTION)
def test_regrowth_frees_its_share_and_locks_nothing(
    seed, fraction, sparsity, granularity, criterion, normalize, protect
):
    arrays = random_arrays(seed, CHANNELS)
    masks = select(fake_model(arrays), sparsity, granularity, criterion, normalize=normalize)
    gradients = {path: np.random.default_rng(seed).normal(size=mask.shape) for path, mask in masks.items()}
    freed = regrow(masks, fraction, granularity=granularity, gradients=gradients)
    before, after = locked_units(masks, granularity)[0], locked_units(freed, granularity)[0]
    assert before - after == round(fraction * before)
    assert all(freed[path][masks[path]].all() for path in masks)
