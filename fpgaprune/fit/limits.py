"""`Limits`: what the network and its hardware must keep to."""

from __future__ import annotations

import math
from dataclasses import dataclass

from fpgaprune.errors import ConfigError
from fpgaprune.loss_limit import parse_loss

# Few samples judge if the standard error is more than this share of the largest loss.
_FEW = 2 / 3
# Synthesis of 20 random networks counted 0.27 of the upper end of a price or more (docs/measurements/fit.md), so that
# nothing fits whose price is so many times too large.
_FAR = 4.0
# A loss is a share of samples, of which there are fewer than ten to this power.
_DIGITS = 9


@dataclass(frozen=True)
class Limits:
    """What must hold. What has no limit is made as small as possible, in this order: latency, shares of the part, loss.

    Attributes:
        max_loss: largest loss of the metric on held-out samples: `0.5 %` is half a point of accuracy, or an error that
            grew by 0.5 %. One standard error may be added.
        share: largest share of each resource of the part that the upper end of the estimate may take, 0..1.
        latency_us: longest latency in microseconds.
        interval_cycles: most cycles between two samples.
        samples_per_s: least samples a second.
        minutes: time for everything, the run of the best network too; what a tool counts takes extra time.
        forgotten: what training without the samples held back loses on them, without locks and with 16 bits: the
            trained network knows them. The search allows this loss too; the best network is judged without it.
    """

    max_loss: str = "0.5 %"
    share: float = 0.8
    latency_us: float | None = None
    interval_cycles: int | None = None
    samples_per_s: float | None = None
    minutes: float = 10.0
    forgotten: float = 0.0

    def __post_init__(self) -> None:
        try:
            parse_loss(self.max_loss, unit=1)
        except ValueError as error:
            raise ConfigError(f"max_loss: {error}") from error
        if not 0 < self.share <= 1:
            raise ConfigError(f"share is {self.share}; wanted a share of the part above 0 and at most 1, as 0.8")
        for name in ("latency_us", "interval_cycles", "samples_per_s", "minutes"):
            value = getattr(self, name)
            if value is not None and not 0 < value < math.inf:
                raise ConfigError(f"{name} is {value}; wanted a number above 0")

    @property
    def most_lost(self) -> float:
        """`max_loss` as a fraction."""
        return parse_loss(self.max_loss)

    def room(self, lost: float, lost_error: float, searching: bool = False) -> float:
        """The loss that is left to the limit; negative if more is lost.

        A search takes the best of many networks, luckier ones among them, so it adds no standard error. Where that is
        nearly the largest loss, few samples judge, and no network would pass but by luck: half of it is added.
        """
        share = 1.0 if not searching else 0.5 if lost_error > _FEW * self.most_lost else 0.0
        # 0.961 - 0.956 is not more than 0.005.
        return round(self.most_loss(searching) + share * lost_error - lost, _DIGITS)

    def is_far(self, share: float) -> bool:
        """Whether a price of `share`, its upper end, is so far beyond the part that no tool needs to count it."""
        return share > _FAR * self.share

    def most_loss(self, searching: bool) -> float:
        """The largest loss, on the samples of a search or on held-out ones."""
        return self.most_lost + (self.forgotten if searching else 0.0)

    def most_cycles(self, clock_ns: float) -> tuple[float, float]:
        """The longest latency and the longest interval in cycles of `clock_ns`; infinite where there is no limit."""
        latency = math.inf if self.latency_us is None else self.latency_us * 1000 / clock_ns
        interval = math.inf if self.interval_cycles is None else float(self.interval_cycles)
        if self.samples_per_s is not None:
            interval = min(interval, 1e9 / clock_ns / self.samples_per_s)
        return latency, interval
