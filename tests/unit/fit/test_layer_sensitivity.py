"""Which layers may have a bit less: what each loses and saves is measured on the trained design."""

from dataclasses import replace
from importlib import import_module
from itertools import pairwise

import keras
import numpy as np
import pytest

import fpgaprune as fp
from fpgaprune.advice import widths_of, with_widths
from fpgaprune.errors import DesignError
from fpgaprune.fit import Knobs, LayerSensitivity, Limits, LossSurrogate, Neighbourhood, Ranking
from fpgaprune.values import loss_text
from tests.unit.fit.made_up import LIMIT, MadeUp, laid_out, made

# With four bits of activations three quarters of the largest loss are lost, with three one and a half of it.
TOLERANCE = (0.99, 1, 4.6)


@pytest.fixture(scope="module")
def network():
    """A design in which nothing reads what the second branch makes, and its samples."""
    keras.utils.set_random_seed(3)
    entry = keras.Input((8,), name="entry")
    stack = keras.layers.Dense(6, activation="relu", name="d1")(entry)
    idle = keras.layers.Dense(6, activation="relu", name="idle")(entry)
    joined = keras.layers.Concatenate(name="join")([stack, idle])
    model = keras.Model(entry, keras.layers.Dense(3, name="out")(joined))
    kernel, bias = model.get_layer("out").get_weights()
    kernel[6:] = 0
    model.get_layer("out").set_weights([kernel, bias])
    x = np.random.default_rng(0).random((64, 8), dtype=np.float32)
    target = fp.Target.of("xc7z020clg400-1", io_type="io_parallel")
    return fp.make_design(model, target, x, fp.Precision(6, 5), "mine"), x


def price(design):
    """Bits of all weights and results; those of weights of `d1` are free."""
    return sum(bits for name, _, bits in widths_of(design) if name != "d1")


def test_what_costs_nothing_to_lose_goes_first_and_what_saves_nothing_stays(network):
    design, x = network
    found = LayerSensitivity.of(design, price, x)
    assert {*found.order[:2]} == {("idle", "weight_bits"), ("idle_relu", "activation_bits")}
    assert ("d1", "weight_bits") not in found.order
    assert set(found.error) == {(name, role) for name, role, _ in widths_of(design)}
    for role in ("weight_bits", "activation_bits"):
        assert sum(found.lost(frozenset({layer}), role) for layer in found.error) == pytest.approx(1)
    # Each next layer loses more for the same bit.
    errors = {}
    for name, role in found.order:
        narrow = with_widths(design, 64, 64, of_layers={name: {role: dict_of(design)[name, role] - 1}})
        errors[name, role] = np.square(fp.emulate(narrow, x) - fp.emulate(design, x)).mean()
    assert list(errors.values()) == sorted(errors.values())


def dict_of(design):
    return {(name, role): bits for name, role, bits in widths_of(design)}


def test_a_large_network_is_judged_by_fewer_samples(network):
    design, _ = network
    assert LayerSensitivity.samples(design) == 256
    large = [replace(layer, output_shape=(1000, 100, layer.output_shape[-1])) for layer in design.layers]
    # 132 products for each of 100,000 positions, and six widths that a flow can ask for.
    assert len(widths_of(design)) == 6
    assert LayerSensitivity.samples(replace(design, layers=tuple(large))) == 2**32 // (132 * 100_000 * 6)


def test_only_the_named_layer_gets_other_bits(network):
    design, _ = network
    made = dict_of(
        with_widths(design, 64, 64, of_layers={"d1_relu": {"activation_bits": 3}, "out": {"weight_bits": 4}})
    )
    assert made == {**dict_of(design), ("d1_relu", "activation_bits"): 3, ("out", "weight_bits"): 4}


def test_groups_grow_along_the_order(network):
    found = LayerSensitivity.of(network[0], price, network[1])
    groups = list(found.groups())
    assert [one < other for one, other in pairwise(groups)] == [True] * (len(groups) - 1)
    assert groups[-1] == frozenset(found.order)
    assert all(group == frozenset(found.order[: len(group)]) for group in groups)
    assert list(LayerSensitivity({}, ()).groups()) == []


def test_layers_with_a_bit_less_are_keys_of_the_flow_and_are_others_at_another_width():
    narrow = frozenset({("d1_relu", "activation_bits"), ("out", "weight_bits")})
    knobs = Knobs("weight", 0.5, 6, 4, narrow=narrow)
    assert knobs.settings()["hls"]["layers"] == {"d1_relu": {"activation_bits": 3}, "out": {"weight_bits": 5}}
    assert str(knobs).endswith("4-bit activations (a bit less: d1_relu, out's weights)")
    assert next(knobs.stronger("activation_bits")) == Knobs("weight", 0.5, 6, 3)
    assert Knobs("weight", 0.5, 6, 4).leads_to(knobs)
    assert not knobs.leads_to(Knobs("weight", 0.5, 6, 4))


def test_a_law_takes_all_layers_with_a_bit_less_for_a_width_less():
    layers = {("a", "activation_bits"): 0.25, ("b", "activation_bits"): 0.75}
    sensitivity = LayerSensitivity(layers, tuple(layers))
    points = [
        made(Knobs("weight", activation_bits=bits), MadeUp().best_layout(Knobs("weight")), TOLERANCE)
        for bits in range(2, 9)
    ]
    surrogate = LossSurrogate.fitted(points, 1, LIMIT, sensitivity)
    four, some, every, three = (
        surrogate.likelihood(knobs, 1)
        for knobs in (
            Knobs("weight", activation_bits=4),
            Knobs("weight", activation_bits=4, narrow=frozenset({("a", "activation_bits")})),
            Knobs("weight", activation_bits=4, narrow=frozenset(layers)),
            Knobs("weight", activation_bits=3),
        )
    )
    assert four > some > every == three


class Halfway(MadeUp):
    """A bit less in one of two layers saves half of what a bit less everywhere saves."""

    def best_layout(self, knobs):
        whole, less = (
            super(Halfway, self).best_layout(Knobs("weight", knobs.sparsity, knobs.weight_bits, bits))
            for bits in (knobs.activation_bits, knobs.activation_bits - 1)
        )
        share = (len(knobs.narrow) * less.share + (2 - len(knobs.narrow)) * whole.share) / 2
        return laid_out("only", {}, share, 100, 100)


def test_the_outlook_suggests_a_bit_less_here_and_there():
    layers = {("a", "activation_bits"): 0.01, ("b", "activation_bits"): 0.99}
    sensitivity = LayerSensitivity(layers, tuple(layers))
    ranking = Ranking(Limits(max_loss=loss_text(LIMIT), latency_us=10.0), 5.0)
    neighbourhood = Neighbourhood(("activation_bits",), Halfway(), ranking, 1, 1, lambda *_: sensitivity)
    # The layer `a` hardly matters.
    tried = [Knobs("weight", 0.8, activation_bits=bits) for bits in range(3, 9)]
    knobs, _ = neighbourhood.next([made(knobs, Halfway().best_layout(knobs), TOLERANCE) for knobs in tried])
    assert knobs == Knobs("weight", 0.8, activation_bits=4, narrow=frozenset({("a", "activation_bits")}))


def test_a_layer_whose_narrower_form_is_no_hardware_is_passed_over(network, monkeypatch):
    design, x = network

    def emulate(made, samples):
        if made["d1"].types["weight"] != design["d1"].types["weight"]:
            raise DesignError("the order of additions is not known")
        return fp.emulate(made, samples)

    whole = LayerSensitivity.of(design, lambda made: sum(bits for *_, bits in widths_of(made)), x)
    monkeypatch.setattr(import_module("fpgaprune.fit.surrogate"), "emulate", emulate)
    found = LayerSensitivity.of(design, lambda made: sum(bits for *_, bits in widths_of(made)), x)
    assert [layer for layer in whole.order if layer != ("d1", "weight_bits")] == list(found.order)
    assert ("d1", "weight_bits") in whole.order


def test_a_measurement_that_takes_too_long_says_nothing(network):
    assert LayerSensitivity.of(network[0], price, network[1], until=0.0) == LayerSensitivity({}, ())
