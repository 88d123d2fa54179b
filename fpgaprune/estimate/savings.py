"""What the zeros of a layer save, and what they do not, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from fpgaprune.estimate.features import DesignFeatures, LayerFeatures
from fpgaprune.target import Target

if TYPE_CHECKING:
    from fpgaprune.estimate.result import LayerEstimate, Usage


def zeros_note(layer: LayerFeatures) -> str:
    """One sentence about the zeros of `layer`; empty where it has no multiplications or no zeros."""
    products = layer.products
    if products is None or not products.zero:
        return ""
    share = f"{products.zero} of {products.total} multiplications are by zero"
    if layer.strategy == "resource" and layer.reuse > 1:
        return (
            f"{layer.name}: {share}, which saves nothing: at reuse {layer.reuse} in the resource strategy its "
            f"{-(-products.total // layer.reuse)} multipliers read every weight, zeros too, from memory; "
            "whole channels must go, or the strategy change to latency or resource_unrolled"
        )
    return f"{layer.name}: {share} and leave no hardware"


def design_notes(
    design: DesignFeatures,
    target: Target,
    layers: Sequence[LayerEstimate],
    total: Mapping[str, Usage],
    fits: bool | None,
) -> tuple[str, ...]:
    """What a person should know about the whole estimate."""
    notes = [layer.zeros_note for layer in layers if layer.zeros_note]
    if design.io_type != target.io_type:
        notes.append(f"priced as {design.io_type}, as the design was made; {target.io_type} would need a new project")
    unknown = [name for name in ("lut", "ff", "dsp", "bram18") if getattr(target.part, name) is None]
    if unknown:
        notes.append(f"{target.part.name} has no published count of {', '.join(unknown)}: not judged")
    if fits and any(
        getattr(total["synth"], name).high > getattr(target.part, name)
        for name in ("lut", "ff", "dsp", "bram18")
        if getattr(target.part, name) is not None
    ):
        notes.append("it fits by the middle of the interval only: the upper end exceeds the part")
    return tuple(notes)
