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


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def gru_of_torch(state, x, layer):
    """A layer of `gru` as PyTorch documents it: gates r, z, n, and r times the state's part of n."""
    w, u, b, c = (state[f"gru.{kind}_l{layer}"] for kind in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"))
    h, steps = np.zeros((len(x), u.shape[1])), []
    for step in x.transpose(1, 0, 2):
        (r, z, n), (hr, hz, hn) = np.split(step @ w.T + b, 3, axis=1), np.split(h @ u.T + c, 3, axis=1)
        z = sigmoid(z + hz)
        h = (1 - z) * np.tanh(n + sigmoid(r + hr) * hn) + z * h
        steps.append(h)
    return np.stack(steps, axis=1)


def lstm_of_torch(state, x, layer=0):
    """A layer of `lstm` as PyTorch documents it, gates i, f, g, o."""
    w, u, b, c = (state[f"lstm.{kind}_l{layer}"] for kind in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"))
    h, steps = np.zeros((len(x), u.shape[1])), []
    cell = h
    for step in x.transpose(1, 0, 2):
        i, f, g, o = np.split(step @ w.T + b + h @ u.T + c, 4, axis=1)
        cell = sigmoid(f) * cell + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(cell)
        steps.append(h)
    return np.stack(steps, axis=1)


def both_ways(layer_of_torch, state, x, layer):
    """A layer that reads its steps in both directions."""
    forwards, backwards = layer_of_torch(state, x, layer), layer_of_torch(state, x[:, ::-1], f"{layer}_reverse")
    return np.concatenate([forwards, backwards[:, ::-1]], axis=2)


@pytest.mark.parametrize("exporter", ["script", "dynamo"])
def test_trained_recurrent_layers_go_back_in_the_order_of_gates_of_pytorch(exporter):
    net = fp.load(FILES / f"recurrent_{exporter}.onnx")
    rng = np.random.default_rng(0)
    for weight in net.model.weights:
        weight.assign(rng.normal(size=weight.shape, scale=0.5))
    x = rng.normal(size=(5, 7, 4)).astype("float32")
    state = net.state(net.model)
    last = lstm_of_torch(state, gru_of_torch(state, gru_of_torch(state, x, 0), 1))[:, -1]
    assert np.allclose(last @ state["fc.weight"].T + state["fc.bias"], net.model(x), atol=1e-5)
    assert state["gru.weight_ih_l1"].shape == (18, 6)
    masks = net.locks(["gru.weight_hh_l0[7, 2]", "gru.bias_hh_l1[3]"])
    whole = net.locks(["gru.bias_ih_l1"])[net.weight_path("gru.bias_hh_l1")]
    assert (~whole).sum(axis=1).tolist() == [18, 0]
    net.model.compile("adam", "mse")
    fp.lock(net.model, masks)
    state = net.state(net.model)
    assert state["gru.weight_hh_l0"][7, 2] == 0 == state["gru.bias_hh_l1"][3]
    assert sum(np.count_nonzero(array == 0) for name, array in state.items() if name != "lstm.bias_hh_l0") == 2


@pytest.mark.parametrize("exporter", ["script", "dynamo"])
def test_trained_layers_of_both_directions_go_back(exporter):
    net = fp.load(FILES / f"both_ways_{exporter}.onnx")
    rng = np.random.default_rng(0)
    for weight in net.model.weights:
        weight.assign(rng.normal(size=weight.shape, scale=0.5))
    x = rng.normal(size=(5, 7, 4)).astype("float32")
    state = net.state(net.model)
    steps = both_ways(lstm_of_torch, state, both_ways(gru_of_torch, state, x, 0), 0)
    last = [lstm_of_torch(state, steps[:, ::way], f"1{tail}")[:, -1] for way, tail in ((1, ""), (-1, "_reverse"))]
    found = np.concatenate(last, axis=1) @ state["fc.weight"].T + state["fc.bias"]
    assert np.allclose(found, net.model(x), atol=1e-5)
    masks = net.locks(["gru.weight_hh_l0_reverse[7, 2]", "lstm.weight_ih_l1_reverse[3]"])
    net.model.compile("adam", "mse")
    fp.lock(net.model, masks)
    state = net.state(net.model)
    assert state["gru.weight_hh_l0_reverse"][7, 2] == 0
    assert not state["lstm.weight_ih_l1_reverse"][3].any()


def test_equal_parameters_that_pytorch_stores_once_go_back_apart(tmp_path):
    """The mean of a new BatchNorm is zero, as its bias is, and the exporter stores one of them."""
    path = graph(
        tmp_path / "net.onnx",
        [
            node("Identity", ["bn.bias"], "bn.running_mean"),
            node("Identity", ["bn.weight"], "bn.running_var"),
            node("BatchNormalization", ["x", "bn.weight", "bn.bias", "bn.running_mean", "bn.running_var"], "y"),
        ],
        {"bn.weight": np.ones(4, np.float32), "bn.bias": np.zeros(4, np.float32)},
        {"x": ("n", 4)},
        {"y": ("n", 4)},
    )
    net = fp.load(path)
    for number, weight in enumerate(net.model.weights):
        weight.assign(np.full(4, number))
    assert {name: array[0] for name, array in net.state(net.model).items()} == {
        "bn.weight": 0,
        "bn.bias": 1,
        "bn.running_mean": 2,
        "bn.running_var": 3,
    }


def test_one_weight_of_two_layers_goes_back_only_while_they_are_equal(tmp_path):
    nodes = [node("Gemm", ["x", "fc.weight"], "h", transB=1), node("Gemm", ["h", "fc.weight"], "y", transB=1)]
    net = fp.load(graph(tmp_path / "net.onnx", nodes, {"fc.weight": numbers(4, 4)}, {"x": ("n", 4)}, {"y": ("n", 4)}))
    assert np.array_equal(net.state()["fc.weight"], numbers(4, 4))
    net.model.weights[0].assign(np.ones((4, 4)))
    with pytest.raises(MaskError, match=r"'fc\.weight' is one weight in the file and several in Keras, which now"):
        net.state()


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
