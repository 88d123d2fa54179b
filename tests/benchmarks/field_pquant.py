"""PQuantML's turn in `bench_field.py`, for Dense networks: `python field_pquant.py TASK SEED POINT EPOCHS OUT`.

POINT is a method of PQuantML 0.1.0 and its strength:

- `hgq-mdmm:PRICE`: masks by MDMM and HGQ's bits for every weight and value, against one price of a bit.
- `mdmm:SPARSITY`: masks by MDMM, weights of 6 bits and activations of 5.
- `pdp:SPARSITY`: masks by PDP, with the same bits.

From scratch, three quarters of the epochs with the method and the rest with its masks. Three of its defaults are
changed, because with them it loses: SAT weights become SAT_SYM with HGQ's bits (the test loses points that training
had), MDMM's scale 10 becomes 1 (it diverges), and PDP's sparsity of each layer is the one that PDP itself computes from
its global budget, and on Keras then forgets. Layers are made one by one, because `add_compression_layers` leaves out
the first one of a Sequential.

Writes OUT.json: accuracy and cells of alkaid's Verilog of the whole network.
"""

from __future__ import annotations

import json
import math
import sys
import time
from pathlib import Path
from typing import Any

import field_hgq
import keras
import pquant
from field_tasks import TASKS, network
from mnist_hgq import Rate
from pquant.activations import PQActivation
from pquant.core.keras.train import PQuantCallback
from pquant.layers import PQDense

MASKED, HGQ_SPARSITY, RATE = 0.75, 0.7, 5e-3
# Keep-negative, integer and fractional bits without HGQ.
_INPUT, _WEIGHT, _VALUE = (1.0, 0.0, 5.0), (1.0, 1.0, 4.0), (0.0, 2.0, 3.0)


def main(name: str, seed: int, point: str, epochs: int, out: Path) -> None:
    """`out`.json has what there is to say of the network."""
    task = TASKS[name]
    arrays = task.arrays()
    method, strength = point.split(":")
    masked = int(epochs * MASKED)
    config = _config(method, float(strength), masked, epochs - masked)
    model = _made(network(task, arrays, seed), config)
    x, y = arrays["x_train"], arrays["y_train"]
    steps = -(-len(x) // task.batch)
    began = time.process_time()
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    rate = Rate(RATE, masked * steps, epochs * steps)
    model.compile(keras.optimizers.Adam(rate), loss, metrics=["accuracy"], steps_per_execution=math.gcd(steps, 16))
    callbacks: list[Any] = [PQuantCallback(config, log_ebops=False, log_keep_ratio=False)]
    if method == "pdp":
        callbacks.append(_GlobalBudget())
    model.fit(x, y, batch_size=task.batch, epochs=epochs, verbose=0, callbacks=callbacks)
    said: dict[str, Any] = {"seconds": time.process_time() - began}
    keras_says = float((model.predict(arrays["x_valid"], verbose=0).argmax(1) == arrays["y_valid"]).mean())
    # Inputs are bytes: multiples of 1/128 with a sign, or of 1/256.
    said |= field_hgq.in_alkaid(model, arrays, out, (1, 0, 7) if arrays["x_train"].min() < 0 else (0, 0, 8))
    if abs(said["valid"] - keras_says) > _ALIKE:
        raise SystemExit(
            f"{point}: alkaid's network has {said['valid']:.3f} on validation samples, Keras's {keras_says:.3f}"
        )
    out.with_suffix(".json").write_text(json.dumps(said) + "\n")


# Of the accuracy of a network and of its Verilog: sums in floating point may decide a few samples otherwise.
_ALIKE = 0.01


def _made(plain: Any, config: Any) -> Any:
    """`plain` of PQuantML's layers; ReLU as Keras has it, because the layer behind it rounds."""
    x = made = keras.Input(plain.input_shape[1:])
    for at, layer in enumerate(plain.layers):
        bits = {"weight_quant_bits": _WEIGHT, "bias_quant_bits": _WEIGHT, "in_quant_bits": _VALUE if at else _INPUT}
        x = PQDense(config, layer.units, **bits, name=layer.name)(x)
        if layer is not plain.layers[-1]:
            x = PQActivation(config, "relu", quantize_input=False, name=f"{layer.name}_relu")(x)
    return keras.Model(made, x)


def _config(method: str, strength: float, masked: int, tuned: int) -> Any:
    learns_bits = method == "hgq-mdmm"
    config = pquant.pdp_config() if method == "pdp" else pquant.mdmm_config()
    pruning, quantised, training = (
        config.pruning_parameters,
        config.quantization_parameters,
        config.training_parameters,
    )
    if method == "pdp":
        pruning.sparsity = strength
    else:
        pruning.scale = 1.0
        pruning.target_sparsity = HGQ_SPARSITY if learns_bits else strength
    if learns_bits:
        quantised.use_high_granularity_quantization = True
        quantised.granularity = "per_weight"
        quantised.overflow_mode_parameters = "SAT_SYM"
        quantised.hgq_beta = strength
    training.pretraining_epochs, training.epochs, training.fine_tuning_epochs = int(method == "pdp"), masked, tuned
    training.epochs -= training.pretraining_epochs
    return config


class _GlobalBudget(keras.callbacks.Callback):
    """Each layer has the sparsity that PDP's global budget gives it: stored as `init_r`, where `_init_r` is read."""

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        for layer in self.model.layers:
            share = getattr(getattr(layer, "pruning_layer", None), "init_r", None)
            if share is not None:
                layer.pruning_layer._init_r = float(share)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4]), Path(sys.argv[5]))
