"""Finds the layers in which zeros save multipliers, and recommends a strategy.

In the code that hls4ml 1.3.0 generates, `latency` writes one product for each weight, and synthesis removes a product
with the constant 0. `distributed_arithmetic` writes adders for weights that are not zero. `resource` with a reuse
factor above 1 reads weights from a memory and multiplies zeros as well. `resource_unrolled` leaves out a multiplier if
all its weights are zero.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fpgaprune.backends import BACKENDS
from fpgaprune.design import Design, LayerSpec
from fpgaprune.target import Target


class StrategyWarning(UserWarning):
    """The chosen strategy saves little where the network has zeros."""


@dataclass(frozen=True)
class LayerSavings:
    """The multipliers that the zeros of one layer save.

    Attributes:
        layer: name of the layer.
        strategy: its strategy.
        reuse_factor: its reuse factor.
        weights: number of weights.
        zeros: number of weights that are zero after quantisation.
        multipliers: multipliers of the layout if no weight were zero.
        saved: multipliers that the layout leaves out because of zeros.
        unrolled_saved: multipliers that `resource_unrolled` would leave out at this reuse factor; 0 for factor 1.
    """

    layer: str
    strategy: str
    reuse_factor: int
    weights: int
    zeros: int
    multipliers: int
    saved: int
    unrolled_saved: int


@dataclass(frozen=True)
class StrategyAdvice:
    """The multipliers that the zeros of a design save, and the strategy in which they would save more.

    Attributes:
        layers: one entry for each layer that multiplies.
        recommended: the strategy in which the zeros save most.
        text: the reason, with figures; empty if no other strategy saves more.
    """

    layers: tuple[LayerSavings, ...]
    recommended: str
    text: str

    @property
    def zeros(self) -> int:
        """The number of zero weights in all layers."""
        return sum(layer.zeros for layer in self.layers)

    @property
    def saved(self) -> int:
        """The number of multipliers that zeros save in all layers."""
        return sum(layer.saved for layer in self.layers)


def advise_strategy(design: Design, target: Target) -> StrategyAdvice:
    """Find the multipliers that the zeros of `design` save on `target`, and recommend a strategy.

    Args:
        design: a design from `to_hls` or `make_design`.
        target: the target of the design.
    """
    layers = tuple(_savings(layer) for layer in design.layers if "weight" in layer.weights and layer.strategy)
    zeros, saved = sum(layer.zeros for layer in layers), sum(layer.saved for layer in layers)
    recommended = _recommended(layers, target)
    # Zeros save no more multipliers than the layout has, which may be fewer than its weights.
    idle = [layer for layer in layers if layer.zeros and not layer.saved]
    if not idle:
        return StrategyAdvice(layers, recommended, "")
    unrolled = sum(layer.unrolled_saved for layer in idle)
    reuse = sorted({layer.reuse_factor for layer in idle})
    instead = {
        "latency": f"'latency' would leave out the multiplications of all {zeros} zeros",
        "resource_unrolled": f"'resource_unrolled' would leave out {unrolled} multipliers at the same reuse factor",
        "resource": "on this backend only reuse factor 1 leaves them out",
    }[recommended]
    idle_zeros, idle_multipliers = sum(layer.zeros for layer in idle), sum(layer.multipliers for layer in idle)
    text = (
        f"strategy {idle[0].strategy!r} with reuse factor {', '.join(map(str, reuse))} saves 0 of {idle_multipliers} "
        f"multipliers by the {idle_zeros} zero weights of {', '.join(layer.layer for layer in idle)}"
        f"{f' ({saved} are saved elsewhere)' if saved else ''}; {instead}"
    )
    return StrategyAdvice(layers, recommended, text)


def warn_of_idle_zeros(advice: StrategyAdvice) -> None:
    """Give a `StrategyWarning` if zeros of some layers save nothing."""
    if advice.text:
        warnings.warn(advice.text, StrategyWarning, stacklevel=3)


def _savings(layer: LayerSpec) -> LayerSavings:
    reuse, strategy = layer.reuse_factor, str(layer.strategy)
    # A recurrent layer has two products.
    products = [layer.weights[role] for role in ("weight", "recurrent_weight") if role in layer.weights]
    counts = np.sum([_counts(weight, strategy, reuse) for weight in products], axis=0)
    return LayerSavings(layer.name, strategy, reuse, *(int(count) for count in counts))


def _counts(weight: NDArray[np.int64], strategy: str, reuse: int) -> tuple[int, int, int, int, int]:
    """Count a product's weights, zeros, multipliers, saved ones, and those that `resource_unrolled` would save."""
    zeros = int(weight.size - np.count_nonzero(weight))
    unrolled = _idle_blocks(weight, reuse) if reuse > 1 else 0
    if strategy not in ("resource", "resource_unrolled") or reuse == 1:
        multipliers = weight.size if strategy != "latency" or reuse == 1 else -(-weight.size // reuse)
        saved = min(zeros if reuse == 1 else zeros // reuse, multipliers)
    else:
        multipliers, saved = -(-weight.size // reuse), unrolled if strategy == "resource_unrolled" else 0
    return weight.size, zeros, multipliers, saved, unrolled


def _idle_blocks(weight: NDArray[np.int64], reuse: int) -> int:
    """Count the multipliers whose weights are all zero; weights are in the templates' order, outputs first."""
    if weight.size % reuse:
        return 0
    blocks = np.moveaxis(weight, -1, 0).reshape(-1, reuse)
    return int(len(blocks) - np.count_nonzero(blocks.any(axis=1)))


def _recommended(layers: tuple[LayerSavings, ...], target: Target) -> str:
    known = BACKENDS[target.backend].strategies if target.backend in BACKENDS else ("latency",)
    shared = any(layer.reuse_factor > 1 for layer in layers)
    frees = any(layer.unrolled_saved for layer in layers)
    if shared and frees and "resource_unrolled" in known and target.io_type == "io_stream":
        return "resource_unrolled"
    return "latency" if "latency" in known else known[0]
