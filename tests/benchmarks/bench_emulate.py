"""Images per second of the emulator, the compiled C simulation and onnxruntime, interleaved in one run.

The network takes 28 x 28 images; its second convolution has a kernel of [3, 3, 32, 32]. Run with
`python tests/benchmarks/bench_emulate.py [OUT.json]`; it needs g++.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np
import onnxruntime

import fpgaprune as fp
from fpgaprune.flow.task import small_cnn
from fpgaprune.lowering import fold

ROUNDS = 5
SHARES = {"emulator": 1000, "onnxruntime": 1000}
FULL = 10_000


def network() -> keras.Model:
    """The network of the flows, which the demo trains too."""
    keras.utils.set_random_seed(1)
    return small_cnn((28, 28, 1), 10)


def rate(run, count: int) -> float:
    start = time.perf_counter()
    run()
    return count / (time.perf_counter() - start)


def main() -> None:
    images = np.random.default_rng(2).random((FULL, 28, 28, 1)).astype(np.float32)
    model = network()
    with tempfile.TemporaryDirectory() as folder:
        target = fp.Target.of("xc7z020clg400-1")
        project = fp.to_hls(model, target, images[:200], Path(folder) / "hls")
        simulation = project.compile()
        # BatchNorm folded, as in the hardware.
        fp.export_onnx(fold(model), Path(folder) / "model.onnx")
        session = onnxruntime.InferenceSession(str(Path(folder) / "model.onnx"), providers=["CPUExecutionProvider"])
        (entry,) = session.get_inputs()
        simulated = 10
        contenders = {
            "emulator": (lambda: fp.emulate(project.design, images[: SHARES["emulator"]]), SHARES["emulator"]),
            "C simulation": (lambda: simulation.predict(images[:simulated]), simulated),
            "onnxruntime": (
                lambda: session.run(None, {entry.name: images[: SHARES["onnxruntime"]]}),
                SHARES["onnxruntime"],
            ),
        }
        same = np.array_equal(fp.emulate(project.design, images[:simulated]), simulation.predict(images[:simulated]))
        for run, _ in contenders.values():
            run()
        rates: dict[str, list[float]] = {name: [] for name in contenders}
        for _ in range(ROUNDS):
            for name, (run, count) in contenders.items():
                rates[name].append(rate(run, count))
        start = time.perf_counter()
        fp.emulate(project.design, images)
        full_s = time.perf_counter() - start
    medians = {name: statistics.median(values) for name, values in rates.items()}
    ratio = medians["emulator"] / medians["C simulation"]
    for name, values in rates.items():
        print(f"{name:13} {medians[name]:10.1f} images/s (median of {ROUNDS}; {min(values):.1f} to {max(values):.1f})")
    print(f"emulator / C simulation: {ratio:.0f}; bits equal: {same}; {FULL} images in {full_s:.1f} s")
    if len(sys.argv) > 1:
        found = {
            "images_per_s": rates,
            "ratio": ratio,
            "bits_equal": bool(same),
            "full_s": full_s,
            "cpus": os.cpu_count(),
        }
        Path(sys.argv[1]).write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
