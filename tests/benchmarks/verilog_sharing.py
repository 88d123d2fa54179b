"""Random matrices, what `fpgaprune.rtl` makes of them, and the laws of sharing that are fitted to that."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from fpgaprune.estimate import Counting, Counts, Needed, count_datapath
from fpgaprune.rtl import Circuit, Number, Pipeline, SerialSums, matrix_product, schedule, share, with_three_operands

# Law to the quantity of trees without sharing that it is a share of.
LAWS = {
    **{name: name for name in ("adders", "chain_bits", "pair_bits", "register_bits", "width_bits", "kept_bits")},
    "three_bits": "chain_bits",
    "three_register_bits": "register_bits",
}
# The longest that one matrix may take.
MOST_DIGITS = 6000


def draw(seed: int) -> tuple[np.ndarray, int, bool]:
    """A matrix of random size, type, zeros and structure; width and signedness of what it multiplies."""
    r = np.random.default_rng(seed)
    outputs, inputs = int(np.exp(r.uniform(0, np.log(64)))), int(np.exp(r.uniform(np.log(4), np.log(400))))
    bits = int(r.integers(2, 11))
    most = (1 << (bits - 1)) - 1
    if r.random() < 0.2:
        raw = np.sign(r.normal(size=(inputs, outputs))) * 2.0 ** r.integers(0, max(bits - 1, 1), (inputs, outputs))
    elif r.random() < 0.2:
        raw = r.integers(-most, most + 1, (inputs, outputs)).astype(float)
    else:
        raw = np.clip(np.round(r.normal(size=(inputs, outputs)) * most / r.uniform(1.5, 5)), -most, most)
    zeros = 1 - np.exp(r.uniform(np.log(0.03), 0))
    # Whole kernels of so many taps are zero.
    taps = min(int(r.choice([1, 1, 9, 25, 3])), inputs)
    kept = np.tile(r.random((inputs // taps, outputs)) >= zeros, (taps, 1))
    matrix = (raw[: len(kept)] * kept).astype(np.int64)
    if r.random() < 0.3:
        matrix = matrix * (r.random(matrix.shape) < r.uniform(0.3, 1))
    if r.random() < 0.12:
        channels, taps = int(r.integers(2, 24)), int(r.choice([3, 9]))
        values = np.clip(np.round(r.normal(size=(taps, channels)) * most / 2), -most, most)
        values *= r.random((taps, channels)) >= zeros
        matrix = np.zeros((taps * channels, channels), np.int64)
        for channel in range(channels):
            matrix[channel::channels, channel] = values[:, channel]
    width, signed = int(r.integers(1, 11)), bool(r.random() < 0.4)
    return matrix, max(width, 2) if signed else width, signed


def _bounds(width: int, signed: bool) -> tuple[int, int]:
    return (-(1 << (width - 1)), (1 << (width - 1)) - 1) if signed else (0, (1 << width) - 1)


def _made(matrix: np.ndarray, width: int, signed: bool) -> dict[str, float]:
    """What the generator makes."""
    low, high = _bounds(width, signed)
    graph = share(matrix)
    circuit = Circuit()
    values = [Number(circuit, circuit.input(width, signed, low, high), 0) for _ in range(len(matrix))]
    for total, _ in matrix_product(values, matrix, lambda *_: graph):
        circuit.output(total.place, total.node.width)
    path = Pipeline(circuit, schedule(circuit, 1), 1)
    found = count_datapath(path, Needed.of(path))
    three, depth = _of_three(circuit)
    serial = SerialSums.of(graph, (width, signed, low, high), None)
    return {
        "adders": found["adder"],
        "chain_bits": found["chain_bit"],
        "pair_bits": found["pair_bit"],
        "register_bits": found["register"],
        "width_bits": serial.parallel_bits,
        "kept_bits": sum(serial.later.values()),
        "count": serial.count,
        "three_bits": three["pair_bit"] + three["lone_bit"] + three["difference"],
        "three_register_bits": three["register"],
        "three_depth": depth,
    }


def _of_three(circuit: Circuit) -> tuple[Counts, int]:
    """What adders of three operands take, and their depth, where each sum gets a bias; less what the biases take."""
    biased, biases = circuit.continued(), Circuit()
    for number, (place, width) in enumerate(circuit.outputs):
        node = circuit.nodes[place]
        bias = 1 + 37 * number % max(node.high - node.low, 1)
        biased.output(biased.add(place, biased.const(bias)), width + 1)
        alone = biases.input(width, True, node.low, node.high)
        biases.output(biases.add(alone, biases.const(bias)), width + 1)
    found = Counts()
    made = with_three_operands(biased)
    for one, times in ((made, 1), (biases, -1)):
        path = Pipeline(one, schedule(one, 1), 1)
        found.more(count_datapath(path, Needed.of(path)), times)
    return found, schedule(made, 1).depth - 1


def fit_laws(seconds: float, seed: int = 0) -> dict[str, list[float]]:
    """Coefficients of each law, fitted to as many matrices as `seconds` allow; prints errors on those left out."""
    rng, stop = np.random.default_rng(seed), time.time() + seconds
    terms: list[np.ndarray] = []
    plain: list[Any] = []
    made: list[dict[str, float]] = []
    while time.time() < stop:
        matrix, width, signed = draw(int(rng.integers(1 << 40)))
        low, high = _bounds(width, signed)
        ends = (np.full(len(matrix), bound, np.int64) for bound in (low, high))
        counting = Counting.of(matrix, *ends)
        if counting.plain.adders < 10 or counting.by_column.sum() > MOST_DIGITS:
            continue
        terms.append(counting.terms)
        plain.append(counting.plain)
        made.append(_made(matrix, width, signed))
    x = np.array(terms)
    laws = {}
    for law, of in LAWS.items():
        true = np.array([row[law] for row in made]) + (law == "kept_bits") * 5 + 1e-9
        pairs = zip(made, plain, strict=True)
        base = np.array([row["count"] if law == "kept_bits" else getattr(p, of) for row, p in pairs])
        y = np.log(np.maximum(true, 1) / np.maximum(base, 1))
        fold = np.arange(len(y)) % 8
        left_out = np.zeros(len(y))
        for k in range(8):
            left_out[fold == k] = x[fold == k] @ _robust(x[fold != k], y[fold != k])
        errors = np.abs(np.exp(left_out - y) - 1)
        middle, far = np.percentile(errors, [50, 90])
        print(f"{law:14} {len(y)} matrices, error {middle:.3f}, 90th percentile {far:.3f}")
        laws[law] = [round(float(value), 5) for value in _robust(x, y)]
    return laws


def _robust(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Least squares that far rows move little."""
    weight, ridge = np.ones(len(y)), 0.05 * np.eye(x.shape[1])
    for _ in range(10):
        rows = np.vstack([x * weight[:, None], ridge])
        found = np.linalg.lstsq(rows, np.concatenate([y * weight, np.zeros(len(ridge))]), rcond=None)[0]
        weight = 1 / np.sqrt(np.maximum(np.abs(x @ found - y), 0.02))
    return found
