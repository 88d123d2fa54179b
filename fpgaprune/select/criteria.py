"""How much each element of a weight matters: the higher, the longer it stays free."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Score = Callable[[NDArray[Any]], NDArray[np.float64]]


def l1(weight: NDArray[Any]) -> NDArray[np.float64]:
    """Absolute value of each element.

    Source: Li, Kadav, Durdanovic, Samet, Graf, "Pruning Filters for Efficient ConvNets", 2017, section 3.1.
    """
    return np.abs(np.asarray(weight, dtype=np.float64))


def l2(weight: NDArray[Any]) -> NDArray[np.float64]:
    """Square of each element; a group's score is the square of its Euclidean norm, which orders alike.

    Source: He, Kang, Dong, Fu, Yang, "Soft Filter Pruning", 2018, section 3.2.
    """
    return np.square(np.asarray(weight, dtype=np.float64))


CRITERIA: Mapping[str, Score] = {"l1": l1, "l2": l2}
