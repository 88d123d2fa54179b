"""The example in the docstring of each public name runs, and prints what it says."""

from __future__ import annotations

import doctest

import pytest

import fpgaprune as fp


def _examples(name):
    docstring = getattr(fp, name).__doc__ or ""
    return doctest.DocTestParser().get_doctest(docstring, {}, f"fpgaprune.{name}", None, None)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """The file of the network that examples call `model`, and its data."""
    import keras
    import numpy as np

    keras.utils.set_random_seed(3)
    model = keras.Sequential(
        [
            keras.Input((6, 6, 1), name="in"),
            keras.layers.Conv2D(4, 3, activation="relu", name="conv1"),
            keras.layers.Flatten(name="flatten"),
            keras.layers.Dense(3, activation="softmax", name="dense"),
        ]
    )
    model.compile("adam", "sparse_categorical_crossentropy")
    model.optimizer.build(model.trainable_variables)
    path = tmp_path_factory.mktemp("example") / "mine.keras"
    model.save(path)
    rng = np.random.default_rng(3)
    return path, rng.random((32, 6, 6, 1), np.float32), np.arange(32) % 3


@pytest.mark.parametrize("name", fp.__all__)
def test_a_public_name_has_an_example(name):
    assert _examples(name).examples, f"fp.{name} has no example: write one in its docstring, under 'Examples:'"


@pytest.mark.parametrize("name", [name for name in fp.__all__ if _examples(name).examples])
def test_an_example_runs(name, saved, tmp_path, monkeypatch):
    import keras
    import numpy as np

    monkeypatch.chdir(tmp_path)
    path, x, y = saved
    test = _examples(name)
    test.globs = {"fp": fp, "keras": keras, "np": np, "x": x, "y": y, "target": fp.Target.of("pynq-z2")}
    test.globs["model"] = keras.saving.load_model(path)
    said = []
    doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(test, out=said.append)
    assert not said, "".join(said)


def test_an_example_that_is_wrong_is_found():
    test = doctest.DocTestParser().get_doctest(">>> 1 + 1\n3\n", {}, "wrong", None, None)
    said = []
    doctest.DocTestRunner().run(test, out=said.append)
    assert "Expected:" in "".join(said)
