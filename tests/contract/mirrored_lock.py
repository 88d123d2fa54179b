"""A program: the lock over two replicas on one CPU, for every optimizer; prints one JSON object, row to outcome.

Logical devices must exist before TensorFlow starts, so this runs in a process of its own.
"""

import importlib.util
import json
import sys
from functools import partial
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

import fpgaprune as fp

_SPEC = importlib.util.spec_from_file_location("lock_contract", Path(__file__).with_name("lock_contract.py"))
contract = importlib.util.module_from_spec(_SPEC)
sys.modules["lock_contract"] = contract
_SPEC.loader.exec_module(contract)


def replicas(trial):
    """Each weight and its slots, on each replica."""
    return [
        {
            path: [np.array(v.value.values[at].numpy()) for v in (weight, *trial.slots[path])]
            for path, weight in trial.weights.items()
        }
        for at in range(2)
    ]


def run(trial, strategy, gradients, shift):
    weights = list(trial.weights.values())

    def step(*grads):
        replica = tf.cast(tf.distribute.get_replica_context().replica_id_in_sync_group, tf.float32)
        trial.optimizer.apply([grad + replica * shift for grad in grads], weights)

    @tf.function(autograph=False)
    def distributed(*grads):
        strategy.run(step, args=grads)

    for grads in gradients:
        distributed(*[tf.constant(grad) for grad in grads])


def check(row, strategy):
    masks = contract.random_masks()
    with strategy.scope():
        trial = contract.Trial(row, weight_decay=0.1)
        trial.build()
    run(trial, strategy, contract.random_gradients(2, seed=3), shift=0.25)
    with strategy.scope():
        trial.lock(contract.lock_it, masks)
    before = replicas(trial)
    run(trial, strategy, contract.random_gradients(3), shift=0.25)
    for old, new in zip(before, replicas(trial), strict=True):
        contract.assert_locked(old, new, masks)


def check_fit(strategy):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(32, 4)).astype("float32"), rng.normal(size=(32, 2)).astype("float32")
    with strategy.scope():
        model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3, name="one"), keras.layers.Dense(2)])
        model.compile("adam", "mse")
    model.fit(x, y, batch_size=8, verbose=0)
    masks = fp.MaskSet({"one/kernel": rng.random((4, 3)) < 0.5})
    fp.lock(model, masks)
    model.fit(x, y, batch_size=8, verbose=0)
    for replica in model.get_layer("one").kernel.value.values:
        assert not replica.numpy()[~masks["one/kernel"]].view(np.int32).any()


def main():
    tf.config.set_logical_device_configuration(
        tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * 2
    )
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    checks = {row.name: partial(check, row) for row in contract.ROWS} | {"fit": check_fit}
    outcome = {}
    for name, call in checks.items():
        try:
            call(strategy)
            outcome[name] = "exact"
        except Exception as error:  # noqa: BLE001  the outcome is the test's to judge
            outcome[name] = f"{type(error).__name__}: {error}"[:300]
    sys.stdout.write(json.dumps(outcome) + "\n")


if __name__ == "__main__":
    main()
