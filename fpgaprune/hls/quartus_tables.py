"""Writes the tables of a Quartus project's softmax for the layer's types.

hls4ml 1.3.0 looks for a layer with exactly the name `softmax`. Without one it makes the tables for its own defaults, so
the project computes something else. Its entries always have eight bits right of the point; here they have the layer's
types. All softmax layers of a project share one file.
"""

from __future__ import annotations

import re
from pathlib import Path

from fpgaprune.design import Design, LayerSpec, Softmax
from fpgaprune.emulate import exponential_entries, inverse_entries
from fpgaprune.errors import HlsError
from fpgaprune.fixed import FixedType

_FOLDER = Path("firmware", "nnet_utils", "activation_tables")


def check_softmax(design: Design) -> None:
    """One pair of tables fits every softmax of `design`.

    Raises:
        HlsError: two need different tables, or one reads numbers for which no table can be made.
    """
    wanted = {layer.name: _keys(design, layer) for layer in _softmax_layers(design)}
    for name, (source, exp_type, _) in wanted.items():
        for what, kind in (("reads numbers", source), ("adds exponentials", exp_type)):
            if not kind.signed or kind.integer < 1:
                raise HlsError(
                    f"softmax {name!r} {what} of type {kind}; for Quartus they need a sign and an integer bit or more: "
                    "give it, or the layer before it, such a type"
                )
    first, *others = wanted.items() or [("", ())]
    for name, keys in others:
        if keys != first[1]:
            raise HlsError(
                f"softmax {name!r} and {first[0]!r} need different tables, and a Quartus project has one pair: give "
                "the layers before them one result type"
            )


def write_tables(folder: Path, design: Design) -> None:
    """Writes the tables for the softmax of `design` into the project at `folder`."""
    for layer in _softmax_layers(design)[:1]:
        source, exp_type, size = _keys(design, layer)
        for name, kind, entries in (
            ("exp_table", "exp_table_t", exponential_entries(source, size)),
            ("invert_table", "inv_table_t", inverse_entries(exp_type, size)),
        ):
            path = folder / _FOLDER / f"{name}.tb"
            text = re.sub(r"\[\d+\] = \{[^}]*\}", f"[{size}] = {{{', '.join(map(str, entries))}}}", path.read_text())
            path.write_text(text.replace("CONFIG_T::table_t", f"CONFIG_T::{kind}"))


def _softmax_layers(design: Design) -> list[LayerSpec]:
    return [
        layer for layer in design.layers if isinstance(layer.operation, Softmax) and layer.operation.variant == "stable"
    ]


def _keys(design: Design, layer: LayerSpec) -> tuple[FixedType, FixedType, int]:
    softmax = layer.operation
    size = softmax.table_size if isinstance(softmax, Softmax) else None
    if size is None:
        raise HlsError(f"softmax {layer.name!r} does not say the size of its tables; make the design again")
    return design[layer.inputs[0]].types["result"], layer.types["exp_table"], size
