"""`fit` of a model in memory: its file in the folder says which network a search is of."""

from importlib import import_module

import keras
import pytest

import fpgaprune as fp
from fpgaprune.errors import RunError


def network(start):
    return keras.Sequential(
        [
            keras.Input((4,), name="in"),
            keras.layers.Dense(2, name="out", kernel_initializer=keras.initializers.Constant(start)),
        ],
        name="mine",
    )


def test_another_model_in_memory_does_not_replace_the_search_of_the_first(tmp_path, monkeypatch):
    begun = []
    monkeypatch.setattr(
        import_module("fpgaprune.fit.fitting"), "fit_flow", lambda config, *_, **more: begun.append(config)
    )
    target = fp.Target.of("pynq-z2")
    fp.fit(network(0.5), "mine.npz", target, out=tmp_path)
    fp.fit(network(0.5), "mine.npz", target, out=tmp_path)
    kept = (tmp_path / "model.keras").read_bytes()
    with pytest.raises(RunError, match="holds a search of another network"):
        fp.fit(network(0.25), "mine.npz", target, out=tmp_path)
    assert (tmp_path / "model.keras").read_bytes() == kept
    assert len(begun) == 2
    fp.fit(network(0.25), "mine.npz", target, out=tmp_path, replace=True)
    assert (tmp_path / "model.keras").read_bytes() != kept
