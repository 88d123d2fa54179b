"""first_difference: the first layer that leaves the reference, and by how much."""

from __future__ import annotations

import numpy as np
import pytest

from fpgaprune.emulate import first_difference, trace
from fpgaprune.errors import DataError

from .designs import mlp

X = np.array([[1.0, 0.5], [-2.0, 0.25], [0.5, 0.5]])


def test_equal_layers_have_no_difference():
    assert first_difference(mlp(), X, trace(mlp(), X)) is None


def test_the_first_layer_that_differs_is_named_with_the_largest_gap():
    reference = trace(mlp(), X)
    reference["fc"][1, 0] += 0.25
    reference["relu"] += 3.0
    found = first_difference(mlp(), X, reference)
    assert (found.layer, found.kind, found.index, found.max_abs) == ("fc", "Dense", (1, 0), 0.25)
    assert found.wanted - found.value == 0.25
    assert found.share == pytest.approx(1 / 6)
    assert str(found).startswith(
        "layer 'fc' (Dense) differs first: by up to 0.25 (4 LSB) at (1, 0), where it gives -1 and"
    )


def test_the_tolerance_is_the_largest_gap_that_counts_as_equal():
    reference = trace(mlp(), X)
    reference["fc"][1, 0] += 0.25
    assert first_difference(mlp(), X, reference, tolerance=0.25) is None
    assert first_difference(mlp(), X, reference, tolerance=0.2).layer == "fc"


def test_a_nan_in_the_reference_is_a_difference():
    reference = trace(mlp(), X)
    reference["fc"][2, 1] = np.nan
    assert first_difference(mlp(), X, reference).index == (2, 1)


def test_layers_without_a_reference_are_passed_over():
    assert first_difference(mlp(), X, {"relu": trace(mlp(), X)["relu"], "other": X}) is None


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ({"other": X}, "names none of the layers of design 'net', which are x, fc, relu"),
        ({"fc": X[:2]}, r"the reference of layer 'fc' has shape \(2, 2\); the layer gives \(3, 2\)"),
    ],
)
def test_references_that_do_not_fit_are_refused(reference, message):
    with pytest.raises(DataError, match=message):
        first_difference(mlp(), X, reference)
