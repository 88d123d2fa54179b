"""Figures and verdicts that name what they count, units, folders of other networks, and names of parts and boards."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from fpgaprune.flow import RunDirectory, parse_config, run_flow, verify_run
from fpgaprune.flow.origin import Origin

from ._asking import refused


def _model(path: Path, units: int = 4) -> Path:
    import keras

    layers = [keras.Input((6,)), keras.layers.Dense(units, activation="relu"), keras.layers.Dense(2)]
    keras.Sequential(layers).save(path)
    return path


def _samples(path: Path) -> Path:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(40, 6)).astype(np.float32)
    arrays = {
        f"{key}_{part}": value for part in ("train", "test") for key, value in (("x", x), ("y", np.arange(40) % 2))
    }
    np.savez(path, **arrays)
    return path


def _flow(folder: Path, model: str, **sections):
    document = {
        "name": "mine",
        "data": {"source": str(_samples(folder / "mine.npz"))},
        "train": {"model": str(_model(folder / model, 4 if model < "b" else 5))},
        **sections,
    }
    return parse_config(document, "mine")


def _begun_run(folder: Path, model: str) -> RunDirectory:
    """A run of `model` whose first stage has ended."""
    from fpgaprune.flow import check_flow

    config = _flow(folder, model)
    run = RunDirectory(folder / "run")
    with run.locked():
        Origin.of(config, check_flow(config)).record(run)
        run.file("trained.keras").write_bytes(b"measured for hours")
        run.record("train", "key", {}, run.digests(["trained.keras"]), {}, 1.0)
    return run


def run_into_the_folder_of_another_network(folder):
    """A run of another model into a folder is refused with both names, and the first run's files stay."""
    run = _begun_run(folder, "a.keras")
    refused(lambda: run_flow(_flow(folder, "b.keras"), run.path), r"a\.keras.*b\.keras", "--replace")
    assert run.file("trained.keras").read_bytes() == b"measured for hours"


def run_again_after_the_model_was_trained_again_in_its_place(folder):
    """A model that was trained again under its name goes on in its folder: nothing is refused."""
    run = _begun_run(folder, "a.keras")
    _model(folder / "a.keras", units=7)
    config = _flow(folder, "a.keras")
    from fpgaprune.flow import check_flow

    Origin.of(config, check_flow(config)).require_same(RunDirectory(run.path))


def verify_while_the_run_is_in_progress(folder):
    """verify says that the folder is in use, not that its files are wrong."""
    run = _begun_run(folder, "a.keras")
    with run.locked():
        refused(lambda: verify_run(run.path), "in use by process")
