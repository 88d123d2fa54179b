"""A model is folded and observed once for several designs, and each is the one that the model alone becomes."""

import keras
import numpy as np
from keras import layers

import fpgaprune as fp
from fpgaprune.lowering import Lowering


def test_each_design_is_that_of_the_model_alone(tmp_path):
    keras.utils.set_random_seed(1)
    entry = keras.Input((6, 6, 2), name="image")
    x = layers.BatchNormalization(name="bn")(layers.SeparableConv2D(3, 3, activation="relu", name="conv")(entry))
    x = layers.GRU(2, name="gru")(layers.Reshape((4, 12), name="steps")(x))
    model = keras.Model(entry, layers.Dense(3, name="head")(x), name="network")
    x = np.random.default_rng(2).normal(size=(30, 6, 6, 2)).astype("float32")
    lowering = Lowering(model, x)
    # The first one's weights are hardly more than signs.
    asked = [
        ("xc7z020clg400-1", "io_parallel", fp.Precision(2, 3, 8), {}),
        ("xczu9eg-ffvb1156-2-e", "io_stream", fp.Precision(8, 8, 16), {"head": {"weight": "fixed<9,4>"}}),
        ("xc7z020clg400-1", "io_parallel", fp.Precision(8, 8, 16), {}),
    ]
    for part, io_type, precision, own in asked:
        target = fp.Target.of(part, io_type=io_type)
        made = {"made": lowering.design(target, precision, layers=own)}
        made["alone"] = fp.make_design(model, target, x, precision, layers=own)
        for name, design in made.items():
            design.save(tmp_path / name / "design.json")
        for kind in ("json", "npz"):
            one, other = (tmp_path / name / f"design.{kind}" for name in made)
            assert one.read_bytes() == other.read_bytes()
