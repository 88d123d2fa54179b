"""The swaps of two axes that bring the axes of a sample into another order."""

from itertools import permutations, product

import numpy as np

from fpgaprune.rtl import Swap, swaps_of


def test_swaps_give_every_order_of_axes():
    for axes in range(1, 5):
        for shape, order in product(product((1, 2, 3), repeat=axes), permutations(range(axes))):
            values = np.arange(np.prod(shape))
            moved = values
            for swap in swaps_of(shape, order):
                moved = moved.reshape(-1, swap.pixels, swap.parts, swap.part).transpose(0, 2, 1, 3).reshape(-1)
            np.testing.assert_array_equal(moved, values.reshape(shape).transpose(order).reshape(-1))


def test_axes_that_stay_together_move_together():
    assert swaps_of((4, 5, 6), (0, 1, 2)) == []
    assert swaps_of((4, 5, 6), (2, 0, 1)) == [Swap(20, 6, 1)]
    assert swaps_of((4, 5, 6), (1, 2, 0)) == [Swap(4, 30, 1)]
    assert swaps_of((4, 5, 2, 6), (0, 2, 1, 3)) == [Swap(5, 2, 6)]
