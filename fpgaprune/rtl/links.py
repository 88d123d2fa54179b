"""`Stream`, `Module`, `Computation`: what a layer's chain is made of."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fpgaprune.fixed import FixedType
from fpgaprune.rtl.circuit import Circuit
from fpgaprune.rtl.serial import SerialSums

# Entry j is the number of input beats that must have come before output beat j leaves.
Need = NDArray[np.int64]


@dataclass(frozen=True)
class Stream:
    """A stream of beats between two modules.

    Attributes:
        shape: of one sample, channels last.
        beats: per sample, position by position.
        lanes: values in one beat, value 0 in the lowest bits.
        width, signed, fraction: of each value.
        low, high: bounds of each raw value.
    """

    shape: tuple[int, ...]
    beats: int
    lanes: int
    width: int
    signed: bool
    fraction: int
    low: int
    high: int

    @classmethod
    def of(cls, shape: tuple[int, ...], kind: FixedType) -> Stream:
        """A stream of whole pixels of type `kind`."""
        low = -(1 << (kind.width - 1)) if kind.signed else 0
        return cls(shape, math.prod(shape[:-1]), shape[-1], kind.width, kind.signed, kind.fraction, low, kind.raw_max)

    @property
    def bits(self) -> int:
        """Width of the data bus."""
        return self.lanes * self.width

    def kind(self) -> FixedType:
        """The type of each value. A stream neither rounds nor overflows: ignore the modes of the type."""
        return FixedType(self.width, self.width - self.fraction, self.signed)


@dataclass(frozen=True)
class Module:
    """A module of `hw/rtl` in a chain.

    Attributes:
        name: of the module.
        parameters: by name.
        before, after: bits of data in and out.
    """

    name: str
    parameters: tuple[tuple[str, str], ...]
    before: int
    after: int


@dataclass(frozen=True)
class Computation:
    """A circuit in a chain, `copies` times side by side.

    Attributes:
        role: what it computes, part of its module's name.
        circuit: what is computed.
        copies: how often.
    """

    role: str
    circuit: Circuit
    copies: int

    @property
    def before(self) -> int:
        """Bits of data in."""
        return self.copies * sum(width for width, _ in self.circuit.inputs)

    @property
    def after(self) -> int:
        """Bits of data out."""
        return self.copies * sum(width for _, width in self.circuit.outputs)


Link = Module | Computation | SerialSums
