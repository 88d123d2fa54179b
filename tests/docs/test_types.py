"""A type checker sees the model of a user: with a stub of Keras, mypy takes right calls and refuses wrong ones."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from . import snippets

_CALLBACKS = "class Callback: ...\nclass History:\n    history: dict[str, list[float]]\n"
_RIGHT = """
import keras
import numpy as np

import fpgaprune as fp

def prune(model: keras.Model, x: np.ndarray, y: np.ndarray) -> float:
    target = fp.Target.of("pynq-z2")
    masks = fp.select(model, 0.5)
    masks &= fp.MaskSet.from_slices(model, ["conv1/kernel[:, :, 0, 2]"])
    history = fp.finetune(model, masks, x, y)
    fp.certify(model, masks).require()
    small = fp.apply_removal(model, fp.plan_removal(model))
    fp.export_onnx(small, "small.onnx")
    reveal_type(small)
    fp.estimate(fp.make_design(small, target, x), target)
    return history.history["loss"][-1]
"""
_WRONG = {
    "a path in place of a model": 'fp.lock("mine.keras", masks)',
    "a model in place of masks": "fp.lock(model, model)",
    "no such argument": "fp.select(model, sparsty=0.5)",
    "a design in place of a model": "fp.plan_removal(fp.Design.load('design.json'))",
}


def _checked(folder, text):
    """What mypy prints for `text` beside a stub of Keras, and its exit status."""
    stubs = folder / "stubs" / "keras"
    if not stubs.is_dir():
        stubs.mkdir(parents=True)
        (stubs / "__init__.pyi").write_text("class Model: ...\ndef __getattr__(name: str) -> object: ...\n")
        (stubs / "callbacks.pyi").write_text(_CALLBACKS)
    (folder / "mine.py").write_text(text)
    options = ["--follow-imports=silent", "--ignore-missing-imports", "--config-file=", "--no-error-summary"]
    done = subprocess.run(
        [sys.executable, "-P", "-m", "mypy", *options, "--cache-dir", str(folder / "cache"), "mine.py"],
        cwd=folder,
        env={**os.environ, "MYPYPATH": f"{folder / 'stubs'}:{snippets.CHECKOUT}"},
        capture_output=True,
        text=True,
    )
    return done.stdout + done.stderr, done.returncode


@pytest.mark.slow
def test_a_type_checker_takes_right_calls_and_refuses_wrong_ones(tmp_path):
    pytest.importorskip("mypy", reason="mypy is not installed: no types were checked")
    said, status = _checked(tmp_path, _RIGHT)
    assert (status, said.count("error:")) == (0, 0), said
    assert 'Revealed type is "keras.Model"' in said
    head = "import keras\nimport fpgaprune as fp\nmodel = keras.Model()\nmasks = fp.select(model, 0.5)\n"
    said, status = _checked(tmp_path, head + "".join(f"{line}\n" for line in _WRONG.values()))
    assert status == 1
    for number, what in enumerate(_WRONG, head.count("\n") + 1):
        assert f"mine.py:{number}: error:" in said, f"{what} was taken: {said}"


def test_the_import_alone_loads_no_keras():
    code = "import sys, fpgaprune; print([name for name in ('keras', 'tensorflow') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
