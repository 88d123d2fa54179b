"""What the built-in network takes, and which options single layers of it have in hardware."""

import numpy as np
import pytest

from fpgaprune.design import ReuseWarning
from fpgaprune.errors import ConfigError
from fpgaprune.flow.engine import check_flow, foresee_flow, parse_config
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


def test_a_moved_reuse_factor_is_said_before_training():
    settings = parse_config({"select": {"sparsity": 0.5, "granularity": "multiplier(resource, 4)"}}, "flow.toml").select
    with pytest.warns(ReuseWarning, match=r"'conv1' \(9 inputs, 32 outputs\) has reuse factor 3, the nearest to 4"):
        check_units(small_cnn((6, 6, 1), 2), settings, None)
