"""What is foreseen before anything is trained: what locks and few bits save."""

from importlib import import_module

import keras
import numpy as np
import pytest

from fpgaprune.errors import DesignError, EstimateError, HlsError, RemovalError, RtlError, UnsupportedLayerError
from fpgaprune.fit import POWERS_OF_TWO, Estimates, Knobs, Limits, Ranking, find_route, size_of
from fpgaprune.flow import Dataset
from fpgaprune.lowering import Precision, make_design
from fpgaprune.target import Target
from tests.unit.fit.made_up import laid_out


def image_network():
    """A convolution of eight filters, whose sizes differ, on 6 × 6 pixels."""
    model = keras.Sequential(
        [
            keras.Input((6, 6, 1)),
            keras.layers.Conv2D(8, 3, activation="relu", name="c1"),
            keras.layers.Conv2D(8, 3, activation="relu", name="c2"),
            keras.layers.Flatten(name="flat"),
            keras.layers.Dense(3, name="out"),
        ]
    )
    rng = np.random.default_rng(1)
    for layer in (model.get_layer("c1"), model.get_layer("c2")):
        kernel, bias = layer.get_weights()
        layer.set_weights([rng.normal(size=kernel.shape) * np.linspace(0.2, 1, 8), bias + 0.1])
    return model


@pytest.fixture(scope="module")
def estimates():
    rng = np.random.default_rng(0)
    x, y = rng.uniform(size=(64, 6, 6, 1)).astype("float32"), rng.integers(0, 3, 64)
    document = {"name": "fit", "finetune": {"quantised": True}}
    route = find_route("verilog", Target.of("xc7z020clg400-1"))
    return Estimates(route, document, Dataset("mine", x, y, x, y), image_network(), Limits())


def test_filters_go_first_and_single_weights_of_what_is_left_go_too(estimates):
    rung = estimates.target_layout(Knobs("weight"))
    ways = [Knobs("weight"), Knobs("weight", filters=0.5), Knobs("weight", 0.6, filters=0.5)]
    sizes = [size_of(estimates.in_layout(rung, knobs)) for knobs in ways]
    # Half of the filters are a quarter of the products of the second convolution.
    assert sizes[1] < 0.6 * sizes[0]
    assert sizes[2] < 0.9 * sizes[1]


def test_powers_of_two_are_priced_in_a_type_that_holds_them():
    """127 of 128 becomes 128, which has a bit more: a layout for a small part asks for the bits of the values."""
    rng = np.random.default_rng(0)
    x, y = rng.uniform(size=(64, 6, 6, 1)).astype("float32"), rng.integers(0, 3, 64)
    model = image_network()
    for name in ("c1", "c2"):
        kernel, bias = model.get_layer(name).get_weights()
        kernel[0, 0, 0, 0] = 0.995 * 2 ** np.ceil(np.log2(np.abs(kernel).max()))
        model.get_layer(name).set_weights([kernel, bias])
    data, document = Dataset("mine", x, y, x, y), {"name": "fit"}
    tight = Estimates(
        find_route("verilog", Target.of("xc7z020clg400-1"), 0.02), document, data, model, Limits(share=0.02)
    )
    assert tight.layouts(Knobs("weight", hold=POWERS_OF_TWO))


def test_a_network_with_too_few_channels_is_none_that_can_be_had(estimates):
    assert estimates.is_possible(Knobs("weight", filters=0.5))
    assert not estimates.is_possible(Knobs("weight", filters=0.95))


@pytest.mark.parametrize("kind", [HlsError, DesignError, RtlError, RemovalError, UnsupportedLayerError, EstimateError])
def test_locks_whose_network_cannot_become_hardware_are_left_out_with_the_reason(monkeypatch, kind):
    module = import_module("fpgaprune.fit.estimates")
    design = module.untrained_design

    def refused(*_):
        raise kind("no such layer")

    def made(config, data, model):
        filters = config.model_dump()["select"]["filters"]
        return refused() if filters else design(config, data, model)

    monkeypatch.setattr(module, "untrained_design", made)
    x, y = np.zeros((64, 6, 6, 1), "float32"), np.arange(64) % 3
    route = find_route("verilog", Target.of("xc7z020clg400-1"))
    found = Estimates(route, {"name": "fit"}, Dataset("mine", x, y, x, y), image_network(), Limits())
    assert found.is_possible(Knobs("weight", 0.5))
    assert not found.is_possible(Knobs("weight", filters=0.5))
    assert list(found.impossible.values()) == ["no such layer"]
    # Nothing comes of a search if the network as it is cannot become hardware.
    untouched = Estimates(route, {"name": "fit"}, Dataset("mine", x, y, x, y), image_network(), Limits())
    monkeypatch.setattr(module, "untrained_design", refused)
    with pytest.raises(kind, match="no such layer"):
        untouched.is_possible(Knobs("weight"))


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
    estimates = Estimates(route, document, data, model, Limits(interval_cycles=1))
    design = make_design(model, target, x, Precision(3, 8, clips=rounds), "fit")
    wanted = min(laid.share for laid in route.layouts(design))
    found = min(laid.share for laid in estimates.layouts(Knobs("weight", 0.0, 3, 8)).values())
    assert found == pytest.approx(wanted, rel=0.1)


@pytest.mark.parametrize(
    ("share", "cycles", "latency_us", "slower"),
    [(0.5, 104, None, False), (0.5, 130, None, True), (0.9, 60, None, True), (0.5, 130, 9.0, False)],
)
def test_a_network_is_slower_if_its_best_layout_takes_clearly_longer_or_does_not_fit(
    estimates, monkeypatch, share, cycles, latency_us, slower
):
    knobs, turned = Knobs("weight"), Knobs("weight", weight_bits=4)
    laid = {knobs: laid_out("a", {}, 0.7, 100, 100), turned: laid_out("b", {}, share, cycles, cycles)}
    monkeypatch.setattr(estimates, "best_layout", laid.get)
    monkeypatch.setattr(estimates, "ranking", Ranking(Limits(latency_us=latency_us), 5.0))
    assert estimates.is_slower(turned, knobs) == slower
    # Nothing is slower than what does not fit at all.
    laid[knobs] = laid_out("a", {}, 0.9, 10, 10)
    assert not estimates.is_slower(turned, knobs)
