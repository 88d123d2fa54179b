"""Weighted sums: what the BLAS does beside the sum is not the user's concern."""

import numpy as np
import pytest

from fpgaprune.emulate import Exact, sums
from fpgaprune.values import FixedType


@pytest.mark.parametrize("shape", [(5, 3), (2, 5, 3)])
def test_a_flag_that_the_blas_raises_for_its_unused_lanes_is_no_warning(monkeypatch, shape):
    """Seen once in CI: OpenBLAS raised `invalid value encountered in matmul` for small integers."""
    kind, accum = FixedType(6, 6), FixedType(16, 16)
    raw = np.arange(-6, 6).reshape(3, 4)
    x = np.arange(np.prod(shape)).reshape(shape)
    matmul = np.matmul

    def with_flag(*arguments, **named):
        np.subtract(np.float32(np.inf), np.float32(np.inf))
        return matmul(*arguments, **named)

    monkeypatch.setattr(sums.np, "matmul", with_flag)
    with pytest.raises(RuntimeWarning, match="invalid value"):
        np.matmul(x, raw)
    found = sums.weighted_sum(
        [Exact.of(x, kind)], sums.Kernel.of(raw, kind), Exact.of(np.zeros(4, int), kind), accum, np.arange(3)
    )
    assert (found.integers() == matmul(x, raw)).all()
