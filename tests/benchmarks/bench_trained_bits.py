"""LUTs at equal accuracy: `examples/trained_bits.toml` on 8 × 8 MNIST against the front of HGQ2 and alkaid.

    python tests/benchmarks/bench_trained_bits.py                   # small: shows that it runs
    python tests/benchmarks/bench_trained_bits.py FOLDER [--sparsities 0.45,0.6,0.75] [--seeds 0,1,2] [--epochs 66,54]

The network is an MLP 64-32-32-10, trained once for each seed (24 epochs); FOLDER keeps it and every run. A row runs
the flow file as a user starts it, with other paths, seed and sparsity. Accuracy is that of the hardware on the 10,000
test images, which choose nothing. The peer's LUTs at that accuracy lie on the lines between its own points.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import keras
import numpy as np
from select_network import MNIST, read_mnist

EXAMPLE = Path(__file__).parents[2] / "examples" / "trained_bits.toml"
# Test accuracy in % and LUTs of HGQ2 0.2.0 and alkaid 0.8.2 on this network and data: beta 4e-5, 1.5e-5 and 4e-6, 120
# epochs, one seed, counted by the same synthesis (pyosys 0.70, xc7).
PEER = ((93.95, 4_946), (95.43, 9_363), (96.48, 15_556))


def main() -> None:
    """The table, a row for each seed and sparsity."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", help="left out: one short run shows that it works")
    parser.add_argument("--sparsities", default="0.45,0.6,0.75")
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--epochs", default="66,54", help="of [finetune] and [quantise]")
    chosen = parser.parse_args()
    if not MNIST.is_dir():
        print(f"skipped: {MNIST} with the files of MNIST is not there")
        return
    if chosen.folder is None:
        chosen.folder, chosen.seeds, chosen.sparsities, chosen.epochs = Path("trained_bits"), "0", "0.9", "1,6"
    chosen.folder.mkdir(parents=True, exist_ok=True)
    data = chosen.folder / "mnist8.npz"
    if not data.exists():
        np.savez(data, **small_mnist())
    print("| seed | sparsity | kept weights | accuracy in hardware | LUT | FF | peer's LUT there | ratio |", flush=True)
    print("|---:|---:|---:|---:|---:|---:|---:|---:|", flush=True)
    for seed in (int(text) for text in chosen.seeds.split(",")):
        model = trained(chosen.folder, data, seed)
        for sparsity in (float(text) for text in chosen.sparsities.split(",")):
            row = run(chosen.folder, data, model, seed, sparsity, [int(text) for text in chosen.epochs.split(",")])
            print(f"| {seed} | {sparsity} | {' | '.join(row)} |", flush=True)


def small_mnist() -> dict[str, np.ndarray]:
    """MNIST in 64 inputs: cropped to 24 × 24, averaged over 3 × 3, bytes over 256; the last 5,000 validate."""
    found = read_mnist(60_000)

    def small(images: np.ndarray) -> np.ndarray:
        whole = np.round(images[..., 0] * 255)[:, 2:26, 2:26].reshape(-1, 8, 3, 8, 3).mean((2, 4))
        return (np.clip(np.floor(whole + 0.5), 0, 255) / 256).reshape(-1, 64).astype(np.float32)

    x, y = small(found["x"]), found["y"]
    return {
        "x_train": x[:55_000],
        "y_train": y[:55_000],
        "x_valid": x[55_000:],
        "y_valid": y[55_000:],
        "x_test": small(found["x_test"]),
        "y_test": found["y_test"],
    }


def trained(folder: Path, data: Path, seed: int) -> Path:
    """The file of the network that every run of this seed begins with."""
    path = folder / f"mlp_{seed}.keras"
    if path.exists():
        return path
    keras.utils.set_random_seed(seed)
    layers = keras.layers
    x = entry = keras.Input((64,), name="x")
    for number in (1, 2):
        x = layers.Dense(32, activation="relu", name=f"d{number}")(x)
    model = keras.Model(entry, layers.Dense(10, name="d3")(x))
    with np.load(data) as arrays:
        steps = 24 * -(-len(arrays["x_train"]) // 512)
        rate = keras.optimizers.schedules.CosineDecay(5e-3, steps)
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile(keras.optimizers.Adam(rate), loss, metrics=["accuracy"])
        model.fit(arrays["x_train"], arrays["y_train"], batch_size=512, epochs=24, verbose=0)
    model.save(path)
    return path


def run(folder: Path, data: Path, model: Path, seed: int, sparsity: float, epochs: list[int]) -> list[str]:
    """The cells of one run: kept weights, accuracy in %, LUT, FF, the peer's LUT, the ratio."""
    flow = tomllib.loads(EXAMPLE.read_text())
    flow["name"], flow["seed"] = f"s{seed}_{round(1000 * sparsity)}", seed
    flow["data"]["source"], flow["train"]["model"] = str(data.resolve()), str(model.resolve())
    flow["select"]["sparsity"] = sparsity
    flow["finetune"]["epochs"], flow["quantise"]["epochs"] = epochs
    flow["measure"]["simulate"] = 0
    toml, out = folder / f"{flow['name']}.toml", folder / flow["name"]
    toml.write_text("".join(f"{key} = {_toml(value)}\n" for key, value in flow.items()))
    # A verdict that the loss is too large ends with exit status 1; the point on the front is measured all the same.
    command = [sys.executable, "-m", "fpgaprune", "run", str(toml), "--out", str(out)]
    if subprocess.run(command, capture_output=True, check=False).returncode not in (0, 1):
        raise SystemExit(f"the run failed: {' '.join(command)}")
    manifest = json.loads((out / "manifest.json").read_text())["stages"]
    accuracy = 100 * manifest["hls"]["results"]["emulation"]["value"]
    measured = json.loads((out / "report.json").read_text())["measured"]["synth(open)"]["xc7"]["whole"]["cells"]
    kept = manifest["quantise"]["results"]["held"]
    points, luts = zip(*PEER, strict=True)
    peer = float(np.interp(accuracy, points, luts, left=np.nan, right=np.nan))
    cells = [f"{kept:,}", f"{accuracy:.2f} %", f"{measured['lut']:,}", f"{measured['ff']:,}"]
    return cells + (["–", "–"] if np.isnan(peer) else [f"{peer:,.0f}", f"{measured['lut'] / peer:.2f}"])


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_toml(inner)}" for key, inner in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(_toml(inner) for inner in value) + "]"
    return json.dumps(value)


if __name__ == "__main__":
    main()
