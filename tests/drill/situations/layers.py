"""Networks with the layers that tutorials use, and files of Keras 2 and of `.h5`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest import mock

import keras
import numpy as np

import fpgaprune as fp
from fpgaprune.flow import parse_config, run_flow
from fpgaprune.frontends import import_tfmot
from fpgaprune.hls import check_model

from ._asking import command, refused

L = keras.layers
_KERAS2 = {**os.environ, "TF_USE_LEGACY_KERAS": "1", "TF_CPP_MIN_LOG_LEVEL": "3"}
_TARGET = fp.Target.of("xc7z020clg400-1", clock_ns=10.0)


def _sequential(shape: tuple[int, ...], *layers: Any) -> Any:
    keras.utils.set_random_seed(1)
    return keras.Sequential([keras.Input(shape), *layers])


def _samples(*shape: int) -> Any:
    return np.random.default_rng(0).normal(2, 3, (64, *shape)).astype(np.float32)


def _same(model: Any, x: Any) -> fp.Design:
    """Check that the hardware of `model` computes what Keras does; give its design."""
    design = fp.make_design(model, _TARGET, x, fp.Precision(18, 18, 24))
    wanted = model.predict(x, verbose=0)
    assert np.abs(fp.emulate(design, x).reshape(wanted.shape) - wanted).max() < 2e-4 * np.abs(wanted).max()
    return design


def _data(folder: Path, shape: tuple[int, ...], outputs: int) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(240, *shape)).astype(np.float32)
    y = x.reshape(len(x), -1)[:, :outputs] * 0.5
    np.savez(folder / "data.npz", x_train=x[:180], y_train=y[:180], x_test=x[180:], y_test=y[180:])


def _run(folder: Path, model: str) -> str:
    words = ("run", model, "--data", "data.npz", "--part", "xc7z020clg400-1", "--sparsity", "0.5", "--out", "out")
    return command(folder, *words, status=None)


def _save_h5(model: Any, path: Path) -> None:
    with mock.patch("keras.src.saving.saving_api.logging.warning"):
        model.save(path)


def _keras2(folder: Path, text: str) -> None:
    """Run `text` as a program with tf_keras."""
    head = "import numpy as np, tf_keras\nL = tf_keras.layers\n"
    done = subprocess.run([sys.executable, "-c", head + text], cwd=folder, env=_KERAS2, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]


def h5_compiled_with_names_is_run(folder: Path) -> None:
    """She runs an .h5 of Keras 3 that was compiled with 'mse': it is read as it is, with its loss and optimizer."""
    model = _sequential((6,), L.Dense(8, activation="relu"), L.Dense(2))
    model.compile("sgd", "mse", metrics=["mae"])
    _save_h5(model, folder / "net.h5")
    _data(folder, (6,), 2)
    said = _run(folder, "net.h5")
    assert "report" in said
    assert "load_model" not in said


def h5_with_a_loss_of_her_own_is_told_the_key(folder: Path) -> None:
    """She compiled with a loss of her own, which an .h5 holds by name: one line says where to name it."""
    from fpgaprune.flow.task.task import _own_compilation

    def mine(wanted: Any, given: Any) -> Any:
        return keras.ops.mean(abs(wanted - given))

    model = _sequential((6,), L.Dense(2))
    model.compile("sgd", mine)
    _save_h5(model, folder / "net.h5")
    refused(lambda: _own_compilation(folder / "net.h5", {"loss"}), "'mine'|mine", r"loss = 'file\.py:function'")


def h5_of_weights_only_is_told_to_save_the_model(folder: Path) -> None:
    """She saved the weights alone: one line says to save the whole model."""
    from fpgaprune.flow.task import read_model

    _sequential((6,), L.Dense(2)).save_weights(folder / "net.weights.h5")
    refused(lambda: read_model(folder / "net.weights.h5"), "weights without a model; save the whole model")


def exported_saved_model_says_what_to_save(folder: Path) -> None:
    """She names the SavedModel folder that Keras 3 exports: one line says that it has no layers, and what to save."""
    from fpgaprune.flow.task import read_model

    _sequential((6,), L.Dense(2)).export(folder / "saved", verbose=False)
    refused(lambda: read_model(folder / "saved"), "SavedModel holds functions without layers", r"model\.save\(")


def normalization_of_a_table(folder: Path) -> None:
    """She begins as every tutorial of tables does, with an adapted Normalization: hardware scales each column."""
    x = _samples(6)
    norm = L.Normalization()
    norm.adapt(x)
    _same(_sequential((6,), norm, L.Dense(8, activation="relu"), L.Dense(1)), x)


def normalization_before_a_padded_convolution(folder: Path) -> None:
    """She normalises images in front of a padded convolution: the border is Keras's, too."""
    x = _samples(6, 6, 3)
    norm = L.Normalization(mean=[1.0, 2.0, 3.0], variance=[4.0, 5.0, 6.0])
    _same(_sequential((6, 6, 3), norm, L.Conv2D(4, 3, padding="same"), L.Flatten(), L.Dense(2)), x)


def normalization_of_each_pixel(folder: Path) -> None:
    """She normalises each pixel by its own mean: hardware does."""
    x = _samples(5, 5, 2)
    norm = L.Normalization(axis=(1, 2, 3))
    norm.adapt(x)
    _same(_sequential((5, 5, 2), norm, L.Conv2D(3, 3, padding="same"), L.Flatten(), L.Dense(2)), x)


def augmentations_do_nothing_in_hardware(folder: Path) -> None:
    """She augments inside the model, in a Sequential of its own: nothing of that is in the hardware."""
    augment = keras.Sequential([L.RandomFlip("horizontal"), L.RandomRotation(0.1), L.RandomZoom(0.2)], name="augment")
    rest = (L.Rescaling(1 / 255), L.Conv2D(3, 3), L.SpatialDropout2D(0.2), L.GaussianNoise(0.1), L.AlphaDropout(0.2))
    design = _same(_sequential((6, 6, 1), augment, *rest, L.Flatten(), L.Dense(2)), _samples(6, 6, 1))
    assert len(design.layers) == 5


def a_crop_at_random_is_refused_by_name(folder: Path) -> None:
    """She crops at random, which crops at inference too: the line names the layer and Cropping2D."""
    model = _sequential((8, 8, 1), L.RandomCrop(6, 6, name="crop"), L.Flatten(), L.Dense(2))
    refused(lambda: fp.make_design(model, _TARGET, _samples(8, 8, 1)), "'crop' is a RandomCrop", "Cropping2D")


def a_model_inside_a_model_is_locked_and_certified(folder: Path) -> None:
    """She locks a kernel of an encoder inside her model: the project holds the lock."""
    encoder = keras.Sequential([keras.Input((6, 6, 2)), L.Conv2D(3, 3, name="conv"), L.ReLU()], name="encoder")
    model, x = _sequential((6, 6, 2), encoder, L.Flatten(), L.Dense(2)), _samples(6, 6, 2)
    masks = fp.MaskSet.from_slices(model, ["encoder/conv/kernel[:, :, 0, 1]"])
    model.compile("sgd", "mse")
    fp.lock(model, masks)
    _same(model, x)
    fp.certify(fp.to_hls(model, _TARGET, x, folder / "project"), masks).require()


def masking_is_refused_by_its_name(folder: Path) -> None:
    """She masks padded steps: one line names the layer, not an operation inside it."""
    model = _sequential((6, 3), L.Masking(name="mask"), L.GRU(4), L.Dense(2))
    refused(lambda: fp.make_design(model, _TARGET, _samples(6, 3)), "layer 'mask' is a Masking", "every step")
    (problem,) = check_model(model, _TARGET).problems
    assert "not_equal" not in problem


def a_step_repeated_and_a_layer_for_every_step(folder: Path) -> None:
    """She repeats a vector and applies a Dense to every step: hardware has both."""
    layers = (L.Dense(4), L.RepeatVector(3), L.TimeDistributed(L.Dense(5, activation="relu")), L.Flatten(), L.Dense(2))
    _same(_sequential((6,), *layers), _samples(6))


def recurrent_networks_of_tf_keras(folder: Path) -> None:
    """She brings an LSTM, a GRU and a SpatialDropout of tf_keras: they are read, and predict the same."""
    _keras2(
        folder,
        "m = tf_keras.Sequential([L.Input((6, 3)), L.SpatialDropout1D(0.2), L.LSTM(4, return_sequences=True),\n"
        "    L.GRU(3, return_sequences=True), L.SimpleRNN(3), L.Dense(2)])\n"
        "m.save('net.h5')\n",
    )
    assert import_tfmot(folder / "net.h5").max_abs_error < 1e-6


def a_model_inside_a_model_of_tf_keras(folder: Path) -> None:
    """She brings augmentations in a Sequential inside a tf_keras model: it is read, and becomes hardware."""
    _keras2(
        folder,
        "a = tf_keras.Sequential([L.RandomFlip(), L.RandomRotation(0.1)])\n"
        "m = tf_keras.Sequential([L.Input((6, 6, 1)), a, L.Normalization(mean=1, variance=4), L.Conv2D(3, 3),\n"
        "    L.ThresholdedReLU(0.5), L.Flatten(), L.Dense(2)])\n"
        "m.save('net.h5')\n",
    )
    assert import_tfmot(folder / "net.h5").max_abs_error < 1e-6


def wrappers_of_quantize_model_are_refused_in_a_line(folder: Path) -> None:
    """She brings a network of TF-MOT's quantize_model: one line says why not, and what to save instead."""
    _keras2(
        folder,
        "import tensorflow_model_optimization as tfmot\n"
        "m = tf_keras.Sequential([L.Input((6,)), L.Dense(4, activation='relu'), L.Dense(2)])\n"
        "tfmot.quantization.keras.quantize_model(m).save('net.h5')\n",
    )
    refused(lambda: import_tfmot(folder / "net.h5"), "QuantizeWrapperV2|QuantizeLayer", "before quantize_model")


_SUBCLASSED = """import keras
@keras.saving.register_keras_serializable("mine")
class Net(keras.Model):
    def __init__(self, **options):
        super().__init__(**options)
        self.conv, self.flat, self.out = keras.layers.Conv2D(4, 3), keras.layers.Flatten(), keras.layers.Dense(2)
    def call(self, x):
        return self.out(self.flat(self.conv(x)))
def data():
    import numpy as np
    return dict(np.load("data.npz"))
if __name__ == "__main__":
    net = Net()
    net.build((None, 6, 6, 1))
    net.save("net.keras")
"""


def a_subclassed_model(folder: Path) -> None:
    """Every command refuses a class that derives from `keras.Model`, registered or not, and says what to build."""
    _data(folder, (6, 6, 1), 2)
    (folder / "net.py").write_text(_SUBCLASSED)
    subprocess.run([sys.executable, "net.py"], cwd=folder, check=True, capture_output=True)
    flow = ("net.keras", "--part", "pynq-z2", "--data")
    for words in (
        ("inspect", "net.keras"),
        ("select", "net.keras", "--sparsity", "0.5", "--out", "masks.npz", "--data", "net.py:data"),
        ("run", *flow, "data.npz", "--sparsity", "0.5"),
        ("run", *flow, "net.py:data", "--sparsity", "0.5"),
        ("fit", *flow, "data.npz"),
    ):
        said = command(folder, *words, status=2)
        assert "net.keras is refused: it is a subclassed model, 'Net'" in said
        assert "keras.Model(inputs, outputs)" in said
    assert not any((folder / "runs").rglob("*.keras"))


def whole_runs_of_other_floats(folder: Path) -> None:
    """Networks of float64 and mixed_float16 come through a whole run, with filters and training under rounding."""
    _data(folder, (6, 6, 1), 2)
    for policy in ("float64", "mixed_float16"):
        kinds = L.Conv2D(8, 3), L.BatchNormalization(), L.ReLU(), L.Flatten(), L.Dense(2)
        layers = [type(layer).from_config({**layer.get_config(), "dtype": policy}) for layer in kinds]
        keras.utils.set_random_seed(1)
        model = keras.Sequential([keras.Input((6, 6, 1), dtype="float64" if policy == "float64" else None), *layers])
        model.compile("adam", "mse")
        model.save(folder / "net.keras")
        document = {
            "name": policy,
            "data": {"source": str(folder / "data.npz")},
            "train": {"model": str(folder / "net.keras")},
            "select": {"sparsity": 0.5, "granularity": "weight", "filters": 0.25},
            "finetune": {"epochs": 2, "quantised": True, "schedule": {"kind": "polynomial_decay"}},
            "quantise": {"epochs": 1},
            "hls": {"precision": "widths", "simulate": 0},
            "verdict": {"max_loss": "10000 %"},
        }
        run = run_flow(parse_config(document, "test"), folder / policy)
        assert run.read_json("certificate.json")["ok"]
