"""From a module of PyTorch, and back to its `state_dict`; a stand-in exports where PyTorch is not installed."""

import shutil
import sys
import types
from pathlib import Path

import numpy as np
import onnx
import pytest

import fpgaprune as fp
from fpgaprune.errors import MaskError, ModelImportError
from tests.unit.frontends.graphs import graph, node, numbers, small_cnn

FILES = Path(__file__).parent / "pytorch"


def stored(path):
    return {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in onnx.load(path).graph.initializer}


def test_weights_go_back_with_the_names_and_the_layout_of_pytorch(tmp_path):
    path = small_cnn(tmp_path / "net.onnx")
    net, wanted = fp.load(path), stored(path)
    state = net.state()
    assert state.keys() == {name for name in wanted if "." in name}
    assert all(np.array_equal(state[name], wanted[name]) for name in state)


def test_what_was_trained_and_locked_goes_back(tmp_path):
    net = fp.load(small_cnn(tmp_path / "net.onnx"))
    masks = net.locks(["features.4.weight[13, 2]", "fc1.weight[3, 17]"])
    net.model.compile("adam", "mse")
    fp.lock(net.model, masks)
    net.model.fit(np.ones((4, 8, 8, 1)), np.ones((4, 10)), verbose=0)
    net.save_state(tmp_path / "weights.npz", net.model)
    with np.load(tmp_path / "weights.npz") as state:
        assert not state["features.4.weight"][13, 2].any()
        assert state["fc1.weight"][3, 17] == 0
        assert np.count_nonzero(state["fc1.weight"] == 0) == 1
        assert not np.array_equal(state["fc2.weight"], net.sources["fc2/kernel"].name)


def test_a_weight_that_the_exporter_transposed_goes_back_as_it_was():
    net = fp.load(FILES / "set_script.onnx")
    state = net.state()
    kernel = fp.weight_arrays(net.model)["phi.0/kernel"]
    assert np.array_equal(state["phi.0.weight"], kernel.T)


def test_weights_that_are_no_longer_those_of_the_module_are_refused(tmp_path):
    with pytest.raises(MaskError, match=r"'stem\.0\.weight' was joined with another layer.*PRESERVE"):
        fp.load(FILES / "residual_script.onnx").state()
    path = graph(
        tmp_path / "scaled.onnx",
        [node("Gemm", ["x", "fc.weight"], "y", transB=1, alpha=0.5)],
        {"fc.weight": numbers(3, 4)},
        {"x": ("n", 4)},
        {"y": ("n", 3)},
    )
    with pytest.raises(MaskError, match=r"'fc\.weight' was joined with another layer, or scaled"):
        fp.load(path).state()
    net = fp.load(small_cnn(tmp_path / "net.onnx"))
    net.model.compile("adam", "mse")
    fp.lock(net.model, net.locks(["features.4.weight[0:4]"]))
    small = fp.apply_removal(net.model, fp.plan_removal(net.model))
    with pytest.raises(MaskError, match=r"'features\.4/kernel' has shape \(3, 3, 8, 16\) in the file's network"):
        net.state(small)


class Module:
    """Stands for a module of PyTorch."""

    training = True

    def eval(self):
        self.training = False

    def train(self, mode):
        self.training = mode


def test_a_module_comes_in_by_its_export_and_keeps_its_mode(tmp_path, monkeypatch):
    module, seen = Module(), []

    def export(given, inputs, path, dynamo, training):
        assert (dynamo, training) == (False, "preserve")
        seen.append((given.training, inputs))
        shutil.copyfile(FILES / "small_dynamo.onnx", path)

    modes = types.SimpleNamespace(PRESERVE="preserve")
    torch = types.SimpleNamespace(onnx=types.SimpleNamespace(export=export, TrainingMode=modes))
    monkeypatch.setitem(sys.modules, "torch", torch)
    net = fp.from_torch(module, "example")
    assert seen == [(False, ("example",))]
    assert module.training
    assert net.model.name == "Module"
    torch.onnx.export = lambda *_, **__: 1 / 0
    with pytest.raises(ModelImportError, match="PyTorch cannot export Module: division by zero"):
        fp.from_torch(module, "example")
    assert module.training


def test_without_pytorch_it_says_so(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ModelImportError, match="PyTorch is not installed here; export the module elsewhere"):
        fp.from_torch(Module(), None)
