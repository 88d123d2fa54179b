"""`Equivalence` is the result of a comparison of two models on given inputs."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpgaprune.errors import EquivalenceError
from fpgaprune.values import Array, Summarised, Summary


@dataclass(frozen=True, repr=False)
class Equivalence(Summarised):
    """The differences between the outputs of two models.

    Attributes:
        first: the first model's name.
        second: the second model's name.
        samples: number of samples compared.
        dtype: precision of the arithmetic, such as "float64"; "model" means each layer's own.
        max_abs_error: largest absolute difference of two output elements; inf if one is NaN.
        max_relative_error: largest difference in units of the scale of its sample and output. The scale is the
            sample's largest absolute output, but at least the median of these over all samples.
        max_ulp: largest difference in units in the last place of the larger of the two, in `dtype`.
        variation: how far each output moves over the samples at least, in units of its median scale. Near 0, the first
            model hardly reads its input and the comparison says little.
        tolerance: largest `max_relative_error` that passes.
        worst_sample: index of the sample with the largest relative error.
        worst_output: flat index of the output with the largest relative error.
        worst_input: the values of that sample, one array for each input of the model, without the batch axis.
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
    worst_input: tuple[Array, ...]

    @property
    def ok(self) -> bool:
        """Whether the outputs agree within the tolerance; a tolerance of 0 needs equal values."""
        return self.max_relative_error <= self.tolerance

    def require(self) -> Equivalence:
        """Return the comparison if the outputs agree.

        Raises:
            EquivalenceError: they do not; `error.worst_input` is the sample with the largest relative error.
        """
        if self.ok:
            return self
        raise EquivalenceError(
            f"models {self.first!r} and {self.second!r} differ by {self.max_abs_error:.3g} "
            f"({self.max_relative_error:.3g} of its scale, {self.max_ulp:.3g} ULP in {self.dtype}) in output "
            f"{self.worst_output} for sample {self.worst_sample} of {self.samples}; wanted at most {self.tolerance:g} "
            "of its scale",
            worst_input=self.worst_input,
        )

    def _summary(self) -> Summary:
        worst = f"sample {self.worst_sample} of {self.samples:,}, output {self.worst_output}"
        rows = (
            ("of its scale", f"{self.max_relative_error:.3g}", f"{self.tolerance:.3g}"),
            ("absolute", f"{self.max_abs_error:.3g}", ""),
            ("units in the last place", f"{self.max_ulp:.3g}", ""),
        )
        title = f"Equivalence: {self.first} and {self.second} {'agree' if self.ok else 'differ'} in {self.dtype}"
        moves = f"the outputs move over the samples by {self.variation:.3g} of their scale at least"
        return Summary(title, ("largest difference", "found", "allowed"), rows, (f"largest at {worst}", moves))

    def to_json(self) -> dict[str, Any]:
        """Return the comparison as JSON data, without the values of the worst sample; inf and NaN become text."""
        values = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "worst_input"}
        unwritable = {name: str(v) for name, v in values.items() if isinstance(v, float) and not np.isfinite(v)}
        return values | unwritable | {"ok": self.ok}


def share_lost(before: NDArray[np.bool_], after: NDArray[np.bool_]) -> tuple[float, float]:
    """Return the fall of the share of True from `before` to `after`, and its standard error.

    Both judge the same samples, so only samples that they judge differently add to the error (McNemar 1947).

    Args:
        before: whether each sample was right, (N,).
        after: whether each sample is right afterwards, (N,).
    """
    change = before.astype(np.int8) - after.astype(np.int8)
    return float(change.mean()), float(np.sqrt(np.count_nonzero(change))) / change.size
