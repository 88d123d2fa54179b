"""What the built-in network takes, and which options single layers of it have in hardware."""

import keras
import numpy as np
import pytest

from fpgaprune.design import ReuseWarning
from fpgaprune.errors import ConfigError
from fpgaprune.flow.engine import check_flow, foresee_flow, parse_config
from fpgaprune.flow.run import Silent
from fpgaprune.flow.stages import hardware_of
from fpgaprune.flow.task import check_units, small_cnn


@pytest.mark.parametrize(
    ("shape", "is_taken"),
    [((6, 6, 1), True), ((6, 7, 2), True), ((5, 6, 1), False), ((6, 5, 1), False), ((36,), False)],
)
def test_images_of_six_by_six_are_the_smallest(tmp_path, shape, is_taken):
    x, y = np.zeros((4, *shape)), np.array([0, 1, 0, 1])
    np.savez(tmp_path / "d.npz", x_train=x, y_train=y, x_test=x, y_test=y)
    config = parse_config({"data": {"source": str(tmp_path / "d.npz")}}, "flow.toml")
    if is_taken:
        assert check_flow(config).x_train.shape == x.shape
    else:
        with pytest.raises(ConfigError, match=r"6 x 6 or more: name a model with train\.model"):
            check_flow(config)


def test_a_layer_has_the_options_that_are_given_and_no_others():
    config = parse_config({"hls": {"layers": {"conv*": {"weight": "fixed<6,2>"}}}}, "flow.toml")
    assert hardware_of(config, None).layers == {"conv*": {"weight": "fixed<6,2>"}}


@pytest.mark.parametrize(
    ("granularity", "target", "message"),
    [
        ("multiplier", {"strategy": "latency", "reuse_factor": 4}, "leaves it to the synthesis tool"),
        ("multiplier", {"strategy": "distributed_arithmetic"}, "has no multipliers to free"),
        ("block(1, 1, 1, 1, 1)", {}, "has fewer axes than the block"),
    ],
)
def test_units_that_no_weight_has_are_refused_before_training(tmp_path, granularity, target, message):
    x, y = np.zeros((4, 6, 6, 1)), np.array([0, 1, 0, 1])
    np.savez(tmp_path / "d.npz", x_train=x, y_train=y, x_test=x, y_test=y)
    document = {
        "data": {"source": str(tmp_path / "d.npz")},
        "select": {"sparsity": 0.5, "granularity": granularity},
        "target": target,
    }
    config = parse_config(document, "flow.toml")
    with pytest.raises(ConfigError, match=rf"select\.granularity: .*{message}"):
        foresee_flow(config, check_flow(config))


@pytest.mark.parametrize(
    ("shared", "target", "settled"),
    [
        ((6, 6, 2), {}, "verilog"),
        ((6, 6, 2), {"route": "hls"}, None),
        ((6, 6, 2), {"route": "verilog"}, "verilog"),
        # hls4ml takes this one.
        ((1, 1, 2), {}, "auto"),
    ],
)
def test_the_route_auto_is_our_verilog_for_a_network_that_hls4ml_does_not_take(tmp_path, shared, target, settled):
    """A number for each channel is multiplied with an image; hls4ml reads past the end of the numbers."""
    image = keras.Input((6, 6, 2))
    mean = keras.layers.GlobalAveragePooling2D(keepdims=True)(image)
    other = image if shared == (6, 6, 2) else mean
    product = keras.layers.Multiply(name="odd")([other, mean])
    found = keras.layers.Dense(2, activation="softmax")(keras.layers.Flatten()(product))
    model = keras.Model(image, found)
    model.compile("adam", "sparse_categorical_crossentropy")
    model.save(tmp_path / "mine.keras")
    x, y = np.zeros((4, 6, 6, 2), np.float32), np.array([0, 1, 0, 1])
    np.savez(tmp_path / "d.npz", x_train=x, y_train=y, x_test=x, y_test=y)
    document = {
        "data": {"source": str(tmp_path / "d.npz")},
        "train": {"model": str(tmp_path / "mine.keras")},
        "target": {"part": "pynq-z2", **target},
    }
    config = parse_config(document, "flow.toml")
    said = []

    class Said(Silent):
        def stage(self, name, state, note="", seconds=None):
            said.append((name, state, note))

    if settled is None:
        with pytest.raises(ConfigError, match="cannot become this hardware: layer 'odd'"):
            foresee_flow(config, check_flow(config), Said())
    else:
        assert foresee_flow(config, check_flow(config), Said()).target.route == settled
    changed = settled == "verilog" and not target
    assert [(name, state) for name, state, _ in said] == [("route", "said")] * changed
    assert all("layer 'odd' (Merge)" in note and "choose" not in note for _, _, note in said)


def test_a_moved_reuse_factor_is_said_before_training():
    settings = parse_config({"select": {"sparsity": 0.5, "granularity": "multiplier(resource, 4)"}}, "flow.toml").select
    with pytest.warns(ReuseWarning, match=r"'conv1' \(9 inputs, 32 outputs\) has reuse factor 3, the nearest to 4"):
        check_units(small_cnn((6, 6, 1), 2), settings, None)
