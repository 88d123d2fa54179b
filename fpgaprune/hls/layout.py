"""How the multiplications of each layer are laid out: strategies and reuse factors, checked before conversion."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fpgaprune.errors import HlsError
from fpgaprune.hls.backends import Backend, backend_of
from fpgaprune.hls.layers import check_kinds
from fpgaprune.hls.options import LayerOptions
from fpgaprune.hls.prepare import DEPTHWISE, FOLDABLE, PRODUCTS
from fpgaprune.hls.recurrent import RECURRENT
from fpgaprune.hls.reuse import product_size, reuse_problem
from fpgaprune.target import Target


@dataclass(frozen=True)
class Layout:
    """How one layer multiplies."""

    strategy: str
    reuse_factor: int


def settle_layouts(folded: Any, target: Target, options: Mapping[str, LayerOptions]) -> dict[str, Layout]:
    """Layer name to its layout, for every layer of `folded` that multiplies.

    A depthwise layer has no template for `resource_unrolled` and `distributed_arithmetic`, a recurrent one none for
    `distributed_arithmetic`: where the whole network is to have one of these, it has `latency` with reuse factor 1.

    Raises:
        HlsError: the backend cannot make what is asked for; reuse factors that are not possible are named together
            with the nearest that are.
        UnsupportedLayerError: the backend has no template for a layer.
    """
    backend = backend_of(target)
    check_kinds(folded, backend, target.io_type, target.strategy)
    layouts: dict[str, Layout] = {}
    problems = []
    for layer in folded.layers:
        if not isinstance(layer, PRODUCTS):
            continue
        own = options.get(layer.name, LayerOptions())
        layout = _layout(layer, backend, target, own)
        size, *also = _sizes(layer)
        problem = reuse_problem(*size, layout.strategy, layout.reuse_factor, *also)
        if problem:
            problems.append(f"{layer.name!r} ({problem})")
        layouts[layer.name] = layout
    if problems:
        raise HlsError(
            f"reuse factor {target.reuse_factor} is not possible with strategy {target.strategy!r}; nearest that are: "
            f"{', '.join(problems)}; change it for the whole network, or give these layers one of their own"
        )
    return layouts


def _sizes(layer: Any) -> list[tuple[int, int]]:
    """Inputs and outputs of each product of `layer`; hls4ml's two of a recurrent layer have one reuse factor."""
    if isinstance(layer, RECURRENT):
        return [product_size(tuple(w.shape), False) for w in (layer.cell.kernel, layer.cell.recurrent_kernel)]
    return [product_size(tuple(layer.kernel.shape), isinstance(layer, DEPTHWISE))]


def _layout(layer: Any, backend: Backend, target: Target, own: LayerOptions) -> Layout:
    strategy, reuse = own.strategy or target.strategy, own.reuse_factor or target.reuse_factor
    if strategy not in backend.strategies:
        raise HlsError(
            f"layer {layer.name!r} has strategy {strategy!r}; backend {backend.name} has "
            f"{', '.join(backend.strategies)}"
        )
    if isinstance(layer, RECURRENT) and strategy == "distributed_arithmetic":
        if own.strategy is not None:
            raise HlsError(
                f"layer {layer.name!r} is a {type(layer).__name__}, which has no template for strategy {strategy!r}; "
                "wanted 'latency', 'resource' or 'resource_unrolled'"
            )
        return Layout("latency", 1)
    if isinstance(layer, DEPTHWISE) and strategy in ("resource_unrolled", "distributed_arithmetic"):
        if own.strategy is not None:
            raise HlsError(
                f"layer {layer.name!r} is a {type(layer).__name__}, which has no template for strategy {strategy!r}; "
                "wanted 'latency' or 'resource'"
            )
        return Layout("latency", 1)
    convolution = isinstance(layer, FOLDABLE) and len(layer.kernel.shape) > 2
    if strategy == "resource_unrolled" and target.io_type == "io_parallel" and convolution:
        raise HlsError(
            f"layer {layer.name!r} is a convolution, for which strategy 'resource_unrolled' has no template in "
            "io_parallel: choose io_stream, or strategy 'latency'"
        )
    return Layout(strategy, reuse)
