"""Every optimizer inside `fit`: mixed precision, steps per execution, jit; two replicas; other processes."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pytest

import fpgaprune as fp
from fpgaprune.values import named_weights

_SPEC = importlib.util.spec_from_file_location("lock_contract", Path(__file__).with_name("lock_contract.py"))
contract = importlib.util.module_from_spec(_SPEC)
sys.modules["lock_contract"] = contract
_SPEC.loader.exec_module(contract)

pytestmark = pytest.mark.slow

X = np.random.default_rng(0).normal(size=(32, 4)).astype("float32")
Y = np.random.default_rng(1).normal(size=(32, 2)).astype("float32")


class Sums(keras.layers.Layer):
    """A dense layer by products and sums: a bfloat16 matrix product can kill the process on a virtual CPU."""

    def __init__(self, units, **options):
        super().__init__(**options)
        self.units = units

    def build(self, shape):
        self.kernel = self.add_weight(name="kernel", shape=(shape[-1], self.units))

    def call(self, inputs):
        return keras.ops.sum(inputs[:, :, None] * self.kernel, axis=1)


def model_of(row, policy, **compile_options):
    keras.utils.set_random_seed(1)
    layers = [
        Sums(6, dtype=policy, name="dense"),
        keras.layers.ReLU(dtype=policy),
        Sums(2, dtype=policy, name="conv"),
    ]
    model = keras.Sequential([keras.Input((4,)), *layers])
    optimizer = row.outer(row.make(weight_decay=0.01))
    if policy == "mixed_float16" and not isinstance(optimizer, keras.optimizers.LossScaleOptimizer):
        optimizer = keras.optimizers.LossScaleOptimizer(optimizer, initial_scale=1024.0)
    model.compile(optimizer, "mse", **compile_options)
    return model


@pytest.mark.parametrize(
    ("policy", "compile_options"),
    [("mixed_float16", {"steps_per_execution": 2}), ("mixed_bfloat16", {})],
    ids=["mixed_float16, 2 steps per execution", "mixed_bfloat16"],
)
@pytest.mark.parametrize("row", contract.ROWS, ids=lambda row: row.name)
def test_fit(row, policy, compile_options):
    model = model_of(row, policy, **compile_options)
    masks = fp.MaskSet({"dense/kernel": np.random.default_rng(2).random((4, 6)) < 0.5})
    fp.lock(model, masks, "current")
    kernel = named_weights(model)["dense/kernel"]
    before = kernel.numpy()
    model.fit(X, Y, batch_size=8, epochs=2, verbose=0)
    mask = masks["dense/kernel"]
    assert kernel.dtype == "float32"
    assert contract.same_bits(kernel.numpy()[~mask], before[~mask])
    assert np.any(kernel.numpy()[mask] != before[mask])


def run(program, *arguments):
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    done = subprocess.run(
        [sys.executable, *program, *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env=environment,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.splitlines()[-1]


def test_two_replicas():
    outcome = json.loads(run([str(Path(__file__).with_name("mirrored_lock.py"))]))
    assert set(outcome) == {row.name for row in contract.ROWS} | {"fit"}
    assert {name: text for name, text in outcome.items() if text != "exact"} == {}


def plain_model():
    model = keras.Sequential(
        [keras.Input((4,)), keras.layers.Dense(6, name="dense"), keras.layers.Dense(2, name="out")]
    )
    model.compile("adam", "mse")
    return model


LOADS = """
import sys
{imports}
model = keras.saving.load_model(sys.argv[1])
assert ("fpgaprune" in sys.modules) == {ours}
import numpy as np
model.fit(np.ones((4, 4)), np.ones((4, 2)), verbose=0)
print(type(model.optimizer).__name__, float(abs(model.layers[0].kernel.numpy()[0]).max()))
"""


@pytest.mark.parametrize("imports", ["import fpgaprune, keras", "import keras, fpgaprune"])
def test_another_process_that_imported_fpgaprune_loads_a_locked_model(tmp_path, imports):
    model = plain_model()
    fp.lock(model, fp.MaskSet.from_slices(model, ["dense/kernel[0]"]))
    model.save(tmp_path / "locked.keras")
    assert (
        run(["-c", LOADS.format(imports=imports, ours=True)], str(tmp_path / "locked.keras")) == "LockedOptimizer 0.0"
    )


def test_another_process_loads_an_unlocked_model_without_fpgaprune(tmp_path):
    model = plain_model()
    fp.lock(model, fp.MaskSet.from_slices(model, ["dense/kernel[0]"]))
    model.fit(X, Y, verbose=0)
    fp.unlock(model)
    model.save(tmp_path / "plain.keras")
    said = run(["-c", LOADS.format(imports="import keras", ours=False)], str(tmp_path / "plain.keras"))
    assert said.split()[0] == "Adam"
    assert said.split()[1] != "0.0"
