"""What leaves a row of modules: its width, its range and how many beats it holds."""

import pytest

from fpgaprune.rtl import Chain, Stream


@pytest.mark.parametrize(
    ("low", "high", "beats", "width"),
    [(-8, 7, 1, 5), (-8, 7, 4, 6), (-8, 7, 5, 7), (0, 15, 16, 9), (-1, 0, 3, 5)],
)
def test_a_sum_of_all_beats_has_the_bits_that_it_needs(low, high, beats, width):
    chain = Chain.begin(Stream((beats, 2), beats, 2, 4, low < 0, 0, low, high))
    assert chain.held == 0
    chain.accumulate()
    after = chain.stream
    assert (after.beats, after.lanes, after.low, after.high) == (1, 2, low * beats, high * beats)
    assert after.width == width
    assert chain.need.tolist() == [beats]
