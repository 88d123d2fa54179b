"""Flows for tasks that are no classification of one image, from the command line."""

import json

import keras
import numpy as np
import pytest

from fpgaprune.flow.engine import run_again

from .test_flow import fpgaprune, succeed

pytestmark = pytest.mark.flow
RNG = np.random.default_rng(11)


def report_of(folder, text, status=0):
    (folder / "mine.toml").write_text(text)
    done = fpgaprune("run", "mine.toml", "--out", "run", folder=folder, compiler=False)
    # 3 more: the network does not fit its part, which these tests do not ask for.
    assert done.returncode in (status, status + 3), done.stderr
    return json.loads((folder / "run" / "report.json").read_text()), done


@pytest.fixture(scope="module")
def two_ends(tmp_path_factory):
    """A trained network with two inputs and two outputs, whose names are not in the order of the data's."""
    folder = tmp_path_factory.mktemp("two_ends")
    keras.utils.set_random_seed(1)
    left, right = keras.Input((6, 6, 2), name="left"), keras.Input((4,), name="right")
    x = keras.layers.Conv2D(8, 3, activation="relu", name="conv")(left)
    x = keras.layers.Flatten()(x)
    x = keras.layers.Concatenate()([x, keras.layers.Dense(8, activation="relu", name="side")(right)])
    x = keras.layers.Dense(16, activation="relu", name="joined")(x)
    outputs = [keras.layers.Dense(3, activation="softmax", name="kind")(x), keras.layers.Dense(1, name="size")(x)]
    model = keras.Model([left, right], outputs)
    model.compile(
        keras.optimizers.Adam(0.01),
        loss={"kind": "sparse_categorical_crossentropy", "size": "mse"},
        metrics={"kind": ["accuracy"]},
    )
    a, b = RNG.random((400, 6, 6, 2)).astype("float32"), RNG.random((400, 4)).astype("float32")
    kind, size = b[:, :3].argmax(axis=1), (a.mean(axis=(1, 2, 3)) + b[:, 3])[:, None]
    model.fit([a[:300], b[:300]], {"kind": kind[:300], "size": size[:300]}, epochs=20, verbose=0)
    model.save(folder / "mine.keras")
    arrays = {}
    for part, rows in (("train", slice(300)), ("test", slice(300, 400))):
        arrays.update({f"x_{part}.right": b[rows], f"x_{part}.left": a[rows]})
        arrays.update({f"y_{part}.size": size[rows], f"y_{part}.kind": kind[rows]})
    np.savez(folder / "mine.npz", **arrays)
    return folder


FLOW = """
[data]
source = "mine.npz"
[train]
model = "mine.keras"
[select]
paths = ["conv/kernel", "joined/kernel"]
sparsity = 0.4
[finetune]
epochs = 4
[verdict]
max_loss = "{allowed} %"
"""


def test_several_inputs_and_outputs_arrive(two_ends):
    report, done = report_of(two_ends, FLOW.format(allowed=10))
    metric = report["metric"]
    assert metric["name"] == "kind_accuracy"
    assert metric["before"] > 0.8
    assert metric["hardware"] is not None
    assert metric["holds"]
    assert all(check["holds"] is not False for check in report["checks"])
    # The loss passes, and the upper end of the estimate does not fit.
    assert "Fits xc7z020: probably (" in done.stdout
    assert "Kind accuracy kept (" in done.stdout


def test_a_run_works_from_any_directory(two_ends, tmp_path):
    report_of(two_ends, FLOW.format(allowed=10))
    before = (two_ends / "run" / "manifest.json").read_bytes()
    succeed("run", two_ends / "mine.toml", "--out", two_ends / "run", "--quiet", folder=tmp_path, compiler=False)
    assert (two_ends / "run" / "manifest.json").read_bytes() == before


def test_a_loss_beyond_what_was_allowed_fails_and_says_what_helps(two_ends):
    text = (
        FLOW.format(allowed=0)
        .replace('"conv/kernel", ', "")
        .replace("sparsity = 0.4", "sparsity = 0.99")
        .replace("epochs = 4", "epochs = 0")
    )
    report, done = report_of(two_ends, text, status=1)
    assert report["metric"]["holds"] is False
    assert "Kind accuracy not kept (" in done.stdout
    assert "verdict.max_loss" in done.stderr
    # Zeros and bits are another question, and were held.
    assert all(check["holds"] is not False for check in report["checks"] if check["about"] == "bits")
    assert all(link["holds"] for link in report["certificate"])


# Each time `test_flow.py` runs files from options, and a run from another directory is above.
@pytest.mark.slow
def test_a_run_of_files_from_options_goes_on_from_any_directory(two_ends):
    options = ["--data", "mine.npz", "--part", "zcu104", "--sparsity", "0.3", "--epochs", "0", "--max-loss", "90%"]
    succeed("run", "mine.keras", *options, "--out", "named", "--quiet", folder=two_ends, compiler=False)
    # This process runs in another folder.
    assert run_again(two_ends / "named", "measure", {}).read_report()["metric"]["samples"] == 100


def test_an_autoencoder_arrives_with_r2(tmp_path):
    keras.utils.set_random_seed(1)
    stack = [keras.Input((12,)), keras.layers.Dense(16, activation="relu", name="a")]
    stack += [keras.layers.Dense(4, activation="relu", name="b"), keras.layers.Dense(12, name="c")]
    model = keras.Sequential(stack)
    model.compile(keras.optimizers.Adam(0.01), "mse")
    hidden = RNG.random((500, 3))
    x = (hidden @ RNG.normal(size=(3, 12))).astype("float32")
    model.fit(x[:400], x[:400], epochs=40, verbose=0)
    model.save(tmp_path / "mine.keras")
    np.savez(tmp_path / "mine.npz", x_train=x[:400], x_test=x[400:])
    report, _ = report_of(
        tmp_path,
        "[data]\nsource = 'mine.npz'\n[train]\nmodel = 'mine.keras'\n[select]\npaths = ['a/kernel']\n"
        "granularity = 'weight'\nsparsity = 0.3\n[finetune]\nepochs = 5\n"
        "[hls]\nprecision = 'auto'\nmax_loss = '5 %'\n[verdict]\nmax_loss = '20 %'",
    )
    assert (report["metric"]["name"], report["metric"]["is_fraction"]) == ("r2", True)
    assert report["metric"]["before"] > 0.7
    assert report["metric"]["holds"]
    (searched,) = [check for check in report["checks"] if "searched" in check["quantity"]]
    # By the metric: there are no class numbers.
    assert searched["quantity"] == "r2 lost, less one standard error, by widths searched on training samples"
    assert searched["holds"]
    widths = json.loads((tmp_path / "run" / "manifest.json").read_text())["stages"]["hls"]["results"]["precision"]
    assert widths["measure"] == "loss of the metric against Keras"
    assert widths["loss"] <= 0.05


def test_images_of_bytes_and_operations_without_a_layer_arrive(tmp_path):
    """The scale 1 / 127.5 fits no type, ONNX takes bytes here, and removal has no rule for the reshaping."""
    keras.utils.set_random_seed(1)
    given = keras.Input((6, 6, 1), dtype="uint8")
    x = keras.layers.Conv2D(4, 3, name="conv")(keras.layers.Rescaling(1 / 127.5, offset=-1, name="scaled")(given))
    x = keras.ops.reshape(keras.ops.relu(x), (-1, 64))
    model = keras.Model(given, keras.layers.Dense(2, activation="softmax", name="fc")(x))
    model.compile(keras.optimizers.Adam(0.01), "sparse_categorical_crossentropy", metrics=["accuracy"])
    x, y = RNG.integers(0, 256, (260, 6, 6, 1)).astype("uint8"), RNG.integers(0, 2, 260)
    x[y == 1, 2:4] //= 4
    model.fit(x[:200], y[:200], epochs=8, verbose=0)
    model.save(tmp_path / "mine.keras")
    np.savez(tmp_path / "mine.npz", x_train=x[:200], y_train=y[:200], x_test=x[200:], y_test=y[200:])
    text = FLOW.format(allowed=10).replace('"conv/kernel", "joined/kernel"', '"fc/kernel"')
    report, done = report_of(tmp_path, text)
    assert report["metric"]["before"] > 0.9
    assert report["metric"]["holds"]
    assert all(link["holds"] for link in report["certificate"])
    assert "no rule for 'reshape' (Reshape): its channels stay" in done.stderr
