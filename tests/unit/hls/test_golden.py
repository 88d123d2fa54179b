"""Golden samples in a project are numbers, not their first six digits."""

import numpy as np

from fpgaprune.design import Design
from fpgaprune.emulate import emulate
from fpgaprune.hls import GOLDEN_INPUTS, GOLDEN_OUTPUTS, layer_of, write_golden
from fpgaprune.values import FixedType


def test_every_number_is_read_back_exactly(tmp_path):
    kind = {"result": FixedType(40, 8)}
    layers = (
        layer_of("in", "Input", (), (3,), kind),
        layer_of("relu", "Activation", ("in",), (3,), kind, attributes={"activation": "relu"}),
    )
    design = Design(name="net", layers=layers, outputs=("relu",), io_type="io_parallel", backend="Vitis")
    x = (np.random.default_rng(0).uniform(-100, 100, (200, 3)) * [1, 1e-3, 1e-6]).astype(np.float32)
    assert write_golden(tmp_path, design, x) == 200
    read = {name: np.loadtxt(tmp_path / name) for name in (GOLDEN_INPUTS, GOLDEN_OUTPUTS)}
    assert np.array_equal(read[GOLDEN_INPUTS].astype(np.float32), x)
    assert np.array_equal(read[GOLDEN_OUTPUTS], emulate(design, x))
