"""A weight path means one variable of an optimizer, or is an error."""

from contextlib import ExitStack

import keras
import numpy as np
import pytest

import fpgaprune as fp
from fpgaprune.errors import LockError
from fpgaprune.train import resolve_places


def variables_of(*paths):
    made = []
    for path in paths:
        *scopes, name = path.split("/")
        with ExitStack() as stack:
            for scope in scopes:
                stack.enter_context(keras.name_scope(scope))
            made.append(keras.Variable(np.zeros(2, "float32"), name=name))
    return made


def places(masks, variables, weights=None, positions=None):
    return resolve_places(fp.MaskSet(masks), variables, weights or {}, positions or {})


MASK = np.array([True, False])


def test_a_path_is_found_behind_the_name_of_a_sequential_and_in_a_nested_model():
    variables = variables_of("net/conv/kernel", "dense/kernel")
    assert places({"conv/kernel": MASK, "encoder/dense/kernel": MASK}, variables) == {
        "conv/kernel": 0,
        "encoder/dense/kernel": 1,
    }


def test_identity_goes_before_names():
    variables = variables_of("a/kernel", "b/kernel")
    assert places({"a/kernel": MASK}, variables, weights={"a/kernel": variables[1]}) == {"a/kernel": 1}


@pytest.mark.parametrize(
    ("path", "mask", "message"),
    [
        ("c/kernel", MASK, "fits no variable of the optimizer; did you mean"),
        ("kernel", MASK, r"fits 2 variables \(a/kernel, b/kernel\)"),
        ("a/kernel", np.ones(3, bool), r"has shape \(3,\); the weight has \(2,\)"),
    ],
)
def test_what_cannot_be_told_is_an_error(path, mask, message):
    with pytest.raises(LockError, match=message):
        places({path: mask}, variables_of("a/kernel", "b/kernel"))


def test_a_saved_position_goes_before_names_and_one_beyond_the_end_is_not_taken():
    variables = variables_of("a/kernel", "b/kernel")
    assert places({"a/kernel": MASK}, variables, positions={"a/kernel": 1}) == {"a/kernel": 1}
    assert places({"a/kernel": MASK}, variables, positions={"a/kernel": 2}) == {"a/kernel": 0}
    assert places({"a/kernel": MASK}, variables, positions={"a/kernel": 0, "b/kernel": 1}) == {"a/kernel": 0}


def test_a_weight_that_the_optimizer_does_not_train_is_an_error():
    known, other = variables_of("a/kernel", "b/kernel")
    with pytest.raises(LockError, match="weight 'b/kernel' is not among the variables that the optimizer trains"):
        places({"b/kernel": MASK}, [known], weights={"b/kernel": other})


def test_the_whole_path_goes_before_one_that_only_ends_alike():
    variables = variables_of("net/a/kernel", "a/kernel")
    assert places({"a/kernel": MASK}, variables) == {"a/kernel": 1}
