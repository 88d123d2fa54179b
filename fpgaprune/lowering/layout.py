"""Chooses how each layer multiplies: its strategy and its reuse factor, checked before the conversion."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fpgaprune.backends import OURS, Backend, backend_named
from fpgaprune.design import product_size, settle_reuse
from fpgaprune.errors import HlsError
from fpgaprune.lowering.folding import DEPTHWISE, FOLDABLE, PRODUCTS
from fpgaprune.lowering.layer_options import LayerOptions
from fpgaprune.lowering.recurrent_layers import RECURRENT
from fpgaprune.target import Target

if TYPE_CHECKING:
    import keras


@dataclass(frozen=True)
class Layout:
    """How one layer multiplies."""

    strategy: str
    reuse_factor: int


@dataclass(frozen=True)
class Layouts:
    """How all layers multiply.

    Attributes:
        layers: name to layout, for every layer that multiplies.
        problems: one line for each thing that cannot be made, with what to do.
        notes: one line for each reuse factor that differs from the one asked for.
    """

    layers: dict[str, Layout]
    problems: tuple[str, ...]
    notes: tuple[str, ...]


def settle_layouts(
    folded: keras.Model, target: Target, options: Mapping[str, LayerOptions]
) -> tuple[dict[str, Layout], tuple[str, ...]]:
    """Map the name of each layer of `folded` that multiplies to its layout; also note each reuse factor moved.

    A depthwise layer has no template for `resource_unrolled` and `distributed_arithmetic`, a recurrent one none for
    `distributed_arithmetic`. Where the target asks for these, such a layer has `latency` with reuse factor 1.

    Raises:
        HlsError: the backend cannot make what is asked for, or a layer can have no reuse factor with its strategy.
    """
    backend_named(target.backend).require(target.strategy, target.io_type)
    found = find_layouts(folded.layers, target, options)
    if found.problems:
        raise HlsError("; ".join(found.problems))
    return found.layers, found.notes


def find_layouts(layers: Iterable[object], target: Target, options: Mapping[str, LayerOptions]) -> Layouts:
    """Find layouts as `settle_layouts`, with all problems; the backend must be known, `layers` may be a part."""
    backend = backend_named(target.backend)
    layouts: dict[str, Layout] = {}
    problems, notes = [], []
    for layer in layers:
        if not isinstance(layer, PRODUCTS):
            continue
        own = options.get(layer.name, LayerOptions())
        try:
            layout = _layout(layer, backend, target, own)
        except HlsError as error:
            problems.append(str(error))
            continue
        reuse = settle_reuse(_sizes(layer), layout.strategy, layout.reuse_factor)
        if reuse.factor is None:
            problems.append(
                f"layer {layer.name!r} ({reuse.size}) can have no reuse factor with strategy {layout.strategy!r}: "
                "choose 'latency' for it"
            )
        else:
            notes.append(reuse.note(layer.name, layout.strategy))
            layouts[layer.name] = Layout(layout.strategy, reuse.factor)
    return Layouts(layouts, tuple(problems), tuple(note for note in notes if note is not None))


def _sizes(layer: keras.Layer) -> list[tuple[int, int]]:
    """Return the inputs and outputs of each product of `layer`; the two of a recurrent layer share a reuse factor."""
    if isinstance(layer, RECURRENT):
        return [product_size(tuple(w.shape), False) for w in (layer.cell.kernel, layer.cell.recurrent_kernel)]
    return [product_size(tuple(layer.kernel.shape), isinstance(layer, DEPTHWISE))]


def _layout(layer: keras.Layer, backend: Backend, target: Target, own: LayerOptions) -> Layout:
    strategy, reuse = own.strategy or target.strategy, own.reuse_factor or target.reuse_factor
    if backend is OURS:
        return Layout(strategy, reuse) if strategy == "resource" else Layout("latency", 1)
    if strategy not in backend.strategies:
        raise HlsError(
            f"layer {layer.name!r} has strategy {strategy!r}; backend {backend.name} has "
            f"{', '.join(backend.strategies)}"
        )
    for kinds, able in (
        (RECURRENT, ("latency", "resource", "resource_unrolled")),
        (DEPTHWISE, ("latency", "resource")),
    ):
        if isinstance(layer, kinds) and strategy not in able:
            if own.strategy is None:
                return Layout("latency", 1)
            raise HlsError(
                f"layer {layer.name!r} is a {type(layer).__name__}, which has no template for strategy {strategy!r}; "
                f"wanted {', '.join(map(repr, able[:-1]))} or {able[-1]!r}"
            )
    # A Dense layer over several axes is a convolution of one point.
    convolution = isinstance(layer, FOLDABLE) and len(layer.output.shape) > 2
    if strategy == "resource_unrolled" and target.io_type == "io_parallel" and convolution:
        raise HlsError(
            f"layer {layer.name!r} is a convolution, for which strategy 'resource_unrolled' has no template in "
            "io_parallel: choose io_stream, or strategy 'latency'"
        )
    return Layout(strategy, reuse)
