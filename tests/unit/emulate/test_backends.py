"""Which layers are emulated for a backend with `ac_fixed`."""

import numpy as np
import pytest

from fpgaprune.emulate import emulate
from fpgaprune.errors import UnsupportedLayerError

from .designs import design, layer


@pytest.mark.parametrize("implementation", ["latency", "legacy", "argmax"])
def test_other_variants_of_softmax_are_refused(implementation):
    softmax = layer("s", "Softmax", "x", (2,), attributes={"implementation": implementation})
    wanted = r"layer 's' \(Softmax\) has no emulation for backend Quartus: of its variants only"
    with pytest.raises(UnsupportedLayerError, match=wanted):
        emulate(design(layer("x", "Input", None, (2,)), softmax, backend="Quartus"), np.zeros((1, 2)))


def test_a_layer_that_is_no_softmax_may_have_any_implementation():
    relu = layer("r", "Activation", "x", (2,), attributes={"activation": "relu", "implementation": "linebuffer"})
    got = emulate(design(layer("x", "Input", None, (2,)), relu, backend="Quartus"), [[1.5, -1.5]])
    assert got.tolist() == [[1.5, 0.0]]
