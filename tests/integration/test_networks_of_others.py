"""A network that somebody else published, from its file to the bits of our Verilog, where its file is at hand."""

from pathlib import Path

import numpy as np
import onnx
import pytest

import fpgaprune as fp

UNSW = (
    Path(__file__).resolve().parents[2]
    / "../shared/models/fastmachinelearning_QONNX_model_zoo/UNSW_NB15/unsw_nb15_mlp_w2a2/unsw_nb15-mlp-w2a2.onnx"
)


@pytest.mark.slow
@pytest.mark.skipif(not UNSW.exists(), reason=f"{UNSW.name} of the QONNX model zoo is not beside the checkout")
def test_the_verilog_of_unsw_nb15_gives_the_bits_of_qonnx(tmp_path, monkeypatch):
    wrapper = pytest.importorskip("qonnx.core.modelwrapper", reason="qonnx is not installed")
    shapes = pytest.importorskip("qonnx.transformation.infer_shapes", reason="qonnx is not installed")
    execution = pytest.importorskip("qonnx.core.onnx_exec", reason="qonnx is not installed")
    x = np.random.default_rng(0).choice(np.float32([-1, 1]), (300, 600))
    # What onnxruntime reads; qonnx makes a model of each node.
    monkeypatch.setattr(onnx, "IR_VERSION", 10)
    model = onnx.load(UNSW)
    del model.graph.value_info[:]
    for value in (model.graph.input[0], model.graph.output[0]):
        value.type.tensor_type.shape.dim[0].dim_value = len(x)
    theirs = wrapper.ModelWrapper(model).transform(shapes.InferShapes())
    wanted = execution.execute_onnx(theirs, {theirs.graph.input[0].name: x})[theirs.graph.output[0].name]
    design = fp.make_design(fp.load(UNSW).model, fp.Target.of("xc7z020clg400-1", backend="Verilog"), x)
    assert np.array_equal(fp.emulate(design, x), wanted)
    assert np.array_equal(fp.to_verilog(design, tmp_path / "rtl").simulate(x).output, wanted)
    assert 0 < (wanted > 0).mean() < 1
