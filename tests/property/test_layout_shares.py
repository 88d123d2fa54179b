"""Shares of a part, for random needs on random parts: nearest limits and fitting, defined once by fractions."""

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from fpgaprune.layout import DesignLayout
from fpgaprune.measure import ESTIMATED, Figure, Resources

COUNTS = st.integers(0, 10**6)
FIGURES = st.lists(COUNTS, min_size=3, max_size=3).map(sorted).map(lambda ends: Figure(ends[1], ends[0], ends[2]))
USED = st.fixed_dictionaries({name: st.none() | FIGURES for name in ESTIMATED})
CAPACITY = st.fixed_dictionaries({name: st.none() | st.just(0) | st.integers(1, 10**6) for name in ESTIMATED})


@st.composite
def layouts(draw):
    return DesignLayout("made up", draw(CAPACITY), Resources(**draw(USED)), 1, 1)


def shares(laid, end):
    """Resource -> share, by fractions; what the part lacks is beyond it by every one that is needed."""
    found = {}
    for name in ESTIMATED:
        figure, there = laid.used[name], laid.capacity[name]
        if figure is not None and there is not None:
            count = getattr(figure, end)
            found[name] = Fraction(count, there) if there else Fraction(1 + count if count else 0)
    return found


@given(layouts())
def test_the_nearest_limit_is_the_largest_share(laid):
    wanted = shares(laid, "high")
    assert laid.share == float(max(wanted.values(), default=Fraction(0)))
    assert not wanted or float(wanted[laid.resource]) == laid.share
    assert abs(laid.size - float(sum(wanted.values()))) <= 1e-9 * max(laid.size, 1)
    middle = laid.occupancy.nearest_limit()
    assert (middle is None) == (not wanted)
    assert middle is None or middle.share() == float(max(shares(laid, "value").values()))


@given(layouts())
def test_it_fits_if_and_only_if_no_share_is_above_one(laid):
    for verdict, end in ((laid.fits, "value"), (laid.fits_upper, "high"), (laid.occupancy.fits_by("low"), "low")):
        found = shares(laid, end)
        assert verdict == (all(share <= 1 for share in found.values()) if found else None)


@given(layouts(), st.sampled_from(ESTIMATED), st.integers(1, 1000))
def test_more_of_a_resource_never_brings_a_design_nearer_to_fitting(laid, name, more):
    figure = laid.used[name] or Figure(0, 0, 0)
    grown = Figure(figure.value + more, figure.low + more, figure.high + more)
    larger = structs.replace(laid, used=structs.replace(laid.used, **{name: grown}))
    assert larger.share >= laid.share
    assert larger.size >= laid.size
    assert not (larger.fits_upper and laid.fits_upper is False)


@given(layouts(), st.sampled_from(ESTIMATED), st.integers(1, 1000))
def test_a_larger_part_never_takes_less(laid, name, more):
    there = laid.capacity[name]
    larger = structs.replace(laid, capacity={**laid.capacity, name: None if there is None else there + more})
    assert larger.share <= laid.share
    assert not (laid.fits and larger.fits is False)
