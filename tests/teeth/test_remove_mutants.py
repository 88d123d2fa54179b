"""Wrong removals that the checks must catch: each mutant breaks one thing that pruning tools get wrong."""

from dataclasses import replace

import keras
import numpy as np
import pytest
from keras import layers

import fpgaprune as fp
from fpgaprune.errors import EquivalenceError, FpgaPruneError, RemovalError
from fpgaprune.network import RULES, linear, liveness, site
from fpgaprune.network.rules import convolution, merging, normalization
from fpgaprune.remove import planning
from fpgaprune.values import named_weights

from .changed_code import change


def network(merge=False):
    """A network in which every mutant matters: biases, zero padding, BatchNorm, Flatten, and a residual if asked."""
    keras.utils.set_random_seed(0)
    x = keras.Input((6, 6, 2), name="x")
    y = layers.Conv2D(5, 3, name="a")(x)
    y = layers.BatchNormalization(name="n")(y)
    y = layers.Activation("tanh", name="t")(y)
    z = layers.Conv2D(5, 3, padding="same", activation="relu", name="b")(y)
    y = layers.Add(name="add")([y, z]) if merge else z
    y = layers.Conv2D(4, 1, activation="relu", name="c")(y)
    y = layers.DepthwiseConv2D(3, padding="same", name="d")(y)
    model = keras.Model(x, layers.Dense(2, name="e")(layers.Flatten()(y)), name="net")
    generator = np.random.default_rng(1)
    for path, variable in named_weights(model).items():
        value = generator.normal(size=variable.shape)
        if "variance" in path:
            value = np.abs(value) + 0.5
        if path in ("a/kernel", "b/kernel", "c/kernel"):
            value[..., [1, 2]] = 0.0
        if path in ("b/bias", "c/bias"):
            value = np.abs(value) + 0.2
        if path == "c/bias":
            value[1] = -0.3  # behind the ReLU this dead channel is 0
        if path == "c/kernel":
            value[0, 0, 4] = 0.0  # nothing reads b's last channel
        variable.assign(value)
    return model


def outcome(model):
    """None if the removal is right by its own float64 comparison, else the error."""
    try:
        small = fp.apply_removal(model, fp.plan_removal(model), dtype="float64")
        fp.equivalence(model, small, tolerance=1e-9).require()
    except FpgaPruneError as error:
        return error
    return None


@pytest.mark.parametrize("merge", [False, True])
def test_the_library_itself_passes(merge):
    model = network(merge)
    assert not fp.plan_removal(model).empty
    assert outcome(model) is None


def test_dropping_a_dead_channel_with_a_bias_is_caught(monkeypatch):
    change(monkeypatch, planning, "deltas = _deltas(trace, alive, kept)", "deltas = {}")
    assert isinstance(outcome(network()), EquivalenceError)


def test_folding_into_a_zero_padded_convolution_is_caught(monkeypatch):
    monkeypatch.setattr(convolution, "pads_zeros", lambda *_: False)
    assert isinstance(outcome(network()), EquivalenceError)


def test_a_constant_through_a_zero_padded_depthwise_convolution_is_caught(monkeypatch):
    monkeypatch.setattr(convolution, "pads_zeros", lambda *_: False)
    assert isinstance(outcome(network()), EquivalenceError)


def test_forgetting_a_residual_partner_is_caught(monkeypatch):
    rule = merging.coupled

    def uncoupled(at, sources, join, absorbing_zero=False):
        class Deaf(site.Site):
            def unite(self, left, right):
                pass

        return rule(Deaf(at.trace, at.call, at.inputs), sources, join, absorbing_zero)

    monkeypatch.setattr(merging, "coupled", uncoupled)
    model = network(merge=True)
    plan = fp.plan_removal(model)
    with pytest.raises(RemovalError, match="'add' stays, but a tensor that it reads leaves"):
        fp.apply_removal(model, plan)


def test_a_wrong_flatten_order_is_caught(monkeypatch):
    def channels_first(at):
        channels = at.inputs[0].transposed((2, 0, 1))
        return channels.reshaped(at.shape)

    right = RULES[layers.Flatten]
    monkeypatch.setitem(RULES, layers.Flatten, replace(right, values=channels_first))
    assert isinstance(outcome(network()), EquivalenceError)
    monkeypatch.setitem(RULES, layers.Flatten, right)
    assert outcome(network()) is None


def test_a_stale_batch_normalization_is_caught(monkeypatch):
    def fresh(at):
        layer = at.layer

        class Stale:
            axis, scale, center, epsilon, variables = layer.axis, True, True, layer.epsilon, layer.variables
            gamma, beta = layer.gamma, layer.beta
            moving_mean, moving_variance = np.zeros(5), np.ones(5)  # as before any training

        class At(type(at)):
            layer = Stale

        return normalization.batch_normalization(At(at.trace, at.call, at.inputs))

    monkeypatch.setitem(RULES, layers.BatchNormalization, site.LayerRule(fresh))
    assert isinstance(outcome(network()), EquivalenceError)


def test_a_constant_that_skips_the_batch_normalization_is_caught(monkeypatch):
    skipped = site.LayerRule(lambda at: (declare(at), at.inputs[0])[1])
    monkeypatch.setitem(RULES, layers.BatchNormalization, skipped)
    assert isinstance(outcome(network()), EquivalenceError)


def declare(at):
    line = at.line(-1)
    for variable in at.layer.variables:
        at.weight(variable, line.ids)


def test_taking_a_read_channel_for_unread_is_caught(monkeypatch):
    honest = linear.Taps.__init__

    def forgetful(self, read, groups=1, tolerance=0.0):
        honest(self, read, groups, tolerance)
        self.nonzero[0] = False

    monkeypatch.setattr(linear.Taps, "__init__", forgetful)
    assert isinstance(outcome(network()), EquivalenceError)


def test_a_wrong_share_of_the_carrier_is_caught(monkeypatch):
    change(monkeypatch, planning, "values = _merged(", "values = 2 * _merged(")
    assert isinstance(outcome(network()), EquivalenceError)


def test_a_mask_that_still_claims_a_folded_bias_is_caught():
    model = network()
    model.get_layer("e").bias.assign([0.0, 0.0])
    masks = fp.MaskSet({"e/bias": np.zeros(2, bool)})
    plan = fp.plan_removal(model)
    small = fp.apply_removal(model, plan)

    def zero_where_locked(claimed):
        return not np.asarray(small.get_layer("e").bias)[~claimed["e/bias"]].any()

    assert zero_where_locked(plan.remap(masks))
    assert not zero_where_locked(masks)


def test_needing_nothing_is_caught(monkeypatch):
    """A liveness that forgets the reads leaves layers that fit nothing, or a function that is another."""
    change(monkeypatch, liveness, "            self._follow_reads()", "            self")
    assert isinstance(outcome(network()), EquivalenceError)
