"""`Equivalence`: what a comparison of two models on given inputs found, as data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpgaprune.errors import EquivalenceError


@dataclass(frozen=True)
class Equivalence:
    """How far the outputs of two models lie apart.

    Attributes:
        first, second: the models' names.
        samples: inputs compared.
        dtype: precision of the arithmetic, such as "float64"; "model" for that of each layer.
        max_abs_error: largest absolute difference of two output elements; inf where one is NaN.
        max_relative_error: largest, over samples and outputs, of a sample's largest difference over its scale: its own
            largest absolute output, but at least the median of that over all samples.
        max_ulp: the largest difference in units in the last place of the larger of the two, in `dtype`.
        variation: how far some element of every output moves over the samples, in units of the output's median scale;
            near 0 the first model hardly reads its input, and the comparison says little.
        tolerance: largest `max_relative_error` that passes.
        worst_sample: index of the input with the largest relative error.
        worst_output: index of the output (flat) with it.
        worst_input: that input, one array for each input of the model, without the batch axis.
    """

    first: str
    second: str
    samples: int
    dtype: str
    max_abs_error: float
    max_relative_error: float
    max_ulp: float
    variation: float
    tolerance: float
    worst_sample: int
    worst_output: int
    worst_input: tuple[NDArray[Any], ...]

    @property
    def ok(self) -> bool:
        """Whether the outputs agree within the tolerance; a tolerance of 0 asks for equal values."""
        return self.max_relative_error <= self.tolerance

    def require(self) -> Equivalence:
        """This comparison, which holds.

        Raises:
            EquivalenceError: it does not; `error.worst_input` is the input with the largest difference.
        """
        if self.ok:
            return self
        raise EquivalenceError(
            f"models {self.first!r} and {self.second!r} differ by {self.max_abs_error:.3g} "
            f"({self.max_relative_error:.3g} of its scale, {self.max_ulp:.3g} ULP in {self.dtype}) in output "
            f"{self.worst_output} for input {self.worst_sample} of {self.samples}; wanted at most {self.tolerance:g} "
            "of its scale",
            worst_input=self.worst_input,
        )

    def to_json(self) -> dict[str, Any]:
        """The findings as JSON data, without the worst input's values."""
        return {
            "first": self.first,
            "second": self.second,
            "samples": self.samples,
            "dtype": self.dtype,
            "max_abs_error": _number(self.max_abs_error),
            "max_relative_error": _number(self.max_relative_error),
            "max_ulp": _number(self.max_ulp),
            "variation": _number(self.variation),
            "tolerance": self.tolerance,
            "worst_sample": self.worst_sample,
            "worst_output": self.worst_output,
            "ok": self.ok,
        }


def _number(value: float) -> float | str:
    return value if np.isfinite(value) else str(value)  # JSON has no infinity


def share_lost(before: NDArray[np.bool_], after: NDArray[np.bool_]) -> tuple[float, float]:
    """How much smaller the share of True is after than before, and the standard error of that.

    The same samples are judged twice, so that only those judged differently add to the error (McNemar 1947).

    Args:
        before: whether each sample was right, (N,).
        after: whether it is.
    """
    change = before.astype(np.int8) - after.astype(np.int8)
    return float(change.mean()), float(np.sqrt(np.count_nonzero(change))) / change.size
