"""Room behind what never stops, against a count of beats clock by clock."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fpgaprune.rtl import Module, places, queue_depth

SIDES = st.tuples(*(st.integers(1, 9) for _ in range(2)), *(st.integers(1, 4) for _ in range(4)))


def window(rows, columns, kh, kw, sh, sw):
    names = ("ROWS", "COLUMNS", "KH", "KW", "SH", "SW", "SPREAD")
    numbers = map(str, (rows, columns, kh, kw, sh, sw, 0))
    return Module("fp_window", tuple(zip(names, numbers, strict=True)), 8, 72)


def ever_waits(room, through, sides, apart=1):
    """Whether `fp_credit` with that room keeps a beat waiting, were one there at every clock that `fp_pace` lets it."""
    rows, columns, kh, kw, sh, sw = sides
    images = 3 + through // (rows * columns)
    back = {}
    clock, begins = -1, 0
    for beat in range(images * rows * columns):
        clock += 1
        row, column = divmod(beat % (rows * columns), columns)
        whole = row >= kh - 1 and column >= kw - 1 and (row - kh + 1) % sh == 0 and (column - kw + 1) % sw == 0
        while whole and clock < begins:
            room += back.pop(clock, 0)
            clock += 1
        begins = clock + apart if whole else begins
        # Room given back at a clock lets a beat in at the next.
        room += back.pop(clock, 0)
        if room == 0:
            return True
        room -= 1
        at = clock + (through + 3 if whole else 2)
        back[at] = back.get(at, 0) + 1
    return False


@settings(derandomize=True, deadline=None, max_examples=200)
@given(st.integers(1, 40), SIDES)
def test_nothing_waits_with_so_many_places_and_something_with_one_less(through, sides):
    rows, columns, kh, kw, _, _ = sides
    if kh > rows or kw > columns:
        return
    needed = places(through, window(*sides))
    assert not ever_waits(needed, through, sides)
    assert ever_waits(needed - 1, through, sides)


@settings(derandomize=True, deadline=None, max_examples=200)
@given(st.integers(1, 60), SIDES, st.integers(2, 40))
def test_nothing_waits_for_room_where_windows_come_apart(through, sides, apart):
    rows, columns, kh, kw, _, _ = sides
    if kh > rows or kw > columns:
        return
    assert not ever_waits(places(through, window(*sides), apart), through, sides, apart)


@pytest.mark.parametrize(("through", "apart"), [(60, 20), (41, 20), (57, 20)])
def test_with_two_places_less_something_waits(through, apart):
    sides = (6, 6, 2, 2, 1, 1)
    assert ever_waits(places(through, window(*sides), apart) - 2, through, sides, apart)


@pytest.mark.parametrize(("through", "depth"), [(1, 4), (2, 4), (3, 8), (6, 8), (7, 16)])
def test_without_a_window_every_beat_has_a_place(through, depth):
    assert places(through, None) == through + 3
    assert queue_depth(through, None, 0) == depth


def test_the_queue_and_its_exit_hold_all_and_the_slack():
    sides = (10, 10, 3, 3, 1, 1)
    for through in range(1, 60):
        for slack in (0, 8):
            depth = queue_depth(through, window(*sides), slack)
            assert depth + 1 >= places(through, window(*sides)) + slack
            assert depth == 2 or depth // 2 + 1 < places(through, window(*sides)) + slack
