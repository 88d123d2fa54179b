"""Samples and labels that are no real numbers are refused in one line, by every function that takes them."""

import math
import warnings

import numpy as np
import pytest

import fpgaprune as fp
from fpgaprune.design import Design
from fpgaprune.errors import DataError
from fpgaprune.flow.task import check_data
from fpgaprune.hls import layer_of
from fpgaprune.values import MOST_CLASSES, FixedType, class_numbers, real_array

BAD = {
    "nan": np.array([[0.0, math.nan]]),
    "infinity": np.array([[0.0, -math.inf]]),
    "complex": np.array([[1 + 2j, 0]]),
    "text": np.array([["1.5", "2"]]),
    "bytes": np.array([[b"1", b"2"]]),
    "none": np.array([[None, 1.0]]),
    "objects": np.array([[{}, []]], dtype=object),
    "large": np.array([[1e300, 0.0]]),
    "beyond 64 bits": np.array([[2**70, 0]], dtype=object),
    "dates": np.array([["2020-01-01", "2021-01-01"]], dtype="datetime64[D]"),
    "records": np.zeros((1, 2), dtype=[("a", "f4")]),
    "ragged": [[1.0, 2.0], [3.0]],
}


def identity():
    kind = FixedType(16, 6)
    layer = layer_of("x", "Input", (), (2,), {"result": kind})
    linear = layer_of("y", "Activation", ("x",), (2,), {"result": kind}, attributes={"activation": "linear"})
    return Design("identity", (layer, linear), ("y",))


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
@pytest.mark.parametrize(
    "door",
    [
        lambda x: real_array(x, "samples"),
        lambda x: fp.emulate(identity(), x),
        lambda x: check_data("d", {"x_train": x, "y_train": [0], "x_test": np.zeros((1, 2)), "y_test": [0]}),
    ],
    ids=["real_array", "emulate", "data"],
)
def test_what_is_no_real_number_is_refused_in_one_line(door, bad):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(DataError) as caught:
            door(bad)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint64, np.float16, np.float32, np.float64, np.longdouble])
def test_every_real_type_is_taken(dtype):
    x = np.array([[0, 1]], dtype=dtype)
    assert real_array(x, "x").dtype == dtype
    assert fp.emulate(identity(), x).tolist() == [[0.0, 1.0]]


def test_bfloat16_is_taken_as_float32():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    found = real_array(np.array([[0.5, 1.0]], dtype=ml_dtypes.bfloat16), "x")
    assert (found.dtype, found.tolist()) == (np.dtype("float32"), [[0.5, 1.0]])


@pytest.mark.parametrize(
    ("labels", "classes", "said"),
    [
        ([0, 2**62], None, f"wanted class numbers from 0 to {MOST_CLASSES - 1}"),
        ([0, -1], None, "from -1 to 0; wanted class numbers from 0"),
        ([0, 3], 3, "from 0 to 3; wanted class numbers from 0 to 2"),
        ([0.0, 1.5], 3, "hold float64; wanted class numbers, which are whole"),
    ],
)
def test_labels_that_are_no_class_numbers_are_refused(labels, classes, said):
    with pytest.raises(DataError, match=said):
        class_numbers(np.array(labels), "labels", classes)


@pytest.mark.parametrize(
    "labels", [[0, 2**62], [0, -1], np.array([0, 2**63], np.uint64), [[0, 2**62], [1, 1]], [0], ["a", "b"]]
)
def test_data_with_such_labels_are_refused(labels):
    x = np.zeros((2, 3))
    with pytest.raises(DataError, match="y_train"):
        check_data("d", {"x_train": x, "y_train": np.array(labels), "x_test": x, "y_test": np.array([0, 1])})
