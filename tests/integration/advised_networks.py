"""Ten small networks, each with a flow of its own kind on a part that is too small for it."""

from __future__ import annotations

import json
import shutil
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from fpgaprune.design import Design, ReuseWarning
from fpgaprune.fabric import family_of
from fpgaprune.flow import Flow, MeasureConfig, RunDirectory, TargetConfig, changed_flow, run_flow
from fpgaprune.flow.engine import read_config
from fpgaprune.flow.stages import EstimateConfig
from fpgaprune.hls import StrategyWarning
from fpgaprune.layout import FLOW, Advice, DesignLayout, Suggestion, choose_layout, flow_text
from fpgaprune.measure import Estimate
from fpgaprune.target import find_part

Case = tuple[Callable[[], Any], dict[str, Any]]
SMALL = "xc7s6"


def _model(inputs: Any, x: Any) -> Any:
    import keras

    x = keras.layers.Flatten()(x)
    return keras.Model(inputs, keras.layers.Dense(3, name="logits")(x))


def _image(*stack: Any, size: tuple[int, ...] = (8, 8, 2)) -> Any:
    import keras

    inputs = x = keras.Input(size, name="x")
    for layer in stack:
        x = layer(x)
    return _model(inputs, x)


def _cnn() -> Any:
    from keras import layers

    return _image(
        layers.Conv2D(8, 3, padding="same", name="conv1"),
        layers.BatchNormalization(name="bn1"),
        layers.ReLU(name="relu1"),
        layers.MaxPooling2D(name="pool1"),
        layers.Conv2D(12, 3, padding="same", name="conv2"),
        layers.ReLU(name="relu2"),
        layers.MaxPooling2D(name="pool2"),
    )


def _wave() -> Any:
    from keras import layers

    return _image(
        layers.Conv1D(8, 5, padding="same", activation="relu", name="conv1"),
        layers.MaxPooling1D(name="pool1"),
        layers.Conv1D(16, 5, activation="relu", name="conv2"),
        layers.MaxPooling1D(4, name="pool2"),
        size=(32, 2),
    )


def _mlp() -> Any:
    from keras import layers

    return _image(
        layers.Dense(32, activation="relu", name="fc1"), layers.Dense(24, activation="relu", name="fc2"), size=(24,)
    )


def _separable() -> Any:
    from keras import layers

    return _image(
        layers.Conv2D(8, 3, activation="relu", name="conv1"),
        layers.DepthwiseConv2D(3, padding="same", name="deep"),
        layers.ReLU(name="relu"),
        layers.Conv2D(16, 1, activation="relu", name="point"),
        layers.GlobalAveragePooling2D(name="mean"),
    )


def _residual() -> Any:
    import keras
    from keras import layers

    inputs = keras.Input((8, 8, 2), name="x")
    x = layers.Conv2D(8, 3, padding="same", activation="relu", name="first")(inputs)
    y = layers.Conv2D(8, 3, padding="same", activation="relu", name="left")(x)
    y = layers.Conv2D(8, 3, padding="same", name="right")(y)
    x = layers.ReLU(name="sum_relu")(layers.Add(name="sum")([x, y]))
    return _model(inputs, layers.MaxPooling2D(4, name="pool")(x))


def _branches() -> Any:
    import keras
    from keras import layers

    inputs = keras.Input((8, 8, 2), name="x")
    sides = [layers.Conv2D(8, size, padding="same", activation="relu", name=f"c{size}")(inputs) for size in (1, 3)]
    x = layers.Concatenate(name="join")(sides)
    return _model(inputs, layers.MaxPooling2D(2, name="pool")(x))


def _gru() -> Any:
    from keras import layers

    return _image(layers.GRU(10, name="gru"), layers.Dense(12, activation="relu", name="fc"), size=(6, 4))


ONE_TYPE = {"hls": {"precision": "fixed<16,6>"}}
OWN_LAYERS = {
    "hls": {
        "layers": {
            "fc1": {"strategy": "latency", "weight_bits": 6},
            "fc*": {"reuse_factor": 1},
            "logits": {"weight": "fixed<6,1>"},
        }
    }
}
CASES: dict[str, Case] = {
    "cnn": (_cnn, {"select": {"sparsity": 0.6}}),
    "wave": (_wave, ONE_TYPE | {"select": {"sparsity": {"conv1/kernel": 0.7, "*/kernel": 0.2}}}),
    "mlp": (_mlp, OWN_LAYERS | {"select": {"sparsity": 0.3, "granularity": "weight", "scope": "layer"}}),
    "parallel": (_mlp, {"target": {"io_type": "io_parallel"}, "select": {"sparsity": 0.0}}),
    "separable": (_separable, {"select": {"sparsity": 0.4, "criterion": "taylor"}}),
    "residual": (_residual, {"select": {"filters": 0.25, "sparsity": 0.4}}),
    "branches": (_branches, {"hls": {"precision": "auto", "max_loss": "20 %"}, "target": {"clock_ns": 8.0}}),
    "gru": (_gru, {"target": {"io_type": "io_parallel"}, "hls": {"activation_bits": 10, "weight_bits": 10}}),
    "rounded": (_cnn, {"finetune": {"quantised": True}, "hls": {"weight_bits": 6}, "select": {"sparsity": 0.5}}),
    "shared": (
        _wave,
        {
            "target": {"strategy": "resource", "reuse_factor": 2},
            "select": {"sparsity": 0.5, "granularity": "multiplier"},
            "measure": {"families": [], "interval": 400, "share": 0.7},
        },
    ),
}


def ran(name: str, folder: Path, part: str = SMALL) -> RunDirectory:
    """The run of the network `name`."""
    make, sections = CASES[name]
    flow = folder / "flow.toml"
    return _made(read_config(written(flow, make(), sections, part)), folder / "run")


def _made(config: Flow, folder: Path) -> RunDirectory:
    """The run of `config` in `folder`, whatever it warns of: a factor that was moved, zeros that save nothing."""
    with warnings.catch_warnings():
        for kind in (ReuseWarning, StrategyWarning):
            warnings.simplefilter("ignore", kind)
        return run_flow(config, folder)


def written(flow: Path, model: Any, sections: dict[str, Any], part: str) -> Path:
    """`flow`, a file that prunes `model`, and beside it its model and its samples."""
    rng = np.random.default_rng(0)
    x = rng.random((96, *model.input_shape[1:]), dtype=np.float32)
    y = (x.reshape(96, -1).mean(axis=1) * 400).astype(np.int64) % 3
    np.savez(flow.with_name("data.npz"), x_train=x, y_train=y, x_test=x[:32], y_test=y[:32])
    model.save(flow.with_name("model.keras"))
    plain: dict[str, Any] = {
        "name": "net",
        "data": {"source": "data.npz"},
        "train": {"model": "model.keras"},
        "finetune": {"epochs": 1},
        "hls": {"simulate": 0},
        "verdict": {"max_loss": "1000 %"},
        "target": {"part": part},
    }
    own = {
        key: {**plain.get(key, {}), **sections.get(key, {})} for key in plain.keys() | sections.keys() if key != "name"
    }
    flow.write_text(flow_text({"name": plain["name"], **own}))
    return flow


def advice_of(run: RunDirectory) -> Advice:
    """What the run advises."""
    return Advice.from_json(json.loads(run.file("estimate.json").read_text())["advice"])


def followed(
    run: RunDirectory, folder: Path, wanted: Callable[[Suggestion], bool] = lambda _: True
) -> Iterator[tuple[Suggestion, DesignLayout]]:
    """Each wanted suggestion of `run`, and what the flow takes into which it was written as a user writes it."""
    for number, suggestion in enumerate(advice_of(run).suggestions, start=1):
        if suggestion.place != FLOW or not wanted(suggestion):
            continue
        again = folder / f"{number}"
        shutil.copytree(run.path, again)
        flow = folder / f"{number}.toml"
        flow.write_text(changed_flow(run.path, number))
        config = read_config(flow)
        asked = config[MeasureConfig]
        if asked.part is not None:
            part, design = find_part(asked.part), Design.load(run.file("design.json"))
            chosen = choose_layout(
                design, part, str(family_of(part)), share=asked.share, interval=asked.interval or None
            )
            assert family_of(part) in asked.families
            yield suggestion, DesignLayout.of_chosen(chosen, part)
            continue
        # What the changed flow could be changed to does not matter here.
        alone = config.model_copy(update={"estimate": EstimateConfig(advice=False)})
        found = json.loads(_made(alone, again).file("estimate.json").read_text())["after"]
        yield suggestion, DesignLayout.of_project(Estimate.from_json(found, config[TargetConfig].target()))
