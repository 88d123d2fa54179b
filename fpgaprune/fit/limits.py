"""`Limits` and `Ranking`: the constraints of a search, and which of two networks is the better one."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

from msgspec import structs

from fpgaprune.errors import ConfigError
from fpgaprune.fit.result import VALIDATION, FitPoint
from fpgaprune.layout import DesignLayout
from fpgaprune.values import parse_loss

# There are few validation samples if the standard error is more than this share of the largest loss.
_FEW = 2 / 3
# Synthesis of 20 random networks counted 0.27 of the upper estimate or more (docs/measurements/fit.md), so nothing fits
# whose upper estimate is so many times the limit.
_FAR = 4.0
# A loss is a share of samples, of which there are fewer than ten to this power.
_DIGITS = 9
# Two latencies within this factor count as equal, because the estimate is no better.
_ALIKE = 1.1

# A network that loses the whole limit is as good as one that loses nothing and is so many times its size: a few per
# cent of the part are not worth all of the accuracy that may be lost.
_WORTH = 1.1

# What has a share of the part, cycles, and a sum of shares: a layout by its estimate, or a network that was trained.
Sized: TypeAlias = DesignLayout | FitPoint


@dataclass(frozen=True)
class Limits:
    """What must hold. What has no limit is minimised, in this order: latency, shares of the part and loss.

    Of two networks with one latency, the one that loses the whole of `max_loss` must be a tenth smaller than one that
    loses nothing.

    Attributes:
        max_loss: largest loss of the metric on held-out samples: `0.5 %` is half a point of accuracy, or an error that
            grew by 0.5 %. One standard error may be added.
        share: largest share of each resource of the part that the upper end of the estimate may take, 0..1.
        latency_us: longest latency in microseconds.
        interval_cycles: most cycles between two samples.
        samples_per_s: least samples a second.
        minutes: time of the whole search, the run of the best network and its open synthesis included; a vendor's tool
            takes extra time.
        retraining_loss: what training without the validation samples loses on them, with nothing locked and with 16
            bits, because the trained network has seen them. The search allows this loss too; the best network is judged
            on held-out samples without it.
    """

    max_loss: str = "0.5 %"
    share: float = 0.8
    latency_us: float | None = None
    interval_cycles: int | None = None
    samples_per_s: float | None = None
    minutes: float = 10.0
    retraining_loss: float = 0.0

    def __post_init__(self) -> None:
        try:
            parse_loss(self.max_loss)
        except ValueError as error:
            raise ConfigError(f"max_loss: {error}") from error
        if not 0 < self.share <= 1:
            raise ConfigError(f"share is {self.share}; wanted a share of the part above 0 and at most 1, as 0.8")
        for name in ("latency_us", "interval_cycles", "samples_per_s", "minutes"):
            value = getattr(self, name)
            if value is not None and not 0 < value < math.inf:
                raise ConfigError(f"{name} is {value}; wanted a number above 0")

    @property
    def max_loss_fraction(self) -> float:
        """`max_loss` as a fraction."""
        return parse_loss(self.max_loss)

    def margin(self, lost: float, lost_error: float, searching: bool = False) -> float:
        """Return the loss that is left to the limit; negative if the limit is broken.

        A search takes the best of many networks, lucky ones among them, so it adds no standard error to the limit. If
        the standard error is nearly the limit, no network would pass but by luck: half of the error is added then.
        """
        share = 1.0 if not searching else 0.5 if lost_error > _FEW * self.max_loss_fraction else 0.0
        # 0.961 - 0.956 is not more than 0.005.
        return round(self.loss_limit(searching) + share * lost_error - lost, _DIGITS)

    def is_far(self, share: float) -> bool:
        """Tell whether an upper estimate of `share` is so far beyond the part that no tool needs to count it."""
        return share > _FAR * self.share

    def loss_limit(self, searching: bool) -> float:
        """Return the largest loss on validation samples if `searching`, else on held-out ones."""
        return self.max_loss_fraction + (self.retraining_loss if searching else 0.0)

    def cycle_limits(self, clock_ns: float) -> tuple[float, float]:
        """Return the longest latency and interval in cycles of `clock_ns`; infinite where there is no limit."""
        latency = math.inf if self.latency_us is None else self.latency_us * 1000 / clock_ns
        interval = math.inf if self.interval_cycles is None else float(self.interval_cycles)
        if self.samples_per_s is not None:
            interval = min(interval, 1e9 / clock_ns / self.samples_per_s)
        return latency, interval


@dataclass(frozen=True)
class Ranking:
    """Order networks: those that keep the limits first, then by what is minimised.

    Attributes:
        limits: what must hold.
        clock_ns: clock period in ns.
    """

    limits: Limits
    clock_ns: float

    def rank(self, point: FitPoint) -> tuple[float, ...]:
        """Return the rank of `point`, smaller is better; without the limits kept, by the distance to them."""
        limit = self.limits.loss_limit(point.judged_on == VALIDATION) + point.lost_error
        loss = point.lost / limit if limit else float(point.lost > 0)
        if not point.meets_limits:
            return (1.0, not point.in_time, max(loss, 1.0) + max(point.share / self.limits.share, 1.0), point.share)
        *first, size = self.rank_layout(point)
        return (0.0, *first, size * _WORTH ** max(loss, 0.0), loss)

    def rank_layout(self, layout: Sized) -> tuple[float, ...]:
        """Return the rank of a layout, smaller is better: kept limits, the latency unless it is limited, the size."""
        kept = self.keeps_time(layout)
        if not kept or layout.share > self.limits.share:
            return (not kept, max(layout.share, self.limits.share), layout.latency_cycles)
        return (False, 0.0, *self.objective(layout))

    def keeps_time(self, layout: Sized) -> bool:
        """Tell whether latency and interval keep their limits."""
        latency, interval = self.limits.cycle_limits(self.clock_ns)
        return layout.latency_cycles <= latency and layout.interval_cycles <= interval

    def objective(self, layout: Sized) -> tuple[float, float]:
        """Return what is minimised within the limits: the latency in steps of 10 % unless it is limited; the size."""
        timed = self.limits.latency_us is not None
        return (0.0 if timed else round(math.log(max(layout.latency_cycles, 1), _ALIKE)), size_of(layout))

    def is_slower(self, layout: Sized, other: Sized) -> bool:
        """Tell whether `layout` takes clearly longer than `other`, where the latency is minimised."""
        return self.limits.latency_us is None and layout.latency_cycles > _ALIKE * other.latency_cycles

    def corrected(self, point: FitPoint, factor: float) -> tuple[float, ...]:
        """Return the rank of `point` if it takes `factor` times its estimate."""
        return self.rank(structs.replace(point, share=point.share * factor, size=point.size * factor))

    def if_worse(self, point: FitPoint, shift: float) -> FitPoint:
        """Return `point`, judged on validation samples, as if it lost `shift` more."""
        shifted = structs.replace(point, lost=point.lost + shift)
        return structs.replace(shifted, loses_little=self.margin(shifted) >= 0)

    def margin(self, point: FitPoint) -> float:
        """Return the loss that a network of the search leaves to the limit."""
        return self.limits.margin(point.lost, point.lost_error, searching=True)


def luts_of(layout: Sized) -> float:
    """Return the LUTs of a layout, by the middle of its estimate; 0 if they are unknown."""
    if isinstance(layout, FitPoint):
        return float(layout.used.get("lut") or 0)
    return 0.0 if layout.used.lut is None else float(layout.used.lut.value)


def size_of(layout: Sized) -> float:
    """Return the sum of the shares of all resources, which is minimised.

    With the largest share alone, a few DSPs that no knob frees would hide what the knobs save in LUTs.
    """
    return max(layout.size, layout.share)
