"""What hardware takes on each family, fitted to syntheses of random networks' layers, whole networks left out."""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from verilog_networks import random_network

from fpgaprune.design import VerilogLayout
from fpgaprune.estimate import Counts, DigitCounter, count_layer, find_fabric
from fpgaprune.rtl import plan_verilog

ROWS = Path(__file__).with_name("verilog_price_rows.csv")
FOLDS = 10
# Rows below are as uncertain as one of so many LUTs or flip-flops.
_FLOOR = 50
# Errors of layers that take less say nothing.
LEAST = 40
# Quantity -> what one takes before any synthesis was seen, and how sure that is.
PRIORS: dict[str, Mapping[str, Mapping[str, tuple[float, float]]]] = {
    "xc7": {
        "lut": {
            "pair_bit": (1, 0.05), "lone_bit": (0.8, 0.3), "difference": (0.8, 0.3), "mask_bit": (0.3, 0.4),
            "choice_bit": (1, 0.3), "clip_bit": (0.3, 0.3), "comparison_bit": (1, 0.5), "limit_bit": (0.4, 0.3),
            "counter": (1.5, 0.7), "memory_lut": (1, 0.1), "memory_choice": (1, 0.5), "table_lut": (0.8, 0.5),
            "product_bit": (1, 0.4), "shift": (1, 0.3), "serial_adder": (2, 0.4), "serial_input_bit": (1, 0.3),
            "serial_kept": (0.3, 0.3), "instance_credit": (5, 4), "instance_window": (5, 4), "instance_fifo": (5, 4),
            "instance_pad": (8, 5), "instance_pace": (10, 5), "dsp": (2, 4),
        },
        "ff": {
            "register": (0.96, 0.1), "tree_register": (0.9, 0.1), "shifted": (-0.9, 0.3), "counter": (1, 0.2),
            "table_delay": (1, 0.5),
            "factor_register": (0.1, 0.3), "serial_adder": (2, 0.2), "serial_input_bit": (1, 0.2),
            "serial_kept": (0.5, 0.4), "instance_credit": (1, 1), "instance_window": (3, 2), "instance_fifo": (2, 1),
        },
    },
    "ecp5": {
        "lut": {
            "chain_bit": (1, 0.05), "adder": (0.5, 0.3), "difference": (0.1, 0.2), "mask_bit": (0.3, 0.4),
            "choice_bit": (1, 0.3), "clip_bit": (0.3, 0.3), "comparison_bit": (1.2, 0.6), "limit_bit": (0.5, 0.4),
            "counter": (2, 1), "memory_lut": (1, 0.1), "memory_choice": (1, 0.5), "table_lut": (0.8, 0.5),
            "product_bit": (1.2, 0.5), "serial_adder": (2, 0.4), "serial_input_bit": (1, 0.3),
            "serial_kept": (0.05, 0.1), "instance_credit": (6, 5), "instance_window": (6, 5), "instance_fifo": (6, 5),
            "instance_pad": (10, 6), "instance_pace": (10, 6), "dsp": (2, 4),
        },
        "ff": {
            "register": (0.96, 0.1), "tree_register": (0.9, 0.1), "counter": (1, 0.2), "table_delay": (1, 0.5),
            "factor_register": (1, 0.2),
            "serial_adder": (2, 0.2), "serial_input_bit": (1, 0.2), "serial_kept": (1, 0.2),
            "instance_credit": (1, 1), "instance_window": (3, 2), "instance_fifo": (2, 1),
        },
    },
}  # fmt: skip
# Families with logic cells like another family's begin with its guesses.
PRIORS |= {"xcup": PRIORS["xc7"], **dict.fromkeys(("gowin", "nexus", "ice40up"), PRIORS["ecp5"])}


@dataclass(frozen=True)
class Fitted:
    """What the fit of one resource says.

    Attributes:
        coefficients: what one of each quantity takes.
        layers, networks: true counts beside those that a fit without the network predicts.
    """

    coefficients: dict[str, float]
    layers: list[tuple[float, float]]
    networks: list[tuple[float, float]]


def read_rows() -> list[dict[str, Any]]:
    """A row for each synthesised layer: seed of the network, family, layer and counts."""
    with ROWS.open(newline="") as file:
        return [
            {name: text if name in ("family", "layer") else int(text) for name, text in row.items()}
            for row in csv.DictReader(file)
        ]


@cache
def counted(seed: int) -> dict[str, Counts]:
    """Layer -> quantities of the network of `seed`, its adders counted as for an estimate."""
    design, interval = random_network(seed)
    hardware = plan_verilog(design, VerilogLayout(interval=interval), DigitCounter())
    return {layer.layer: count_layer(layer) for layer in hardware.layers if layer.layer}


def fit(family: str, resource: str) -> Fitted:
    """The coefficients of `resource`, `lut` or `ff`."""
    rows = [row for row in read_rows() if row["family"] == family]
    priors = PRIORS[family][resource]
    fabric = find_fabric(family)
    made = np.array(
        [[fabric.mapped(counted(row["seed"])[row["layer"]])[name] for name in priors] for row in rows], float
    )
    y = np.array([row[resource] for row in rows], float)
    fold = np.array([row["seed"] % FOLDS for row in rows])
    left_out = np.zeros(len(y))
    for k in set(fold.tolist()):
        left_out[fold == k] = made[fold == k] @ _solved(made[fold != k], y[fold != k], priors)
    sums: dict[int, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for row, true, found in zip(rows, y, left_out, strict=True):
        sums[row["seed"]][0] += true
        sums[row["seed"]][1] += found
    coefficients = dict(zip(priors, _solved(made, y, priors).tolist(), strict=True))
    layers = [(true, found) for true, found in zip(y.tolist(), left_out.tolist(), strict=True) if true >= LEAST]
    return Fitted(coefficients, layers, [(true, found) for true, found in sums.values()])


def _solved(x: np.ndarray, y: np.ndarray, priors: Mapping[str, tuple[float, float]]) -> np.ndarray:
    """Relative least squares drawn to the priors, in which far rows count less; only what is taken back is negative."""
    middle, spread = np.array(list(priors.values())).T
    scale = 1 / np.maximum(y, _FLOOR)
    weight = scale
    for _ in range(10):
        rows = np.vstack([x * weight[:, None], 0.1 * np.diag(1 / spread)])
        found = np.linalg.lstsq(rows, np.concatenate([y * weight, 0.1 * middle / spread]), rcond=None)[0]
        weight = scale / np.sqrt(np.maximum(np.abs(x @ found - y) * scale / 0.05, 1))
    return np.where((found < 0) & (middle > 0), 0, found)


def errors(pairs: list[tuple[float, float]]) -> np.ndarray:
    """Relative errors of predictions."""
    true, found = np.array(pairs).T
    return np.abs(found / true - 1)


def interval(pairs: list[tuple[float, float]]) -> tuple[float, float]:
    """True over predicted, the ends of the range that held four of five, widened for so few of them."""
    ratios = np.array([true / max(found, 1) for true, found in pairs])
    more = 0.5 / len(ratios)
    low, high = np.quantile(ratios, [max(0.1 - more, 0), min(0.9 + more, 1)])
    return min(float(low), 1.0), max(float(high), 1.0)
