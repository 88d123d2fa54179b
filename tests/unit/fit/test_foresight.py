"""What is foreseen before anything is trained: which unit is locked."""

import pytest

from fpgaprune.fit.foresight import Foresight
from fpgaprune.fit.layout import Laid
from fpgaprune.fit.limits import Limits


class Foreseen(Foresight):
    """Knows the share and the cycles that are left when weights, or filters, are locked; None cannot be."""

    def __init__(self, weight, filter):
        self._limits, self._clock_ns = Limits(), 5.0
        known = {"weight": weight, "filter": filter}
        self.layouts = lambda knobs: layouts(*known[knobs.granularity])


def layouts(share, cycles):
    return {} if share is None else {"only": Laid("only", {}, share, "lut", {}, cycles, cycles)}


@pytest.mark.parametrize(
    ("weight", "filter", "wanted"),
    [
        ((0.20, 10), (0.30, 10), "weight"),
        # Of equal products single weights lose less, which is worth half of the price.
        ((0.20, 10), (0.15, 10), "weight"),
        ((0.20, 10), (0.10, 10), "filter"),
        # A layout that stores zeros is as slow as without them.
        ((0.20, 99), (0.19, 10), "filter"),
        # The upper limit of the share is 0.8.
        ((0.85, 10), (0.70, 10), "filter"),
        ((None, 10), (0.70, 10), "filter"),
        ((0.70, 10), (None, 10), "weight"),
        ((None, 10), (None, 10), "weight"),
    ],
)
def test_single_weights_are_locked_unless_filters_save_much_more(weight, filter, wanted):
    assert Foreseen(weight, filter).granularity() == wanted
