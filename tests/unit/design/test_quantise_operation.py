"""`Quantise`: types of single channels, in a file and out of it."""

import re

import pytest

from fpgaprune.design import Quantise, operation_to_json, read_operation
from fpgaprune.errors import DesignError
from fpgaprune.values import FixedType

FIVE = FixedType(5, 2, True, "RND", "SAT")
TWO = Quantise((str(FIVE), "0"), (0, 1, 0))


def test_a_type_for_each_channel_repeats_over_positions():
    assert TWO.types((2, 3)) == (FIVE, None, FIVE) * 2
    assert Quantise(("0", str(FIVE)), (0, 1, 1, 0)).types((2, 2)) == (None, FIVE, FIVE, None)


def test_it_is_the_same_from_its_file():
    assert read_operation(operation_to_json(TWO)) == TWO
    many = Quantise((str(FIVE),), (0,) * 500)
    assert read_operation(operation_to_json(many)) == many


@pytest.mark.parametrize(
    ("operation", "message"),
    [
        (Quantise(("0",), (0, 0)), "it has types for 2 values; wanted 3 (channels) or 6"),
        (Quantise(("0",), (0, 0, 1)), "it names a type beyond the 1 that it has"),
        (Quantise(("0",), (0, 0, -1)), "it names a type beyond the 1 that it has"),
        (Quantise(("fixed<99,1>",), (0, 0, 0)), "fixed-point width is 99 bits"),
    ],
)
def test_types_that_fit_no_sample_are_refused(operation, message):
    with pytest.raises(DesignError, match=re.escape(message)):
        operation.types((2, 3))
