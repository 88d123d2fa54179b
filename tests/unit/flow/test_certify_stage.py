"""The stage `certify` compares what the network computes with, and what its file holds."""

import keras
import numpy as np
import pytest

from fpgaprune.errors import CertificateError
from fpgaprune.flow.engine import parse_config
from fpgaprune.flow.run import RunDirectory
from fpgaprune.flow.stages import StageContext, stage_named
from fpgaprune.network import save_keras
from fpgaprune.values import MaskSet

LOCKED = np.array([[True, False, True]])


def network(locked):
    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(3, name="d")])
    model.get_layer("d").kernel.assign([[0.5, locked, -0.5]])
    return model


def context(folder, locked):
    run = RunDirectory(folder)
    save_keras(network(locked), run.file("finetuned.keras"))
    MaskSet({"d/kernel": LOCKED}).save(run.file("masks.npz"))
    return StageContext(run, parse_config({}, "flow.toml"), None, None)


def test_both_are_compared(tmp_path):
    links = stage_named("certify").run(context(tmp_path, 0.0)).links
    assert [(link.link, link.violations) for link in links] == [("memory", 0), ("finetuned.keras", 0)]


@pytest.mark.parametrize(("memory", "file", "link"), [(1e-30, 0.0, "memory"), (0.0, 1e-30, "finetuned.keras")])
def test_a_number_in_one_of_them_alone_is_found(memory, file, link, tmp_path, monkeypatch):
    given = context(tmp_path, file)
    monkeypatch.setattr(StageContext, "model", lambda *_: network(memory))
    with pytest.raises(CertificateError, match=f"^{link}: 1 of 1 locked elements of 'd/kernel' are not exactly zero"):
        stage_named("certify").run(given)
