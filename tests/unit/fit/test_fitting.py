"""`fit` of a model in memory: its file in the folder says which network a search is of."""

from importlib import import_module

import keras
import numpy as np
import pytest

import fpgaprune as fp
from fpgaprune.errors import FpgaPruneError, RunError


def network(start):
    model = keras.Sequential(
        [
            keras.Input((4,), name="in"),
            keras.layers.Dense(2, "softmax", name="out", kernel_initializer=keras.initializers.Constant(start)),
        ],
        name="mine",
    )
    model.compile("adam", "sparse_categorical_crossentropy")
    return model


X, Y = np.random.default_rng(0).normal(size=(200, 4)).astype("float32"), np.arange(200) % 2
DATA = {"x_train": X, "y_train": Y, "x_test": X, "y_test": Y}
TARGET = fp.Target.of("pynq-z2")


def test_another_model_in_memory_does_not_replace_the_search_of_the_first(tmp_path, monkeypatch):
    begun = []
    monkeypatch.setattr(import_module("fpgaprune.fit.search").FitSearch, "run", lambda search: begun.append(search))
    fp.fit(network(0.5), DATA, TARGET, out=tmp_path)
    fp.fit(network(0.5), DATA, TARGET, out=tmp_path)
    kept = (tmp_path / "model.keras").read_bytes()
    with pytest.raises(RunError, match="holds a search of another network"):
        fp.fit(network(0.25), DATA, TARGET, out=tmp_path)
    assert (tmp_path / "model.keras").read_bytes() == kept
    assert len(begun) == 2
    fp.fit(network(0.25), DATA, TARGET, out=tmp_path, replace=True)
    assert (tmp_path / "model.keras").read_bytes() != kept


WRONG = [
    ({"x_train": X[:, :3], "x_test": X[:, :3]}, r"^the model in memory takes .* \(4,\); data in memory has \(3,\)$"),
    ({"x_train": np.where(X > 2, np.nan, X)}, "^data in memory: the values of x_train hold NaN or infinity"),
    ({"y_train": Y + 5}, "^data in memory: labels 0 to 6; wanted 0 to 1, because the model in memory has 2 outputs$"),
    ({"y_train": Y + 0.5, "y_test": Y + 0.5}, "takes 0 to 1"),
    ({"x_val": X}, "^data in memory names an array 'x_val'"),
    ({"x_train": np.array([None] * 200)}, "x_train has shape"),
    ({"x_train": X[:50], "y_train": Y[:50]}, r"^data in memory have 50 training samples; wanted 128 or more.*x_valid"),
]


@pytest.mark.parametrize(("wrong", "message"), WRONG)
def test_wrong_data_leave_nothing_behind(wrong, message, tmp_path):
    with pytest.raises(FpgaPruneError, match=message) as refused:
        fp.fit(network(0.5), DATA | wrong, TARGET, out=tmp_path / "new")
    assert str(tmp_path) not in str(refused.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("options", [{"minutes": -1}, {"max_loss": "x"}, {"route": "q"}, {"log_trials": "q"}])
def test_wrong_options_leave_nothing_behind(options, tmp_path):
    with pytest.raises(FpgaPruneError):
        fp.fit(network(0.5), DATA, TARGET, out=tmp_path / "new", **options)
    assert list(tmp_path.iterdir()) == []


def test_wrong_data_do_not_replace_those_of_an_earlier_search(tmp_path, monkeypatch):
    monkeypatch.setattr(import_module("fpgaprune.fit.search").FitSearch, "run", lambda _: None)
    fp.fit(network(0.5), DATA, TARGET, out=tmp_path)
    kept = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert sorted(kept) == ["data.npz", "model.keras"]
    for wrong, _ in WRONG:
        with pytest.raises(FpgaPruneError):
            fp.fit(network(0.25), DATA | wrong, TARGET, out=tmp_path, replace=True)
        assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == kept
