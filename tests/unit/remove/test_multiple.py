"""Layers that keep a multiple of channels, and comparisons on many samples."""

import keras
import numpy as np
import pytest
from keras import layers

import fpgaprune as fp
from fpgaprune.errors import RemovalError
from fpgaprune.remove import Reference, RemovalPlan, proof


def residual(live):
    """A residual network whose layers have 10 filters each, of which `live` are not zero."""
    keras.utils.set_random_seed(1)
    image = keras.Input((6, 6, 2))
    stem = layers.Conv2D(10, 3, padding="same", activation="relu", name="stem")(image)
    path = layers.Conv2D(10, 3, padding="same", activation="relu", name="path")(stem)
    path = layers.Conv2D(10, 3, padding="same", name="back")(path)
    joined = layers.Add(name="joined")([stem, path])
    net = keras.Model(image, layers.Dense(3, name="head")(layers.GlobalAveragePooling2D()(joined)))
    for name in ("stem", "path", "back"):
        kernel, bias = net.get_layer(name).get_weights()
        kernel[..., live:] = 0
        net.get_layer(name).set_weights([kernel, bias])
    return net


@pytest.mark.parametrize(
    ("live", "multiple", "kept"), [(5, 1, 5), (5, 4, 8), (8, 4, 8), (9, 4, 10), (5, 5, 5), (1, 3, 3)]
)
def test_layers_keep_a_multiple_of_channels_or_all(live, multiple, kept):
    model = residual(live)
    plan = fp.plan_removal(model, strict=True, multiple_of=multiple)
    # The outputs of the model stay as they are.
    counts = {layer.path: len(layer.kept) for layer in plan.channels}
    assert counts == {"stem": kept, "path": kept, "back": kept, "head": 3}
    more = [reason for layer in plan.channels for reason in layer.reasons].count("multiple")
    assert (more > 0) == (kept > live)
    assert ("multiple" in plan.explain()) == (kept > live)
    small = fp.apply_removal(model, plan, dtype="float64")
    assert small.get_layer("back").filters == kept
    fp.equivalence(model, small, tolerance=1e-12).require()
    assert fp.plan_removal(fp.apply_removal(model, plan), multiple_of=multiple).empty
    assert RemovalPlan.from_json(plan.to_json()).to_json() == plan.to_json()


def test_a_multiple_below_one_is_refused():
    with pytest.raises(RemovalError, match="multiple_of is 0; wanted 1 or more"):
        fp.plan_removal(residual(5), multiple_of=0)


def test_many_samples_are_compared_in_one_graph_like_few_one_by_one(monkeypatch):
    model = residual(10)
    other = keras.models.clone_model(model)
    other.set_weights([weight + np.float32(1e-3) for weight in model.get_weights()])
    x = np.random.default_rng(3).random((150, 6, 6, 2), dtype=np.float32)
    runs = []
    monkeypatch.setattr(proof, "rebuild", lambda m, **more: runs.append(m) or rebuild(m, **more))
    reference = Reference(model, x)
    traced = reference.compare(other, tolerance=1.0)
    assert reference.compare(model, tolerance=0).ok
    # The reference ran once for both.
    assert runs == [model, other, model]
    monkeypatch.setattr(proof, "TRACED_FROM", 10**9)
    plain = fp.equivalence(model, other, x, tolerance=1.0)
    assert plain.worst_sample == traced.worst_sample
    assert plain.max_abs_error == pytest.approx(traced.max_abs_error, rel=1e-9)
    assert traced.max_abs_error > 1e-4


def test_a_difference_in_the_last_of_many_samples_is_found():
    """The last batch is smaller than the others."""
    entry = keras.Input((1,))
    model = keras.Model(entry, layers.ReLU(name="r")(entry))
    other = keras.Model(entry, layers.ReLU(max_value=10.0, name="r")(entry))
    x = np.ones((131, 1), np.float32)
    x[130] = 11
    found = fp.equivalence(model, other, x)
    assert (found.samples, found.worst_sample, found.max_abs_error) == (131, 130, 1.0)


rebuild = proof.rebuild
