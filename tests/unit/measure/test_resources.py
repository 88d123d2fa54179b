"""What is unknown stays unknown."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fpgaprune.errors import ReportError
from fpgaprune.measure import RESOURCES, Cells, Figure, Measurement, Resources, Stage, capacity_of, from_plain, to_plain
from fpgaprune.target import find_part

COUNTS = st.fixed_dictionaries({name: st.none() | st.integers(0, 10**6) for name in RESOURCES})


@given(st.lists(COUNTS, max_size=4))
def test_a_sum_is_known_where_every_part_is(rows):
    total = Cells.sum(Cells(**row) for row in rows)
    for name in RESOURCES:
        counts = [row[name] for row in rows]
        assert total[name] == (None if None in counts else sum(counts))


@given(COUNTS, COUNTS)
def test_a_difference_is_known_where_both_are(one, other):
    left = Resources(**one).less(Resources(**other))
    for name in RESOURCES:
        assert left[name] == (None if None in (one[name], other[name]) else one[name] - other[name])


@given(COUNTS)
def test_what_is_written_is_read_back_and_the_unknown_is_left_out(row):
    resources = Resources(**row)
    plain = to_plain(resources)
    assert plain == {name: count for name, count in row.items() if count is not None}
    assert from_plain(json.loads(json.dumps(plain)), Resources[int], "a row") == resources


@pytest.mark.parametrize("value", ["3", True, 1.5, float("nan")])
def test_a_count_that_is_no_whole_number_is_refused(value):
    with pytest.raises(ReportError, match=r"a row is not what fpgaprune wrote: Expected `int | null`.*; make it anew"):
        from_plain({"lut": value}, Resources[int], "a row")


def test_counts_are_compared_with_the_capacity_that_is_known():
    intel = find_part("agfb014")
    assert capacity_of(intel).ff is None
    used = Resources(ff=1, dsp=3, bram18=None, uram=4)
    assert list(used.against(capacity_of(intel))) == [("dsp", 3, 4510), ("uram", 4, 0)]


def test_a_tools_count_is_its_own_range():
    measured = Measurement(Stage("synth"), None, Resources(lut=7))
    assert measured.figure("lut") == Figure(7, 7, 7)
    assert measured.figure("ff") is None
    assert Measurement(Stage("analytic_synth"), None, Resources(lut=Figure(2, 1, 3))).figure("lut") == Figure(2, 1, 3)
