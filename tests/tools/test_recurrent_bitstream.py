"""A GRU that a small FPGA takes in a slow layout: what its bitstream answers, bit for bit."""

import numpy as np
import pytest

from fpgaprune.emulate import emulate
from fpgaprune.errors import ToolError
from fpgaprune.fabric import find_board_router, find_open_tool, golden_bytes, golden_vectors, to_verilog
from fpgaprune.layout import board_design
from fpgaprune.readback import Results, check_bitstream

from ..benchmarks.bench_place_shares import network

pytestmark = pytest.mark.slow


def test_a_gru_that_takes_its_steps_slowly_answers_every_bit_on_an_icebreaker(tmp_path, monkeypatch):
    """The line brings steps faster than the GRU takes them, and its products are in DSP blocks."""
    monkeypatch.setenv("YOWASP_CACHE_DIR", str(tmp_path / "yowasp"))
    try:
        for tool in find_board_router("icebreaker")[1].tools:
            find_open_tool(tool)
    except ToolError as error:
        pytest.skip(str(error))
    design = board_design(network("gru", 1))
    (shape,) = [layer.output_shape for layer in design.layers if not layer.inputs]
    x = np.random.default_rng(3).normal(size=(4, *shape)).astype(np.float32)
    project = to_verilog(design, tmp_path / "rtl", interval=134_272)
    sent, wanted = golden_bytes(project, golden_vectors(project, design, x))
    made = project.make_bitstream("icebreaker", tmp_path / "net.bin", cache=tmp_path / "synth", advise=False)
    found = check_bitstream(made.path, "icebreaker", sent, wanted, 4, Results.of(project.outputs[0]))
    assert (found.differ, found.first, found.cells.first) == (0, None, None)
    assert found.decoded["multipliers"] == 4
    assert len(np.unique(emulate(design, x))) > 4
