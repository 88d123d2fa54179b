"""What two designs say differently: names count for nothing, a left-out entry only where it says nothing."""

from dataclasses import replace

import pytest

from fpgaprune.design.operations import LookUp, Map
from fpgaprune.hls.differences import design_differences
from tests.unit.estimate.designs import mlp


def with_layer(name, **changes):
    """The design with something else in the layer `name`."""
    design = mlp()
    layers = tuple(replace(layer, **changes) if layer.name == name else layer for layer in design.layers)
    return replace(design, layers=layers)


def test_names_of_layers_make_no_difference():
    design = mlp()
    renamed = tuple(
        replace(layer, name=f"my_{layer.name}", inputs=tuple(f"my_{name}" for name in layer.inputs))
        for layer in design.layers
    )
    assert design_differences(design, replace(design, layers=renamed, outputs=("my_softmax",))) == ()


def test_numbers_are_compared_as_float32():
    one, other, third = (with_layer("relu", operation=Map("leaky_relu", slope)) for slope in (0.1, 0.1 + 1e-12, 0.2))
    assert design_differences(one, other) == ()
    assert [found.what for found in design_differences(one, third)] == ["parameter"]


def test_another_operation_is_a_difference_in_each_of_its_fields():
    (found,) = design_differences(mlp(), with_layer("relu", operation=Map("relu6")))
    assert str(found) == "layer 'relu': function differs: relu and relu6"
    found = design_differences(mlp(), with_layer("relu", operation=LookUp("tanh", 1024)))
    assert {each.what for each in found} == {"operation", "function", "table_size", "signed_index"}


def test_integers_are_counted_and_the_first_is_named():
    raw = mlp()["fc1"].weights["weight"]
    changed = raw.copy()
    changed[2, 3] += 1
    changed[5, 0] += 1
    weights = {**mlp()["fc1"].weights, "weight": changed}
    (found,) = design_differences(mlp(), with_layer("fc1", weights=weights))
    assert (found.layer, found.what, found.count) == ("fc1", "weights.weight", 2)
    assert str(found) == (
        f"layer 'fc1': weights.weight differs in 2 places, first: {raw[2, 3]} at (2, 3) and {raw[2, 3] + 1} there"
    )


@pytest.mark.parametrize(("what", "value"), [("reuse_factor", 4), ("strategy", "resource")])
def test_another_layout_is_a_difference(what, value):
    (found,) = design_differences(mlp(), with_layer("fc2", **{what: value}))
    assert (found.layer, found.what, found.other) == ("fc2", what, str(value))
    assert design_differences(mlp(), replace(mlp(), backend="Vitis"))[0].what == "backend"
