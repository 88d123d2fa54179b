"""`Reading` and `Loss`: the metric of a network, and how much worse it is than another; loads no Keras."""

from __future__ import annotations

from msgspec import Struct


class Loss(Struct, frozen=True):
    """How much worse a network is than another, judged on the same samples.

    Attributes:
        lost: difference of a metric that should be high; growth, as a share, of an error.
        lost_error: standard error of `lost`.
    """

    lost: float
    lost_error: float


class Reading(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The metric of one network on some samples.

    Attributes:
        name: name of the metric.
        value: its value.
        error: standard error of the value.
        samples: number of samples.
        higher_is_better: whether a larger value is better.
        is_fraction: whether the value is a share, 0..1.
        lost: loss against the network before, as in `Loss`; None if it was not compared.
        lost_error: standard error of that loss.
    """

    name: str
    value: float
    error: float
    samples: int
    higher_is_better: bool
    is_fraction: bool
    lost: float | None = None
    lost_error: float | None = None
