"""What is foreseen before anything is trained: which unit is locked, and what few bits save."""

import keras
import numpy as np
import pytest

from fpgaprune.fit.foresight import Foresight
from fpgaprune.fit.knobs import Knobs
from fpgaprune.fit.layout import Laid
from fpgaprune.fit.limits import Limits
from fpgaprune.fit.route import find_route
from fpgaprune.flow import Dataset
from fpgaprune.hls import Precision, make_design
from fpgaprune.target import Target


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


@pytest.mark.parametrize("rounds", [False, True])
def test_few_bits_are_priced_with_the_types_that_the_training_gets(rounds):
    rng = np.random.default_rng(0)
    model = keras.Sequential([keras.Input((16,)), keras.layers.Dense(12, name="d")])
    kernel = rng.normal(size=(16, 12)).astype("float32")
    # One large weight: a type that holds it rounds most of the others to zero.
    kernel[0, 0] = 9
    model.get_layer("d").set_weights([kernel, np.zeros(12, "float32")])
    x = rng.uniform(size=(64, 16)).astype("float32")
    y = rng.integers(0, 12, 64)
    target = Target.of("xc7z020clg400-1", io_type="io_parallel")
    route = find_route("verilog", target)
    document = {"name": "fit", "finetune": {"quantised": rounds}, "target": {"io_type": "io_parallel"}}
    data = Dataset("mine", x, y, x, y)
    foresight = Foresight(route, document, data, model, Limits(interval_cycles=1))
    design = make_design(model, target, x, Precision(3, 8, clips=rounds), "fit")
    wanted = min(laid.share for laid in route.layouts(design))
    found = min(laid.share for laid in foresight.layouts(Knobs("weight", 0.0, 3, 8)).values())
    assert found == pytest.approx(wanted, rel=0.1)
