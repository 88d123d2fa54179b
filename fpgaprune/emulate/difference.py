"""`first_difference`: the first layer of a design whose outputs differ from a reference, and by how much."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from fpgaprune.design import Design
from fpgaprune.emulate.run import Inputs, trace
from fpgaprune.errors import DataError
from fpgaprune.values import Array


@dataclass(frozen=True)
class Difference:
    """The first layer whose outputs differ from the reference's.

    Attributes:
        layer: name of the layer.
        kind: class of the layer.
        max_abs: the largest difference.
        mean_abs: the mean difference over all values.
        index: place of the largest difference, the sample first.
        value: the emulated number at that place.
        wanted: the reference's number at that place.
        share: fraction of the values that differ by more than the tolerance, 0..1.
        lsb: one unit in the last place of the layer's result type.
    """

    layer: str
    kind: str
    max_abs: float
    mean_abs: float
    index: tuple[int, ...]
    value: float
    wanted: float
    share: float
    lsb: float

    def __str__(self) -> str:
        places = self.max_abs / self.lsb
        return (
            f"layer {self.layer!r} ({self.kind}) differs first: by up to {self.max_abs:.6g} ({places:.3g} LSB) at "
            f"{self.index}, where it gives {self.value:.6g} and the reference {self.wanted:.6g}; "
            f"{self.share:.1%} of its values differ, on average by {self.mean_abs:.6g}"
        )


def first_difference(
    design: Design, x: Inputs, reference: Mapping[str, Array], tolerance: float = 0.0
) -> Difference | None:
    """Return the first layer, in order of execution, more than `tolerance` off `reference`; None if there is none.

    Args:
        design: as for `emulate`.
        x: as for `emulate`.
        reference: layer name -> outputs (N, ...) of another implementation, such as Keras; layers that it does not
            name, or that the design does not have, are ignored.
        tolerance: largest absolute difference that counts as equal.

    Raises:
        DataError: no layer has a reference, or a reference has another shape than its layer.
    """
    names = [layer.name for layer in design.layers if layer.name in reference]
    if not names:
        raise DataError(
            f"the reference names none of the layers of design {design.name!r}, which are "
            f"{', '.join(layer.name for layer in design.layers)}"
        )
    for name, values in trace(design, x, names).items():
        wanted = np.asarray(reference[name], dtype=np.float64)
        if wanted.shape != values.shape:
            raise DataError(f"the reference of layer {name!r} has shape {wanted.shape}; the layer gives {values.shape}")
        gap = np.abs(values - wanted)
        # A NaN in the reference is a difference too.
        beyond = ~(gap <= tolerance)
        if beyond.any():
            place = np.unravel_index(int(np.argmax(np.where(np.isnan(gap), np.inf, gap))), gap.shape)
            return Difference(
                layer=name,
                kind=design[name].kind,
                max_abs=float(gap[place]),
                mean_abs=float(gap.mean()),
                index=tuple(int(i) for i in place),
                value=float(values[place]),
                wanted=float(wanted[place]),
                share=float(beyond.mean()),
                lsb=design[name].types["result"].lsb,
            )
    return None
