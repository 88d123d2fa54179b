"""Masks and values go through JSON without losing a bit."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from fpgaprune.errors import LockError
from fpgaprune.train import decode_mask, decode_values, encode_mask, encode_values

SHAPES = hnp.array_shapes(min_dims=0, max_dims=4, max_side=5)


@settings(derandomize=True, deadline=None, max_examples=60)
@given(st.data())
def test_a_mask_and_its_locked_values_come_back(data):
    shape = data.draw(SHAPES)
    mask = data.draw(hnp.arrays(bool, shape))
    held = data.draw(hnp.arrays(np.float32, shape, elements=st.floats(width=32)))
    saved = json.loads(json.dumps({"mask": encode_mask(mask), "values": encode_values(held, mask)}))
    again = decode_mask("w", saved["mask"])
    assert np.array_equal(again, mask)
    values = decode_values("w", saved["values"], again, np.float32)
    assert values[~mask].tobytes() == held[~mask].tobytes()
    assert not values[mask].any()


@pytest.mark.parametrize("bits", ["", "!", "AAAA", "eJwDAAAAAAE="])
def test_a_damaged_mask_is_an_error_that_names_the_weight(bits):
    with pytest.raises(LockError, match="'conv/kernel'"):
        decode_mask("conv/kernel", {"shape": [3, 3], "bits": bits})


def test_values_of_another_mask_are_an_error():
    mask = np.array([True, False])
    with pytest.raises(LockError, match="have 4 bytes; its mask wants 8"):
        decode_values("w", encode_values(np.ones(2, "float32"), mask), np.array([False, False]), np.float32)


@pytest.mark.parametrize(("shape", "wanted"), [([17], 3), ([7], 1), ([8, 3, 1], 3), ([25], 4), ([33], 5)])
def test_a_mask_of_another_size_is_an_error_that_names_both(shape, wanted):
    bits = encode_mask(np.ones(16, bool))["bits"]
    with pytest.raises(LockError) as caught:
        decode_mask("w", {"shape": shape, "bits": bits})
    stated = str(tuple(shape))
    assert str(caught.value) == f"the saved mask for 'w' has 2 bytes; shape {stated} wants {wanted}"


@pytest.mark.parametrize("size", [9, 15, 16])
def test_a_mask_of_as_many_bytes_is_read(size):
    mask = np.arange(size) % 3 == 0
    assert np.array_equal(decode_mask("w", encode_mask(mask)), mask)


def test_a_lock_whose_text_is_long_and_damaged_says_what_to_do():
    with pytest.raises(LockError, match=r"the saved lock of 'w' is damaged: .*; lock the model again with fp.lock"):
        decode_values("w", "AAAA", np.zeros(1, bool), np.float32)
