"""How our own Verilog lays a design out: what it makes at once, what in turns, and what bit by bit."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from fpgaprune.design.network import Design
from fpgaprune.design.operations import Convolution, Dense, Recurrent, Scale
from fpgaprune.errors import RtlError

ADDERS = ("shared", "plain", "da4ml")


@dataclass(frozen=True)
class VerilogLayout:
    """The layout of a design in our own Verilog; no bit of its outputs depends on it.

    Attributes:
        adders: how products with constants become adders: `shared` (common pairs of digits are added once), `plain`
            (a tree for each output), `da4ml` (its solver; needs the package and minutes on its first use).
        levels: adder levels between two registers. One gives the highest clock frequency; more give fewer registers
            and a shorter latency. Where a slice has as many registers as LUTs, one takes the fewest LUTs as well.
        operands: of an adder, at most: 2, or 3, which takes as many LUTs on AMD's devices and half as many adders;
            None is 3 for a design whose part is AMD's.
        tables: what is made of at most so many bits is a table where that takes no more LUTs: 0 (never) to 6; None is
            the inputs of a LUT: 6 for a design whose part is AMD's, else 4.
        fold: for a Dense layer by name, in how many cycles its products are made, weights in memory; those of a pixel
            for a Normalization or BatchNormalization. 1 is at once.
        multipliers: for a layer with products by name (Dense, convolution, recurrent), how many multipliers it has:
            they take the kernels kept one after another, by a schedule, with weights in memory. A convolution takes all
            taps of a kernel at once, so the number is rounded down to whole kernels; below that, a kernel is taken part
            by part.
        paired: convolutions of `multipliers` in which a multiplier takes the values of two places at once, with one
            weight: two products in one DSP block that has a factor of 25 bits, as AMD's have.
        in_luts: layers of `multipliers` whose multipliers are made of LUTs, not of DSP blocks; one factor has at most
            eight bits.
        loadable: whether weights and biases of the layers of `multipliers` can be loaded at run time, through a stream
            of their own; what is locked has no place there.
        parallel_products: a Dense layer with more non-zero weights, and no entry in `fold`, is folded, unless most of
            its weights are zero; a recurrent layer gets a multiplier for so many each.
        serial: a layer that has enough cycles for each of its sums computes them bit by bit, which takes fewer LUTs
            and more cycles; never if False.
        interval: cycles that a sample may take, where that is more than its pixels take to arrive. The more there are,
            the more layers are folded or computed bit by bit.
    """

    adders: str = "shared"
    levels: int = 1
    operands: int | None = None
    tables: int | None = None
    fold: Mapping[str, int] = field(default_factory=dict)
    multipliers: Mapping[str, int] = field(default_factory=dict)
    paired: Collection[str] = ()
    in_luts: Collection[str] = ()
    loadable: bool = False
    parallel_products: int = 4096
    serial: bool = True
    interval: int = 0

    def __post_init__(self) -> None:
        if self.adders not in ADDERS:
            raise RtlError(f"adders are {self.adders!r}; wanted one of {', '.join(ADDERS)}")
        if self.levels < 1:
            raise RtlError(f"adder levels between two registers are {self.levels}; wanted at least 1")
        if self.operands not in (None, 2, 3):
            raise RtlError(f"operands of an adder are {self.operands}; wanted 2 or 3, or None for those of the part")
        if self.tables is not None and not 0 <= self.tables <= 6:
            raise RtlError(f"tables are of {self.tables} bits; wanted 0 to 6, or None for those of the part's LUTs")
        if self.interval < 0:
            raise RtlError(f"the interval is {self.interval} cycles; wanted 0 (as a sample's pixels take) or more")
        for name, layers in (("paired", self.paired), ("in_luts", self.in_luts)):
            if alone := set(layers) - set(self.multipliers):
                raise RtlError(
                    f"{name} names {', '.join(sorted(alone))}, which has no entry in multipliers; give it one"
                )
        if both := set(self.paired) & set(self.in_luts):
            raise RtlError(
                f"{', '.join(sorted(both))} is in paired and in in_luts, and a multiplier of LUTs takes one value; "
                "take it out of one of them"
            )
        for name, number in self.multipliers.items():
            if number < 1:
                raise RtlError(f"layer {name!r} gets {number} multipliers; wanted at least 1")

    def require_fits(self, design: Design) -> None:
        """Check that each named layer of the design can have the layout given for it.

        Raises:
            RtlError: one is no Dense layer of `design`, or no layer that multiplies; or there are no weights to load.
        """
        if self.loadable and not self.multipliers:
            raise RtlError("loadable asks for weights in memory, but no layer has multipliers; give one an entry there")
        looped = [layer.name for layer in design.layers if isinstance(layer.operation, Recurrent)]
        alone = {"multipliers": self.multipliers} if self.loadable else {"paired": self.paired, "in_luts": self.in_luts}
        for name, layers in alone.items():
            if fixed := set(looped) & set(layers):
                raise RtlError(
                    f"{', '.join(sorted(fixed))} has steps that wait for each other, and weights that cannot be "
                    f"loaded; take it out of {name}"
                )
        for field_name, kinds, words in (
            ("fold", Dense | Scale, "Dense layer, Normalization or BatchNormalization"),
            ("multipliers", Dense | Convolution | Recurrent, "Dense layer, convolution or recurrent layer"),
        ):
            named = getattr(self, field_name)
            unknown = set(named) - {layer.name for layer in design.layers if isinstance(layer.operation, kinds)}
            if unknown:
                raise RtlError(
                    f"{field_name} names {', '.join(sorted(unknown))}, which is no {words} of design {design.name!r}"
                )
