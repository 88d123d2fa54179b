"""Comments at the top of Verilog files: what a file computes, in which shapes and types."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from fpgaprune.design import Design, LayerSpec
from fpgaprune.rtl.chain import Chain


def of_design(design: Design) -> str:
    """The comment at the top of the module of a whole design."""
    return _folded(
        [
            f"Design {design.name}, {len(design.layers)} layers, as AXI4-Stream. Each beat holds one pixel of all "
            "channels, channel 0 in the lowest bits, as raw integers of the type named at the port.",
            "Beats are counted from reset; tlast going in is not needed, tlast coming out marks the last beat of a "
            "sample.",
        ]
    )


def of_layer(design: Design, layer: LayerSpec, shapes: str, chain: Chain) -> str:
    """The comment at the top of every file of a layer."""
    lines = [
        f"Layer {layer.name} ({layer.kind}) of design {design.name}.",
        f"Shapes: {shapes}.",
        f"Types: {', '.join(f'{role} {kind}' for role, kind in sorted(layer.types.items()))}.",
    ]
    if chain.kept is not None:
        lines.append(f"Multiplications by constants: {chain.kept} kept, {chain.dropped} dropped.")
    return _folded([*lines, *(f"Note: {note}." for note in chain.notes)])


def shapes_of(sources: Sequence[tuple[int, ...]], result: tuple[int, ...]) -> str:
    """Shapes going in and coming out, as `8x8x3 -> 6x6x16`."""
    return f"{' and '.join(_shape(source) for source in sources)} -> {_shape(result)}"


def _shape(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape))


def _folded(lines: Sequence[str]) -> str:
    folded = [part for line in lines for part in textwrap.wrap(line, 110, subsequent_indent="  ") or [""]]
    return "".join(f"// {line}".rstrip() + "\n" for line in folded)
