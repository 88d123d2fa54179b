"""From a .keras file to a bitstream: `python examples/keras_to_bitstream.py [MODEL.keras] [OUT.bit]`.

Without a file, a small network is trained on 8 x 8 digits, half of its kernels are locked at zero, and it is saved.
The network becomes Verilog, its simulation is compared with the emulation bit by bit, and open tools make the file that
configures a ULX3S board: an image goes in over the board's serial line, and ten logits come back. It takes minutes.
Needed: pip install 'fpgaprune[rtl]', and g++.
"""

import sys
from pathlib import Path

import keras
import numpy as np
from sklearn.datasets import load_digits

import fpgaprune as fp

source = Path(sys.argv[1] if len(sys.argv) > 1 else "digits.keras")
if source.suffix != ".keras":
    sys.exit(f"error: model {str(source)!r} has no name that ends in .keras, and Keras saves under no other")
output = Path(sys.argv[2] if len(sys.argv) > 2 else source.with_suffix(".bit"))
images, labels = load_digits(return_X_y=True)
x = (images.reshape(-1, 8, 8, 1) / 16).astype("float32")

if not source.exists():
    keras.utils.set_random_seed(1)
    layers = [
        keras.Input((8, 8, 1)),
        keras.layers.Conv2D(6, 3, activation="relu", name="conv1"),
        keras.layers.MaxPooling2D(name="pool"),
        keras.layers.Conv2D(8, 3, activation="relu", name="conv2"),
        keras.layers.Flatten(name="flatten"),
        keras.layers.Dense(10, name="dense"),
    ]
    model = keras.Sequential(layers)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(0.005), loss, metrics=["accuracy"])
    model.fit(x[:1500], labels[:1500], epochs=15, verbose=0)
    masks = fp.select(model, sparsity=0.5, granularity="kernel")
    fp.finetune(model, masks, x[:1500], labels[:1500], epochs=15, verbose=0)
    fp.apply_removal(model, fp.plan_removal(model)).save(source)

target = fp.Target.of("lfe5u-85f", clock_ns=40.0)  # the board's clock: 25 MHz
model = keras.saving.load_model(source)
design = fp.make_design(model, target, x[:512], fp.Precision(weight_bits=6, activation_bits=8), source.stem)
print(f"accuracy {(fp.emulate(design, x[1500:]).argmax(axis=-1) == labels[1500:]).mean():.2%} in hardware")

project = fp.to_verilog(design, output.with_suffix(".rtl"))
simulation = project.simulate(x[1500:1520])
if np.any(simulation.output.reshape(20, -1) != fp.emulate(design, x[1500:1520])):
    raise SystemExit("the Verilog differs from the emulation")
print(f"simulated bit for bit: {simulation.latency_cycles} cycles from the first pixel to the logits")

for layer in (synthesis := project.synthesize("ecp5")).layers:
    print(f"{layer.layer:<12} {layer.cells.lut:>6,} LUT {layer.cells.ff:>6,} FF")
print(f"{synthesis.total_of}: {synthesis.total.lut:,} LUT, {synthesis.total.ff:,} FF")
made = project.make_bitstream("ulx3s", output)
print(f"{made.path}: {made.board}, {made.clock_mhz:g} MHz of {made.fmax_mhz:g}")
print(f"send {made.in_bytes} bytes at {made.baud:,} baud; {made.out_bytes} bytes come back")
