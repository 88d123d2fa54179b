"""What locked elements are held at, and which values cannot be held."""

import numpy as np
import pytest

import fpgaprune as fp
from fpgaprune.errors import LockError
from fpgaprune.train import held_values, read

from ..select.fakes import FakeVariable

CURRENT = np.array([[1.5, -2.0], [3.0, np.nan]], np.float32)
MASKS = fp.MaskSet({"a/kernel": np.array([[False, True], [False, True]])})


def weights():
    return {"a/kernel": FakeVariable("a/kernel", CURRENT.copy())}


def test_zero_and_current_hold_what_they_say_in_the_type_of_the_weight():
    (zero,) = held_values("zero", MASKS, weights()).values()
    assert (zero.dtype, zero.tolist()) == (np.float32, [[0, 0], [0, 0]])
    (current,) = held_values("current", MASKS, weights()).values()
    assert current.tobytes() == CURRENT.tobytes()


def test_given_values_are_spread_over_the_weight_and_leave_it_alone():
    known = weights()
    (held,) = held_values({"a/kernel": [0.25, 4]}, MASKS, known).values()
    assert (held.dtype, held.tolist()) == (np.float32, [[0.25, 4], [0.25, 4]])
    held[0, 0] = 9
    assert known["a/kernel"].numpy().tobytes() == CURRENT.tobytes()
    copy = read(known["a/kernel"])
    copy[:] = 0
    assert known["a/kernel"].numpy().tobytes() == CURRENT.tobytes()


def test_a_weight_of_which_nothing_is_locked_needs_no_values():
    masks = fp.MaskSet({"a/kernel": np.ones((2, 2), bool)})
    (held,) = held_values({}, masks, weights()).values()
    assert held.tolist() == [[0, 0], [0, 0]]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ("ones", "values 'ones' is unknown; wanted 'zero', 'current' or weight path to array"),
        (3, "values is a int; wanted 'zero', 'current' or weight path to array"),
        ({"b/kernel": 1.0, "a/kernel": 1.0}, "values for 'b/kernel' have no mask; did you mean a/kernel?"),
        ({}, "values for 'a/kernel' are missing; give an array for each mask, or 'zero' or 'current'"),
        ({"a/kernel": [1, 2, 3]}, r"values for 'a/kernel' have shape (3,); wanted numbers that broadcast to (2, 2)"),
        ({"a/kernel": "x"}, r"values for 'a/kernel' have shape (); wanted numbers that broadcast to (2, 2)"),
        (
            {"a/kernel": [[np.nan, 1], [np.inf, 1]]},
            "values for 'a/kernel' hold 2 locked elements at NaN or infinity; wanted finite numbers: use values='zero' "
            "or mend the weights first",
        ),
    ],
)
def test_what_cannot_be_held_is_an_error(values, message):
    with pytest.raises(LockError) as caught:
        held_values(values, MASKS, weights())
    assert str(caught.value) == message


def test_nan_in_a_free_element_may_stay():
    assert held_values({"a/kernel": [[1, np.nan], [1, np.inf]]}, MASKS, weights())
