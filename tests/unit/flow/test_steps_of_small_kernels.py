"""A kernel that BatchNorm made small is trained in steps of its own size."""

import keras
import numpy as np
import pytest
from keras import layers

from fpgaprune.flow.engine import parse_config
from fpgaprune.flow.stages import stage_named
from fpgaprune.flow.task import start_session
from fpgaprune.frontends import load_keras
from fpgaprune.lowering import fold
from fpgaprune.values import MaskSet

from .stage_runs import stage_context

DEVIATION, RATE = 250.0, 0.01


@pytest.fixture(scope="module")
def given():
    """A convolution with a BatchNorm that makes its kernel small, and pixels of 0 to 255."""
    start_session(1)
    model = keras.Sequential(
        [
            keras.Input((6, 6, 1)),
            layers.Conv2D(3, 3, name="conv", use_bias=False),
            layers.BatchNormalization(name="bn", epsilon=0.0),
            layers.ReLU(),
            layers.Flatten(),
            layers.Dense(2, name="out"),
        ],
        name="mine",
    )
    model.get_layer("bn").moving_variance.assign(np.full(3, DEVIATION**2, np.float32))
    x = np.random.default_rng(1).integers(0, 256, (32, 6, 6, 1)).astype("float32")
    y = (x.mean((1, 2, 3)) > 127).astype(np.int64)
    return model, (x, y)


def moved(given, folder, stage, training):
    """By how much the stage moves the kernel at most, over the kernel's size."""
    model, samples = given
    document = {"hls": {"weight_bits": 16, "activation_bits": 16, "precision": "widths"}, "name": "mine"}
    config = parse_config({**document, **training}, "flow.toml")
    context = stage_context(folder, config, model, {}, samples, "removed")
    with context.run.locked():
        MaskSet({}).save(context.run.file("selection.npz"))
        stage_named(stage).run(context)
    before = fold(model).get_layer("conv").kernel.numpy()
    name = {"finetune": "finetuned", "quantise": "quantised"}[stage]
    after = load_keras(context.run.file(f"{name}.keras")).get_layer("conv").kernel.numpy()
    return np.abs(after - before).max() / np.sqrt(np.mean(before**2))


TRAINING = {"epochs": 2, "learning_rate": RATE}


@pytest.mark.parametrize(
    ("stage", "training"),
    [
        ("finetune", {"finetune": {**TRAINING, "batch_size": 8, "quantised": True}}),
        ("quantise", {"finetune": {"batch_size": 8}, "quantise": TRAINING}),
    ],
    ids=["finetune", "quantise"],
)
def test_eight_steps_move_it_by_a_part_of_its_size(given, tmp_path, stage, training):
    share = moved(given, tmp_path, stage, training)
    # Of the kernel before the fold, a step moves at most the rate; 3.5 times its size without shorter steps.
    assert 0 < share < 8 * 1.1 * RATE / np.sqrt(np.mean(given[0].get_layer("conv").kernel.numpy() ** 2))
