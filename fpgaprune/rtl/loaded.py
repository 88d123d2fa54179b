"""`Loaded`: weights and biases of a scheduled layer that may be loaded at run time, so that nothing depends on them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fpgaprune.design import Design, LayerSpec, VerilogLayout
from fpgaprune.rtl.program import Program
from fpgaprune.values import FixedType

# A beat of a load has whole bytes.
_BYTE = 8


@dataclass(frozen=True)
class Loaded:
    """What the memories of a layer hold until a load, and the bits of what can come.

    Attributes:
        weight, bias: types of the values.
        biases: raw, one for each output.
        beat: bits of a beat of a load.
    """

    weight: FixedType
    bias: FixedType
    biases: tuple[int, ...]
    beat: int

    @classmethod
    def of(cls, layer: LayerSpec, beat: int) -> Loaded:
        """Return the types of weights and biases of `layer`, with the biases, for loads at run time."""
        biases = np.broadcast_to(layer.weights["bias"].reshape(-1), (layer.output_shape[-1],))
        return cls(layer.types["weight"], layer.types["bias"], tuple(biases.tolist()), beat)

    @property
    def weight_bits(self) -> int:
        """Bits of a weight, with a sign."""
        return max(2, _signed_bits(self.weight))

    def bounds(self, program: Program, low: int, high: int) -> tuple[int, int]:
        """Bound every raw sum of `program`, without its bias, for inputs from `low` to `high`."""
        parts = int(np.bincount(program.places[:, 0], minlength=1).max())
        w, count = self.weight, parts * program.taps
        corners = [x * y for x in (min(low, 0), max(high, 0)) for y in (w.raw_min, w.raw_max)]
        return count * min(corners), count * max(corners)


def beat_bits(design: Design, layout: VerilogLayout) -> int:
    """Count the bits of a load's beat, one weight or bias of any layer; 0 where weights cannot be loaded."""
    if not layout.loadable:
        return 0
    kinds = [design[name].types[role] for name in layout.multipliers for role in ("weight", "bias")]
    return _BYTE * -(-max(map(_signed_bits, kinds), default=1) // _BYTE)


def _signed_bits(kind: FixedType) -> int:
    return kind.width + (not kind.signed)
