"""From digits to placed and routed hardware with open tools, as straight-line Python.

Run it with `python flows/open_hardware.py [FOLDER]`; everything is written to FOLDER (runs/open_hardware), and a second
run starts no tool again whose input is the same. A small network is trained; for each sparsity its kernels are locked,
it is fine-tuned, freed of dead channels, proven, written as Verilog, simulated against the emulation, synthesised for
two families, and placed and routed on an ECP5. Needed: pip install 'fpgaprune[rtl]', and g++.
"""

import sys
from pathlib import Path

import keras
import numpy as np
from sklearn.datasets import load_digits

import fpgaprune as fp

out = Path(sys.argv[1] if len(sys.argv) > 1 else "runs/open_hardware")
out.mkdir(parents=True, exist_ok=True)
keras.utils.set_random_seed(7)

# 1,797 real digits of 8 x 8 pixels; the last 297 are held out.
images, labels = load_digits(return_X_y=True)
x = (images.reshape(-1, 8, 8, 1) / 16).astype("float32")
x_train, y_train, x_test, y_test = x[:1500], labels[:1500], x[1500:], labels[1500:]


def compiled(model):
    """`model`, ready to be trained on class numbers."""
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(0.005), loss, metrics=["accuracy"])
    return model


# train
layers = [keras.Input((8, 8, 1))]
for number, filters in enumerate((8, 12), start=1):
    layers += [keras.layers.Conv2D(filters, 3, name=f"conv{number}"), keras.layers.ReLU(name=f"relu{number}")]
    layers += [keras.layers.MaxPooling2D(name="pool")] if number == 1 else []
layers += [keras.layers.Flatten(name="flatten"), keras.layers.Dense(10, name="dense")]
trained = compiled(keras.Sequential(layers))
trained.fit(x_train, y_train, epochs=20, verbose=0)
trained.save(out / "trained.keras")

rows = []
for sparsity in (0.0, 0.75):
    # lock what matters least for each adder that it takes, fine-tune, certify
    model = compiled(keras.saving.load_model(out / "trained.keras"))
    masks = fp.select(model, sparsity, criterion="taylor", data=(x_train, y_train), cost="adders(6)", normalize="none")
    fp.finetune(model, masks, x_train, y_train, epochs=20, seed=7, verbose=0)
    fp.certify(model, masks).require()

    # remove dead and unread channels, with proof
    plan = fp.plan_removal(model)
    fp.equivalence(model, fp.apply_removal(model, plan, dtype="float64"), x_test, tolerance=1e-9).require()
    small = fp.apply_removal(model, plan)

    # a fixed-point design; what it computes, by emulation
    target = fp.Target.of("lfe5u-25f", clock_ns=10.0)
    design = fp.make_design(small, target, x_train[:512], fp.Precision(6, 8), f"digits{round(100 * sparsity)}")
    logits = fp.emulate(design, x_test)
    accuracy = (logits.argmax(axis=-1) == y_test).mean()

    # Verilog, simulated clock by clock with stalls on both streams, and bit for bit the emulation
    project = fp.to_verilog(design, out / design.name)
    simulation = project.simulate(x_test[:32], stalls=0.2, seed=1)
    if np.any(simulation.output.reshape(32, -1) != logits[:32]):
        raise SystemExit("the Verilog differs from the emulation")

    # synthesis for two families, place and route for one
    xilinx, lattice = (project.synthesize(family, cache=out / "synth") for family in ("xc7", "ecp5"))
    routed = project.place_and_route("ecp5", seeds=3, cache=out / "synth")
    free_running = project.simulate(x_test[:8])
    rows.append((sparsity, accuracy, xilinx.total.lut, lattice.total.lut, routed, free_running))

# Each column holds one stage of one family; a clock of an ECP5 says nothing about another device.
print("kernels locked  accuracy  LUT synth(open) xc7  LUT synth(open) ecp5  LUT route(ecp5)  MHz route(ecp5)  cycles")
for sparsity, accuracy, lut6, lut4, routed, timing in rows:
    low, high = routed.fmax_range_mhz
    print(
        f"{sparsity:>14.0%}  {accuracy:>8.2%}  {lut6:>19,}  {lut4:>20,}  {routed.used['lut']:>15,}  "
        f"{routed.fmax_mhz:>5.0f} ({low:.0f}-{high:.0f})  {timing.latency_cycles:>6}"
    )
