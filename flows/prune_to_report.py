"""The default flow as straight-line Python: train, select, fine-tune, certify, remove, export, price, report.

Run it with `python flows/prune_to_report.py [FOLDER]`; everything is written to FOLDER (runs/script).
"""

import json
import sys
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf
from sklearn.datasets import load_digits

import fpgaprune as fp
from fpgaprune.report import Check, LinkSummary, Metric, RunReport, layer_reports, write_report

out = Path(sys.argv[1] if len(sys.argv) > 1 else "runs/script")
out.mkdir(parents=True, exist_ok=True)
keras.utils.set_random_seed(7)
tf.config.experimental.enable_op_determinism()

# 1,797 real digits of 8 x 8 pixels; one in five is held out.
images, labels = load_digits(return_X_y=True)
x = (images.reshape(-1, 8, 8, 1) / 16).astype("float32")
held_out = np.zeros(len(x), dtype=bool)
for digit in range(10):
    held_out[np.flatnonzero(labels == digit)[::5]] = True
x_test, y_test = x[held_out], labels[held_out]


def train(model, epochs, fit):
    """`model` is compiled and trained by `fit`; its accuracy on the held-out digits is returned."""
    steps = epochs * int(np.ceil((~held_out).sum() / 32))
    optimizer = keras.optimizers.Adam(keras.optimizers.schedules.CosineDecay(0.002, steps))
    model.compile(optimizer, "sparse_categorical_crossentropy", metrics=["accuracy"])
    fit(x[~held_out], labels[~held_out], epochs=epochs, batch_size=32, verbose=0)
    return model.evaluate(x_test, y_test, verbose=0)[1]


# train
layers = [keras.Input((8, 8, 1))]
for number, (filters, padding) in enumerate([(32, "same"), (32, "same"), (16, "valid")], start=1):
    layers += [
        keras.layers.Conv2D(filters, 3, padding=padding, name=f"conv{number}"),
        keras.layers.BatchNormalization(momentum=0.9, name=f"bn{number}"),
        keras.layers.ReLU(name=f"relu{number}"),
    ]
    if number == 2:
        layers.append(keras.layers.MaxPooling2D(name="pool"))
layers += [
    keras.layers.Flatten(),
    keras.layers.Dropout(0.2),
    keras.layers.Dense(10, activation="softmax", name="dense"),
]
model = keras.Sequential(layers, name="small_cnn")
before = train(model, 24, model.fit)
original = keras.models.clone_model(model)
original.set_weights(model.get_weights())

# select, fine-tune under the lock, certify
named = fp.MaskSet.from_slices(model, ["conv2/kernel[:, :, 29, 13]", "conv3/kernel[:, :, :, 5]"])
masks = fp.select(model, sparsity=0.85, granularity="kernel", base=named)
train(model, 40, lambda *data, **options: fp.finetune(model, masks, *data, seed=7, **options))
certificates = [fp.certify(model, masks).require()]

# remove dead and unread channels, with proof
plan = fp.plan_removal(model, strict=True)
exact = fp.apply_removal(model, plan, dtype="float64")
proof = fp.equivalence(model, exact, x_test, tolerance=1e-9).require()
small = fp.apply_removal(model, plan)
small.compile(loss="sparse_categorical_crossentropy", metrics=["accuracy"])
after = small.evaluate(x_test, y_test, verbose=0)[1]
small_masks = plan.remap(masks)

# export, make the hardware project, price it
certificates.append(fp.certify(fp.export_onnx(small, out / "model.onnx"), small_masks).require())
target = fp.Target.of("xc7z020clg400-1", clock_ns=5.0, io_type="io_stream", strategy="latency")
precision = fp.Precision(weight_bits=6, activation_bits=8)
project = fp.to_hls(small, target, x[:512], out / "hls", precision)
certificates.append(fp.certify(project, small_masks).require())
prices = {
    "before": fp.estimate(fp.make_design(original, target, x[:512], precision), target),
    "after": fp.estimate(project.design, target),
}
(out / "estimate.json").write_text(json.dumps({side: price.to_json() for side, price in prices.items()}, indent=1))

# report
report = RunReport(
    name="script",
    target=target,
    metric=Metric("accuracy", before, after, len(x_test), "digits", lost=before - after),
    layers=layer_reports(fp.weight_arrays(original), fp.weight_arrays(small), masks, plan.kept),
    certificate=[LinkSummary.of(link) for certificate in certificates for link in certificate.links],
    checks=[Check("removal", "relative difference, float64", proof.max_relative_error, proof.tolerance)],
    **prices,
)
print(f"accuracy {before:.2%} before, {after:.2%} after; see {write_report(out, report).html}")
