"""What a search for widths is asked for, and what it found; neither needs Keras."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fpgaprune.errors import HlsError
from fpgaprune.values import parse_loss


@dataclass(frozen=True)
class AutoPrecision:
    """The loss that precision `auto` allows, and the widths between which it searches.

    Attributes:
        max_loss: accuracy that may be lost against Keras in floating point: `0.5 %` is half a point.
        samples: number of samples, the first of the data, that measure the loss.
        spare: the loss plus this many of its standard errors must be within `max_loss`, so that other data lose no
            more either.
        narrowest: fewest bits of a weight or an activation.
        widest: most bits of a weight or an activation.
        sum_bits: width of the outputs of convolutions and Dense layers.

    Examples:
        >>> auto = fp.AutoPrecision(max_loss="1 %", widest=10)
        >>> design = fp.make_design(model, target, x, auto, labels=y)
    """

    max_loss: str = "0.5 %"
    samples: int = 2000
    spare: float = 1.0
    narrowest: int = 2
    widest: int = 16
    sum_bits: int = 16

    def __post_init__(self) -> None:
        try:
            parse_loss(self.max_loss)
        except ValueError as error:
            raise HlsError(f"max_loss: {error}") from error
        if not 2 <= self.narrowest <= self.widest <= 24:
            raise HlsError(f"widths from {self.narrowest} to {self.widest}; wanted 2 <= narrowest <= widest <= 24")
        if self.samples < 1:
            raise HlsError(f"samples is {self.samples}; wanted 1 or more")
        if not self.spare >= 0:
            raise HlsError(f"spare is {self.spare}; wanted a number of standard errors, 0 or more")

    @property
    def max_loss_fraction(self) -> float:
        """`max_loss` as a fraction."""
        return parse_loss(self.max_loss)


@dataclass(frozen=True)
class FoundWidths:
    """The widths that the search found.

    Attributes:
        measure: meaning of the loss, in words.
        loss: loss of the widths found.
        error: standard error of that loss; 0 if the loss is not a share of samples.
        samples: number of samples that measured the loss.
        evaluations: number of emulations.
        cost: multiplications x bits x bits with the widths found.
        uniform_cost: the same with the best single width for all layers.
        uniform_bits: that single width.
        weight_bits: layer name to width of its weights.
        activation_bits: layer name to width of its output.
        on: the samples that the search saw, in words.
    """

    measure: str
    loss: float
    error: float
    samples: int
    evaluations: int
    cost: int
    uniform_cost: int
    uniform_bits: int
    weight_bits: Mapping[str, int]
    activation_bits: Mapping[str, int]
    on: str = ""
