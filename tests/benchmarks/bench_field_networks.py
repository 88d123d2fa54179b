"""Rivals' own networks from their own files, bit for bit as our Verilog on the part that they used.

    python tests/benchmarks/bench_field_networks.py                         # small: shows that it runs
    python tests/benchmarks/bench_field_networks.py rn06,rn07,kws,ad03,ad08 [--part PART] [--samples 20] [--share 0.8]

MLPerf Tiny's entries of hls4ml (RN06, RN07, AD03, AD08) and FINN (KWS-W3A3), from `../shared/models` beside the
checkout. The layout with the fewest cycles that the part takes is chosen, written, simulated on real samples (of the
anomaly networks there are none, so on noise) and synthesised. The first line of a network says its metric in hardware
on all samples that are there; the table is that of `bench_large_networks.py`.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(Path(__file__).parent)]

import bench_large_networks  # noqa: E402
import numpy as np  # noqa: E402
from select_network import MNIST  # noqa: E402

import fpgaprune as fp  # noqa: E402

SHARED = MNIST.parents[1]
FIELD, MODELS = SHARED / "data" / "field", SHARED / "models"
CLOCK_NS = 10.0
_V05 = MODELS / "mlcommons_tiny_results_v0.5_open" / "hls4ml" / "code"
_V07 = MODELS / "mlcommons_tiny_results_v0.7_open" / "hls4ml-finn" / "code"
Samples = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Entry:
    """A network of others: its file, and the samples and labels that it is judged by; None where none are shared."""

    file: Path
    samples: Callable[[], Samples] | None


def _images() -> Samples:
    with np.load(FIELD / "cifar10_lossless_calib500.npz") as file:
        return (file["x"] / np.float32(255)).astype(np.float32), file["y"]


def _keywords() -> Samples:
    with np.load(FIELD / "kws_mlperf_tiny_eval.npz") as file:
        real = file["mfcc_finn_int8"].astype(np.float32) * file["finn_scale"]
        return real.reshape(-1, 1, 1, 10, 49), file["y"]


ENTRIES = {
    "rn06": Entry(_V05 / "ic/RN06/training/resnet_v1_eembc_RN06/model_best.h5", _images),
    "rn07": Entry(_V07 / "ic/RN07/training/trained_model/model_best.h5", _images),
    "kws": Entry(_V07 / "kws/KWS-W3A3/training/training_checkpoint/QONNX_model.onnx", _keywords),
    "ad03": Entry(_V05 / "ad/AD03/training/model/ad03/model_ToyCar.h5", None),
    "ad08": Entry(_V07 / "ad/AD08/training/trained_model/model.h5", None),
}


def main() -> None:
    """The rows of the networks that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="?", default="ad03", help=f"of {', '.join(ENTRIES)}")
    parser.add_argument("--part", default=bench_large_networks.PART)
    parser.add_argument("--samples", type=int, default=8, help="that are simulated")
    parser.add_argument("--share", type=float, default=0.8, help="of each resource of the part")
    parser.add_argument("--interval", type=int, help="cycles for a sample; the fewest if left out")
    parser.add_argument("--priced", action="store_true", help="without synthesis")
    asked = parser.parse_args()
    for name in asked.names.split(","):
        entry = ENTRIES[name]
        if not entry.file.exists():
            print(f"skipped: {name}: {entry.file.name} is not there")
            continue
        loaded = fp.load(entry.file)
        shape = loaded.model.input_shape[1:]
        x, y = np.random.default_rng(0).normal(size=(64, *shape)).astype(np.float32), None
        if entry.samples is not None:
            found, y = entry.samples()
            # A file of another layout says its axes; samples have the elements in the same order.
            x = found.reshape(len(found), *shape)
        target = fp.Target.of(asked.part, clock_ns=CLOCK_NS, io_type="io_stream")
        design = fp.make_design(loaded.model, target, x[:64], name=name)
        if y is not None:
            found = np.asarray(fp.emulate(design, x)).reshape(len(x), -1)
            print(f"{name}: {100 * (found.argmax(1) == y).mean():.1f} % of {len(y)} samples", flush=True)
        print(bench_large_networks.row(name, design, x[: asked.samples], asked.part, 0.0, asked), flush=True)


if __name__ == "__main__":
    main()
