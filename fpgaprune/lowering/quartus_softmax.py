"""Checks that the softmax layers of a Quartus project can share its one pair of tables."""

from __future__ import annotations

from fpgaprune.design import Design, LayerSpec, Softmax
from fpgaprune.errors import HlsError
from fpgaprune.fixed import FixedType


def check_softmax(design: Design) -> None:
    """One pair of tables fits every softmax of `design`.

    Raises:
        HlsError: two need different tables, or one reads numbers for which no table can be made.
    """
    wanted = {layer.name: table_keys(design, layer) for layer in softmax_layers(design)}
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


def softmax_layers(design: Design) -> list[LayerSpec]:
    """The layers of `design` that are a stable softmax."""
    return [
        layer for layer in design.layers if isinstance(layer.operation, Softmax) and layer.operation.variant == "stable"
    ]


def table_keys(design: Design, layer: LayerSpec) -> tuple[FixedType, FixedType, int]:
    """What the tables of a softmax follow from: the types of its input and of its exponentials, and their size."""
    softmax = layer.operation
    size = softmax.table_size if isinstance(softmax, Softmax) else None
    if size is None:
        raise HlsError(f"softmax {layer.name!r} does not say the size of its tables; make the design again")
    return design[layer.inputs[0]].types["result"], layer.types["exp_table"], size
