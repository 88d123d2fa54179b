"""LUTs at equal accuracy: `examples/trained_bits.toml` on 8 × 8 MNIST against the front of HGQ2 and alkaid.

    python tests/benchmarks/bench_trained_bits.py                   # small: shows that it runs
    python tests/benchmarks/bench_trained_bits.py FOLDER [--sparsities 0.45,0.6,0.75] [--seeds 0,1,2] [--epochs 90,30]

The network is an MLP 64-32-32-10, trained once for each seed (24 epochs); FOLDER keeps it and every run. A row runs
the flow file with other paths, seed and sparsity, and as it was when the figures of the page were made: weights chosen
by Taylor scores, without decay. Accuracy is that of the hardware on the 10,000 test images, which choose nothing within
a run. The peer's LUTs at that accuracy are the median of its three seeds, each on the lines between its own points. The
second table has both at equal accuracy, ours by the same rule.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable
from pathlib import Path

import flow_files
import keras
import numpy as np
from flow_files import TAYLOR, example, results
from select_network import MNIST, read_mnist

# Test accuracy in % and LUTs of HGQ2 0.2.0 and alkaid 0.8.2 on this network and data: beta 4e-5, 1.5e-5 and 4e-6, 120
# epochs, a row for each of three seeds, counted by the same synthesis (pyosys 0.70, xc7).
PEERS = (
    ((93.95, 4_946), (95.43, 9_363), (96.48, 15_556)),
    ((93.30, 4_961), (95.53, 8_895), (96.40, 15_398)),
    ((93.92, 5_052), (95.68, 9_298), (96.63, 15_791)),
)
# Accuracies in % at which the second table compares the two.
EQUAL = (94.0, 95.5, 96.4)
Point = tuple[float, float]


def main() -> None:
    """The table, a row for each seed and sparsity."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", help="left out: one short run shows that it works")
    parser.add_argument("--sparsities", default="0.45,0.6,0.75,0.8,0.85")
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--epochs", default="90,30", help="of [finetune] and [quantise]")
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
    epochs = [int(text) for text in chosen.epochs.split(",")]
    fronts: list[list[Point]] = []
    for seed in (int(text) for text in chosen.seeds.split(",")):
        model = trained(chosen.folder, data, seed)
        fronts.append([])
        for sparsity in (float(text) for text in chosen.sparsities.split(",")):
            row, point = run(chosen.folder, data, model, seed, sparsity, epochs)
            fronts[-1].append(point)
            print(f"| {seed} | {sparsity} | {' | '.join(row)} |", flush=True)
    print("\n| accuracy | our LUT | peer's LUT | ratio |\n|---:|---:|---:|---:|")
    for accuracy in EQUAL:
        ours, theirs = lut_at(accuracy, fronts), lut_at(accuracy, PEERS)
        print(f"| {accuracy} % | {shown(ours)} | {shown(theirs)} | {shown(ours / theirs, '.2f')} |")


def lut_at(accuracy: float, fronts: Iterable[Iterable[Point]]) -> float:
    """The median of the LUTs of several seeds at `accuracy`, each on the lines between its points.

    A seed that does not come so far takes more than any; nan if a seed has no point below.
    """
    found = [np.interp(accuracy, *zip(*sorted(points), strict=True), left=np.nan, right=np.inf) for points in fronts]
    return float(np.median(found))


def shown(figure: float, form: str = ",.0f") -> str:
    """`figure` as a cell; a dash if it is unknown."""
    return format(figure, form) if np.isfinite(figure) else "–"


def small_mnist(folder: Path = MNIST) -> dict[str, np.ndarray]:
    """MNIST in 64 inputs: cropped to 24 × 24, averaged over 3 × 3, bytes over 256; the last 5,000 validate.

    `folder` may be that of another set in the same four files.
    """
    found = read_mnist(60_000, folder)

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


def run(
    folder: Path, data: Path, model: Path, seed: int, sparsity: float, epochs: list[int]
) -> tuple[list[str], Point]:
    """The cells of one run: kept weights, accuracy in %, LUT, FF, the peer's LUT, the ratio; and accuracy and LUT."""
    flow = example(
        "trained_bits",
        name=f"s{seed}_{round(1000 * sparsity)}",
        seed=seed,
        data={"source": str(data.resolve())},
        train={"model": str(model.resolve())},
        select={"sparsity": sparsity, **TAYLOR},
        finetune={"epochs": epochs[0], "weight_decay": 0.0},
        quantise={"epochs": epochs[1]},
        measure={"simulate": 0},
    )
    out = flow_files.run(flow, folder)
    accuracy = 100 * results(out, "hls")["emulation"]["value"]
    measured = json.loads((out / "report.json").read_text())["measured"]["synth(open)"]["xc7"]["whole"]["cells"]
    kept = results(out, "quantise")["held"]
    peer, lut = lut_at(accuracy, PEERS), measured["lut"]
    ratio = shown(lut / peer if np.isfinite(peer) else np.nan, ".2f")
    cells = [f"{kept:,}", f"{accuracy:.2f} %", shown(lut), shown(measured["ff"]), shown(peer), ratio]
    return cells, (accuracy, lut)


if __name__ == "__main__":
    main()
