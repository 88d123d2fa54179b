"""What README and site show as Python runs: the blocks of a page in order, in one namespace, in an empty folder."""

from __future__ import annotations

import contextlib
import io
import math
import re
import shutil

import pytest

from . import snippets

_NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")


def _cases():
    for page in snippets.pages():
        shown = [block for block in snippets.blocks(page) if block.kind == "python"]
        if any(not block.when for block in shown):
            yield pytest.param(page, False, id=snippets.name_of(page))
        if any(block.when == "slow" for block in shown):
            yield pytest.param(page, True, id=f"{snippets.name_of(page)}, slow blocks too", marks=pytest.mark.slow)


@pytest.fixture(scope="session")
def network(tmp_path_factory):
    """The file of the network that pages call `model`, and its data: two convolutions, trained on digits."""
    import keras
    from sklearn.datasets import load_digits

    keras.utils.set_random_seed(1)
    images, labels = load_digits(return_X_y=True)
    x, y = (images[:256].reshape(-1, 8, 8, 1) / 16).astype("float32"), labels[:256]
    model = keras.Sequential(
        [
            keras.Input((8, 8, 1)),
            keras.layers.Conv2D(8, 3, activation="relu", name="conv1"),
            keras.layers.MaxPooling2D(2, name="pool"),
            keras.layers.Conv2D(6, 2, activation="relu", name="conv2"),
            keras.layers.Flatten(name="flatten"),
            keras.layers.Dense(10, activation="softmax", name="dense"),
        ]
    )
    model.compile(keras.optimizers.Adam(0.01), "sparse_categorical_crossentropy", metrics=["accuracy"])
    model.fit(x, y, epochs=6, verbose=0)
    path = tmp_path_factory.mktemp("network") / "mine.keras"
    model.save(path)
    return path, x, y


@pytest.fixture(scope="session")
def design(network):
    """The same network in fixed point."""
    import keras

    import fpgaprune as fp

    path, x, _ = network
    precision = fp.Precision(weight_bits=6, activation_bits=8)
    return fp.make_design(keras.saving.load_model(path), fp.Target.of("xc7z020clg400-1"), x, precision)


@pytest.mark.parametrize(("page", "slow"), list(_cases()))
def test_python_of_a_page_runs(page, slow, network, design, tmp_path, monkeypatch):
    import keras
    import numpy as np

    import fpgaprune as fp

    monkeypatch.chdir(tmp_path)
    path, x, y = network
    shutil.copy(path, tmp_path)
    np.savez(tmp_path / "mine.npz", x_train=x[:200], y_train=y[:200], x_test=x[200:], y_test=y[200:])
    names = {"__name__": "page", "CHECKOUT": snippets.CHECKOUT}
    # A how-to page runs as it is pasted; the others may speak of a network that they do not load.
    if page.parent.name != "howto":
        names |= {"keras": keras, "np": np, "fp": fp, "x": x, "y": y, "design": design}
        names |= {"model": keras.saving.load_model(path), "target": fp.Target.of("xc7z020clg400-1")}
    said = ""
    for block in snippets.blocks(page):
        if block.kind == "python":
            # An error names the line of the page.
            code = compile("\n" * block.line + block.text, str(page), "exec")
            if not block.when or (slow and block.when == "slow"):
                with contextlib.redirect_stdout(io.StringIO()) as printed:
                    exec(code, names)  # noqa: S102
                said = printed.getvalue()
        elif block.when == "prints":
            assert _alike(said, block.text), f"{page}:{block.line} shows {block.text!r}; it printed {said!r}"
    for value in names.values():
        if isinstance(value, np.lib.npyio.NpzFile):
            # A page leaves its data open; the collector would say so in the test of another page.
            value.close()


def _alike(said, shown):
    """Whether two texts are equal but for their numbers, which may differ by a quarter: machines round differently."""
    numbers = [[float(one.replace(",", "")) for one in _NUMBER.findall(text)] for text in (said, shown)]
    return _NUMBER.sub("#", said) == _NUMBER.sub("#", shown) and all(
        math.isclose(a, b, rel_tol=0.25) for a, b in zip(*numbers, strict=True)
    )


@pytest.mark.parametrize(
    ("said", "shown", "alike"),
    [
        ("1,000 of 7\n", "1,100 of 7\n", True),
        ("True 0\n", "True 1\n", False),
        ("lut 5\n", "ff 5\n", False),
        ("5\n", "8\n", False),
    ],
)
def test_what_a_page_shows_is_compared(said, shown, alike):
    assert _alike(said, shown) == alike
