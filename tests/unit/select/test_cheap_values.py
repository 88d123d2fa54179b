"""Cheap values: of few digits, the nearest there are; held largest first, and never let go."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fpgaprune.errors import MaskError
from fpgaprune.select import Digits, hold_largest, hold_schedule, parse_hold
from fpgaprune.values import FixedType, HeldValues, MaskSet, count_digits

KINDS = st.builds(
    lambda width, integer, signed, overflow: FixedType(width, integer, signed, "RND", overflow),
    st.integers(2, 10),
    st.integers(-2, 5),
    st.booleans(),
    st.sampled_from(["SAT", "SAT_SYM"]),
)


@given(KINDS, st.integers(1, 3))
def test_the_values_are_all_those_of_few_digits(kind, most):
    every = np.arange(kind.raw_min, kind.raw_max + 1)
    np.testing.assert_array_equal(Digits(most).raws(kind), every[count_digits(every) <= most])


@given(KINDS, st.integers(1, 3), st.lists(st.floats(-40, 40, width=32), min_size=1, max_size=20))
def test_no_value_is_nearer(kind, most, numbers):
    weights = np.array(numbers, np.float32)
    found = Digits(most).nearest(weights, kind)
    assert found.dtype == weights.dtype
    choices = Digits(most).raws(kind) * kind.lsb
    assert np.isin(found, choices).all()
    nearest = np.abs(weights[:, None].astype(np.float64) - choices).min(axis=1)
    np.testing.assert_array_equal(np.abs(weights.astype(np.float64) - found), nearest)


@given(st.integers(0, 2**32 - 1), st.lists(st.floats(0, 1), min_size=1, max_size=4))
def test_what_is_held_stays_and_the_largest_follow(seed, shares):
    rng = np.random.default_rng(seed)
    weights = {"a/kernel": rng.normal(size=(4, 5)), "b/kernel": rng.normal(size=(3, 3, 2))}
    masks = MaskSet({"a/kernel": rng.random((4, 5)) < 0.6})
    kinds = {path: FixedType(6, 2, True, "RND", "SAT") for path in weights}
    kept = {path: masks.get(path, np.ones(array.shape, bool)) for path, array in weights.items()}
    held = HeldValues()
    for share in sorted(shares):
        before = held
        held = hold_largest(weights, masks, kinds, share, "digits(1)", before)
        assert held.count == round(share * sum(mask.sum() for mask in kept.values()))
        free = []
        for path, array in weights.items():
            here = ~held.masks[path]
            assert not (here & ~kept[path]).any()
            assert (held.values[path][~here] == 0).all()
            if path in before.masks:
                was = ~before.masks[path]
                assert here[was].all()
                np.testing.assert_array_equal(held.values[path][was], before.values[path][was])
                array[here & ~was] = held.values[path][here & ~was]
            free += np.abs(array[kept[path] & ~here]).tolist()
        # A new round sees other weights; what is held does not move with them.
        weights = {path: array + rng.normal(size=array.shape) for path, array in weights.items()}


def test_the_largest_of_all_layers_are_held_first():
    weights = {"a/kernel": np.array([0.9, 0.1]), "b/kernel": np.array([0.4, -0.8])}
    kinds = dict.fromkeys(weights, FixedType(6, 1, True, "RND", "SAT"))
    held = hold_largest(weights, MaskSet({}), kinds, 0.5)
    assert {path: mask.tolist() for path, mask in held.masks.items()} == {
        "a/kernel": [False, True],
        "b/kernel": [True, False],
    }
    # 1 is beyond the type, so that a half is the nearest power of two of both.
    assert held.values["a/kernel"].tolist() == [0.5, 0]
    assert held.values["b/kernel"].tolist() == [0, -1]


def test_a_weight_without_a_type_is_not_held():
    held = hold_largest({"a/bias": np.ones(3), "a/kernel": np.ones(3)}, MaskSet({}), {"a/kernel": FixedType(4, 2)}, 1.0)
    assert list(held.masks) == ["a/kernel"]


@pytest.mark.parametrize("text", ["digits", "digits(0)", "digits(9)", "adders(1)", "digits(1), digits(2)"])
def test_what_names_no_values_is_refused(text):
    with pytest.raises(MaskError, match="wanted"):
        parse_hold(text)


@given(st.integers(1, 60), st.integers(1, 12))
def test_rounds_rise_to_all_weights_and_leave_epochs_after_the_last(epochs, rounds):
    if rounds > epochs:
        with pytest.raises(MaskError, match="an epoch for each"):
            hold_schedule(epochs, rounds)
        return
    schedule = hold_schedule(epochs, rounds)
    assert len(schedule) == rounds
    assert sorted(schedule) == list(schedule)
    assert 0 in schedule
    assert max(schedule) < epochs
    assert sorted(schedule.values()) == list(schedule.values())
    assert list(schedule.values())[-1] == 1.0


def test_held_values_come_back_from_their_file(tmp_path):
    held = hold_largest({"a/kernel": np.array([0.9, 0.1], np.float32)}, MaskSet({}), {"a/kernel": FixedType(6, 1)}, 0.5)
    held.save(tmp_path / "held.npz")
    back = HeldValues.load(tmp_path / "held.npz")
    assert back.masks == held.masks
    np.testing.assert_array_equal(back.values["a/kernel"], held.values["a/kernel"])
    MaskSet({"a/kernel": np.ones(2, bool)}).save(tmp_path / "masks.npz")
    with pytest.raises(MaskError, match="a mask and values for each weight"):
        HeldValues.load(tmp_path / "masks.npz")
    with pytest.raises(MaskError, match="does not exist"):
        HeldValues.load(tmp_path / "none.npz")
