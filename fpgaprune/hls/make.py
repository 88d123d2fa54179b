"""Turns a Keras model into hls4ml's graph and its `Design`, without writing a file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fpgaprune.errors import HlsError
from fpgaprune.hls.accelerator_boards import require_board
from fpgaprune.hls.convert import convert, extract_layers
from fpgaprune.hls.strategy_advice import StrategyAdvice, advise_strategy
from fpgaprune.lowering import AnyPrecision, Lowered, Samples, lower
from fpgaprune.target import Target


@dataclass(frozen=True)
class Made:
    """The parts of a project that `to_hls` writes and returns."""

    graph: Any
    lowered: Lowered
    advice: StrategyAdvice


def make(
    model: Any,
    target: Target,
    data: Samples | None,
    precision: AnyPrecision | None,
    folder: Path,
    name: str,
    *,
    backend_options: Mapping[str, Any] | None = None,
    **settings: Any,
) -> Made:
    """As `to_hls`, without writing; `folder` is where the project would be.

    Raises:
        HlsError: hls4ml's graph differs from the design.
    """
    require_board(target, backend_options or {})
    lowered = lower(model, target, data, precision, name, **settings)
    design = lowered.design
    entries: dict[str, dict[str, Any]] = {
        layer.name: {"Strategy": layer.strategy, "ReuseFactor": layer.reuse_factor}
        for layer in design.layers
        if layer.strategy is not None
    }
    for layer, size in lowered.tables.items():
        entries.setdefault(layer, {})["TableSize"] = size
    graph = convert(lowered.folded, lowered.types, target, folder, name, entries, backend_options or {})
    _require_same(graph, lowered)
    return Made(graph, lowered, advise_strategy(design, target))


def _require_same(graph: Any, lowered: Lowered) -> None:
    """hls4ml's `graph` multiplies as the design says, by the same integers."""
    design = lowered.design
    raws = {layer.name: layer.weights for layer in design.layers if layer.strategy is not None}
    names = {layer.name: layer.project_name for layer in design.layers}
    found, _ = extract_layers(graph, raws, {}, lowered.types, names)
    for layer in found:
        wanted = next((spec for spec in design.layers if spec.name == layer.name), None)
        if wanted is None or (layer.strategy, layer.reuse_factor) != (wanted.strategy, wanted.reuse_factor):
            raise HlsError(
                f"hls4ml laid out layer {layer.name!r} with strategy {layer.strategy!r} and reuse factor "
                f"{layer.reuse_factor}; wanted {None if wanted is None else wanted.strategy!r} and "
                f"{None if wanted is None else wanted.reuse_factor}: choose others for it"
            )
