"""What the zeros of a layer save, and what they do not, in words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fpgaprune.estimate.device import speed_of
from fpgaprune.estimate.digits import multiplier_blocks, scaled
from fpgaprune.estimate.features import DesignFeatures, LayerFeatures
from fpgaprune.estimate.hardware import Rates, stage_figures
from fpgaprune.estimate.layer_hardware import RECURRENT_DOUBT
from fpgaprune.estimate.multiplications import dsp_share, product_hardware
from fpgaprune.measure import ESTIMATED, Occupancy, capacity_of
from fpgaprune.target import Target

if TYPE_CHECKING:
    from fpgaprune.design import LayerSpec

# The advice on further kernels frees `_AIM` multipliers, and names `_NAMED` kernels.
_AIM = 3
_NAMED = 4


def zeros_note(layer: LayerFeatures, design: DesignFeatures, rates: Rates, spec: LayerSpec | None = None) -> str:
    """Return one sentence on what the zeros of `layer` save; empty if it has no multiplications or no zeros."""
    products = layer.all_products
    if products is None or not products.zero or layer.family == "scale":
        return ""
    zeros = f"{products.zero:,} of {products.total:,} multiplications are by zero"
    if layer.strategy in ("resource", "resource_unrolled") and layer.reuse > 1:
        if layer.state is not None:
            return _folded_state_note(layer, zeros)
        return _folded_note(layer, design, zeros, spec)
    saved = {"dsp": 0, "lut": 0}
    for part in (layer, layer.state):
        if part is not None:
            kept = stage_figures(product_hardware(part, design), rates)["synth"]
            full = stage_figures(product_hardware(_without_zeros(part), design), rates)["synth"]
            saved = {name: saved[name] + max(round(full[name]) - round(kept[name]), 0) for name in saved}
    note = (
        f"{layer.name}: {zeros}; compared with the same layer without zeros, that saves about "
        f"{saved['dsp']:,} DSP and {saved['lut']:,} LUT after synthesis"
    )
    limit = math.ceil(products.total / layer.reuse) - products.zero // layer.reuse
    if layer.reuse > 1 and dsp_share(layer, design) > 0.5 and 1 < limit < products.distinct_many:
        note += f"; at reuse {layer.reuse} every {layer.reuse} further zeros free one multiplier"
    return note


def _folded_state_note(layer: LayerFeatures, zeros: str) -> str:
    """Return the note of `_folded_note` on the two products of a recurrent layer."""
    parts = [part for part in (layer, layer.state) if part is not None]
    total = sum(math.ceil(part.n_in * part.n_out / part.reuse) for part in parts)
    if layer.strategy == "resource":
        return (
            f"{layer.name}: {zeros} and save none of {total} multipliers at reuse {layer.reuse}, because the resource "
            "strategy stores and multiplies zeros too"
        )
    live = sum(part.live_blocks or 0 for part in parts)
    return f"{layer.name}: {zeros} and save {total - live} of {total} multipliers at reuse {layer.reuse}"


def _without_zeros(layer: LayerFeatures) -> LayerFeatures:
    """Return the layer before pruning, if its zeros were like its other weights."""
    products = layer.products
    if products is None or not products.nonzero:
        return layer
    return replace(layer, products=scaled(products, products.total / products.nonzero), live=1.0, live_out=1.0)


def _folded_note(layer: LayerFeatures, design: DesignFeatures, zeros: str, spec: LayerSpec | None) -> str:
    """Write a sentence on a folded layer: unrolled code saves a multiplier if its weights are all zero."""
    total = layer.products.total if layer.products else 0
    multipliers = math.ceil(total / layer.reuse)
    kind = "DSP" if dsp_share(layer, design) > 0.5 else "multipliers in LUTs"
    blocks = multiplier_blocks(spec.weights["weight"], layer.reuse) if spec and "weight" in spec.weights else None
    freed = multipliers - int(np.count_nonzero(blocks.any(axis=1))) if blocks is not None else 0
    if layer.strategy == "resource":
        note = (
            f"{layer.name}: {zeros} and save 0 {kind} at reuse {layer.reuse}, because the resource strategy stores and "
            f"multiplies zeros too; resource_unrolled would free {freed} of {multipliers}"
        )
    else:
        note = f"{layer.name}: {zeros} and save {freed} of {multipliers} {kind} at reuse {layer.reuse}"
    if spec is None or blocks is None:
        return note
    names, more = _further_kernels(spec, blocks)
    if not more:
        return note
    shown = ", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")
    return f"{note}; these {len(names)} further kernels would free {more} more: {shown}"


def _further_kernels(spec: LayerSpec, blocks: NDArray[np.int64]) -> tuple[list[str], int]:
    """Return the kernels whose removal frees the cheapest few multipliers, and the number of multipliers freed."""
    weight = spec.weights["weight"]
    outputs = weight.shape[-1]
    inputs = weight.shape[-2]
    # One kernel is W[..., i, o]; number them like the blocks, outputs first.
    numbers = np.broadcast_to(np.arange(outputs) + outputs * np.arange(inputs)[:, None], weight.shape)
    kernel_of = np.ascontiguousarray(numbers.reshape(-1, outputs).T).reshape(blocks.shape)
    cost = np.abs(blocks).sum(axis=1)
    live = np.flatnonzero(cost)
    cheapest = live[np.argsort(cost[live], kind="stable")[:_AIM]]
    gone = np.unique(kernel_of[cheapest][blocks[cheapest] != 0])
    left = np.where(np.isin(kernel_of, gone), 0, blocks)
    path = spec.sources.get("weight", f"{spec.name}/weight")
    window = ":, " * (weight.ndim - 2)
    names = [f"{path}[{window}{number // outputs}, {number % outputs}]" for number in gone.tolist()]
    return names, len(live) - int(np.count_nonzero(left.any(axis=1)))


def design_notes(design: DesignFeatures, target: Target, zeros: Sequence[str], taken: Occupancy) -> tuple[str, ...]:
    """Write the sentences on the whole estimate; `zeros` are notes on layers, `taken` is its share of the part."""
    notes = [*design.left_out, *(note for note in zeros if note)]
    priced = "io_stream" if design.streams else "io_parallel"
    if priced != target.io_type:
        notes.append(f"priced as {priced}, as the design was made; {target.io_type} would need a new project")
    capacity = capacity_of(target.part)
    unknown = [name for name in ESTIMATED if capacity[name] is None]
    if unknown:
        notes.append(f"{target.part.name} has no published count of {', '.join(unknown)}: not judged")
    if taken.fits and not taken.fits_upper:
        notes.append("it fits by the middle of the interval only: the upper end exceeds the part")
    names_of = [layer.name for layer in design.layers if layer.family == "recurrent"]
    if names_of:
        notes.append(
            f"{', '.join(names_of)}: priced by the laws of Dense layers; the hardware computes one step, and all steps "
            "use it in turn; no coefficient was fitted to recurrent layers, so every range reaches "
            f"{RECURRENT_DOUBT:g} times as far at either end"
            + ("" if design.tool == "vivado" else ", and there was no report of Vitis HLS to check against")
        )
    notes.append(_clock_note(design))
    return tuple(notes)


def _clock_note(design: DesignFeatures) -> str:
    """Return one sentence on what is known of the clock before the design is placed."""
    usable = design.clock_ns - design.uncertainty_ns
    speed = speed_of(design.part)
    slowest = max(speed.add_ns, speed.multiply_ns)
    if usable < slowest:
        return (
            f"clock {design.clock_ns:g} ns leaves {usable:.2f} ns for a stage, less than one multiplication takes on "
            f"this family ({slowest:g} ns): multipliers are pipelined, and the vendor tool must confirm the timing"
        )
    return (
        f"clock {design.clock_ns:g} ns leaves {usable:.2f} ns for a stage, enough for one multiplication on this "
        f"family ({slowest:g} ns); routing decides whether the clock is met, and only the vendor tool can tell"
    )
