"""How many beats of one stream wait where two meet."""

from types import SimpleNamespace

import numpy as np
import pytest

from fpgaprune.rtl import Pair


def test_beats_that_come_together_do_not_wait_for_each_other():
    """The last input makes four beats, and the other stream has all of its own by then."""
    own, other = np.full(4, 4), np.arange(1, 5)
    befores = (SimpleNamespace(need=other), SimpleNamespace(need=other))
    pair = Pair(befores, None, SimpleNamespace(stream=SimpleNamespace(beats=4)), (np.arange(4), np.arange(4)))
    assert pair.room(0, {"x": own}, {"x": own}) == 1
    assert pair.room(1, {"x": other}, {"x": own}) == 4


@pytest.mark.parametrize(
    ("other", "waiting"),
    [
        ([1, 2, 3, 4], 1),  # both at once: each beat is taken when it comes
        ([3, 4, 4, 4], 3),  # the other comes two beats later
        ([4, 4, 4, 4], 4),  # the other comes when all are there
    ],
)
def test_beats_wait_from_when_they_come_until_they_are_taken(other, waiting):
    own = np.arange(1, 5)
    before = SimpleNamespace(need=own)
    pair = Pair((before, before), None, SimpleNamespace(stream=SimpleNamespace(beats=4)), (np.arange(4), np.arange(4)))
    assert pair.room(0, {"x": own}, {"x": np.maximum(own, other)}) == waiting
