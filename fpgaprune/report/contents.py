"""`RunReport`: what the pages of a run show, as plain data."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fpgaprune.errors import ReportError
from fpgaprune.layout import Advice
from fpgaprune.measure import (
    ALL_INPUTS,
    BitstreamLink,
    Estimate,
    LinkCheck,
    Measured,
    Occupancy,
    StagedCounts,
    VerilogPrice,
    to_plain,
)
from fpgaprune.target import Target
from fpgaprune.values import Summarised, Summary

FORMAT = 1


@dataclass(frozen=True)
class Metric:
    """The metric of a network on samples that it was not trained on, and the loss on its way to the hardware.

    Attributes:
        name: name of the metric, as `accuracy`.
        before: value for the trained network.
        after: value for the removed network, in floating point.
        hardware: value for the removed network as its fixed-point hardware computes it.
        errors: `before`, `after` and `hardware` to the standard error of that value.
        samples: number of held-out samples.
        data: name of the data.
        higher_is_better: False for an error.
        is_fraction: whether the metric is printed in per cent.
        lost: the loss from `before` to `hardware`, or to `after` if the hardware was not emulated: a difference of the
            metric, or the growth of an error as a share of the error.
        lost_error: standard error of `lost`.
        max_loss: largest allowed loss, or None.
    """

    name: str
    before: float | None
    after: float | None
    samples: int
    data: str
    hardware: float | None = None
    errors: Mapping[str, float] = field(default_factory=dict)
    higher_is_better: bool = True
    is_fraction: bool = True
    lost: float | None = None
    lost_error: float | None = None
    max_loss: float | None = None

    def __post_init__(self) -> None:
        for when in ("before", "after", "hardware"):
            value = getattr(self, when)
            if self.is_fraction and value is not None and not value <= 1:
                raise ReportError(f"{self.name} {when} is {value}; wanted a fraction of at most 1")
        if self.samples < 1:
            raise ReportError(f"{self.name} was measured on {self.samples} samples; wanted 1 or more")

    @property
    def holds(self) -> bool | None:
        """Whether the loss, less one standard error, is at most the allowed loss; None if either is unknown."""
        if self.lost is None or self.max_loss is None:
            return None
        # A loss that is not a number is refused.
        return self.lost - (self.lost_error or 0.0) <= self.max_loss


def count_kernels(
    free: NDArray[np.bool_], removed_inputs: Sequence[int], removed_outputs: Sequence[int]
) -> tuple[int, int, int]:
    """Return how many kernels are kept, locked, and free but removed with a channel; `free` is (C_in, C_out)."""
    stays = np.ones(free.shape, bool)
    stays[list(removed_inputs), :] = False
    stays[:, list(removed_outputs)] = False
    return int((free & stays).sum()), int((~free).sum()), int((free & ~stays).sum())


@dataclass(frozen=True, eq=False)
class LayerReport:
    """One layer that carries weights, before and after removal.

    Attributes:
        name: name of the layer.
        kind: its class, as `Conv2D`.
        kernels_kept: number of free kernels that stay in the network; a kernel of a Dense layer is one weight.
        kernels_locked: number of locked kernels, whatever became of their channels.
        channels_before: (inputs, outputs) before removal.
        channels_after: (inputs, outputs) after removal; None if the layer left the network.
        parameters_before: numbers in the layer's weights before removal.
        parameters_after: numbers in the layer's weights after removal.
        mask: bool (C_in, C_out) before removal, True = the kernel is kept; None for a Dense layer.
        removed_inputs: indices of the removed input channels.
        removed_outputs: indices of the removed output channels.
        kernels_removed: number of free kernels that left the network with a channel.
    """

    name: str
    kind: str
    kernels_kept: int
    kernels_locked: int
    channels_before: tuple[int, int]
    channels_after: tuple[int, int] | None
    parameters_before: int
    parameters_after: int
    mask: NDArray[np.bool_] | None = None
    removed_inputs: tuple[int, ...] = ()
    removed_outputs: tuple[int, ...] = ()
    kernels_removed: int = 0

    def __post_init__(self) -> None:
        for axis, removed in enumerate((self.removed_inputs, self.removed_outputs)):
            beyond = [index for index in removed if not 0 <= index < self.channels_before[axis]]
            if beyond:
                side = ("input", "output")[axis]
                raise ReportError(
                    f"layer {self.name!r} lost {side} channel {beyond[0]}; it has {self.channels_before[axis]}"
                )
        if self.mask is None:
            return
        mask = np.array(self.mask)
        if mask.dtype != np.bool_ or mask.shape != tuple(self.channels_before):
            raise ReportError(
                f"mask of layer {self.name!r} is {mask.dtype} {mask.shape}; wanted bool {tuple(self.channels_before)}"
            )
        said = (self.kernels_kept, self.kernels_locked, self.kernels_removed)
        found = count_kernels(mask, self.removed_inputs, self.removed_outputs)
        if said != found:
            raise ReportError(
                f"layer {self.name!r} says {said[0]} kernels kept, {said[1]} locked and {said[2]} removed; its mask "
                f"and its removed channels have {found[0]}, {found[1]} and {found[2]}"
            )
        mask.setflags(write=False)
        object.__setattr__(self, "mask", mask)

    @property
    def is_convolution(self) -> bool:
        """Whether its kernels are slices of a convolution; those of a Dense layer are single weights."""
        return "Dense" not in self.kind

    @property
    def kernels_total(self) -> int:
        """Kernels before removal."""
        return self.kernels_kept + self.kernels_locked + self.kernels_removed

    def to_json(self) -> dict[str, Any]:
        """Return the layer as JSON data; a mask is one string of 1 (kept) and 0 (locked) per input channel."""
        rows = None if self.mask is None else ["".join("01"[kept] for kept in row) for row in self.mask.astype(int)]
        plain = {name: getattr(self, name) for name in self.__dataclass_fields__ if name != "mask"}
        return {**plain, "kernels_total": self.kernels_total, "mask": rows}


@dataclass(frozen=True)
class LinkSummary:
    """One link of the certificate: locked elements compared bit for bit in one place.

    Attributes:
        link: the place, as `keras file`, `onnx`, `hls`.
        weights: number of checked weights.
        locked: number of compared elements.
        violations: number of elements that differ.
        left_out: why the link was not checked; then the counts are None.
        inputs: whether it holds for all inputs, or on how many samples.
    """

    link: str
    weights: int | None = None
    locked: int | None = None
    violations: int | None = None
    left_out: str | None = None
    inputs: str = ALL_INPUTS

    def __post_init__(self) -> None:
        _require_figures_or_reason(f"certificate link {self.link!r}", self.violations, self.left_out)

    @classmethod
    def of(cls, check: LinkCheck) -> LinkSummary:
        """Return the counts of a link of the certificate."""
        return cls(check.link, len(check.weights), check.locked, check.violations)

    @classmethod
    def of_bitstream(cls, link: BitstreamLink) -> list[LinkSummary]:
        """Return a row for each claim about a bitstream, and one for what was left out."""
        rows = [
            cls(f"{link.link}: {claim.claim}", violations=int(not claim.holds), inputs=claim.inputs)
            for claim in link.claims
        ]
        return rows if link.left_out is None else [*rows, cls(link.link, left_out=link.left_out)]

    @property
    def holds(self) -> bool | None:
        """True without a violation, None if the link was left out."""
        return None if self.violations is None else self.violations == 0


@dataclass(frozen=True)
class Check:
    """One comparison with a limit.

    Attributes:
        name: what was compared, as `ONNX against Keras`.
        quantity: what was measured, as `largest difference`.
        measured: the figure; a fraction where `at_least`.
        limit: the largest figure that passes, or with `at_least` the smallest; None if no limit was asked for.
        at_least: whether the figure must reach the limit (an agreement) or must not exceed it (an error).
        samples: number of compared samples.
        left_out: why the comparison was not made; then `measured` is None.
        advice: what to do if the check fails, with the key of the flow file.
        unit: `points` or `%` where the figure and the limit are hundredths of them; empty for plain numbers.
        about: `bits` for a check of zeros, bits or rounding; `metric` for a check of the quality of the network.
    """

    name: str
    quantity: str
    measured: float | None = None
    limit: float | None = None
    at_least: bool = False
    samples: int | None = None
    left_out: str | None = None
    advice: str | None = None
    unit: Literal["", "points", "%"] = ""
    about: Literal["bits", "metric"] = "bits"

    def __post_init__(self) -> None:
        _require_figures_or_reason(f"check {self.name!r}", self.measured, self.left_out)

    @property
    def holds(self) -> bool | None:
        """True within the limit; False beyond it or not a number; None where left out or without a limit."""
        if self.measured is None:
            return None
        if math.isnan(self.measured):
            return False
        if self.limit is None:
            return None
        return self.measured >= self.limit if self.at_least else self.measured <= self.limit


@dataclass(frozen=True)
class StageTime:
    """The time of one stage of the flow.

    Attributes:
        name: name of the stage.
        seconds: the time that it took, or None.
        note: a note such as `unchanged`, or "".
    """

    name: str
    seconds: float | None
    note: str = ""


@dataclass(frozen=True, eq=False, repr=False)
class RunReport(Summarised):
    """A run from its network to its price, as the pages show it.

    Attributes:
        name: name of the run.
        target: the part and how it is used.
        seed: seed of all random numbers.
        versions: package to version.
        metric: the metric of the network on held-out samples.
        layers: the layers that carry weights, in the network's order.
        before: analytic estimate of the trained network; None where `left_out` has a reason.
        after: analytic estimate of the removed network; None where `left_out` has a reason.
        advice: what the removed network lacks on its part and what would help, or None.
        verilog: estimate of our Verilog of the removed network where no tool for the part builds the hls4ml project,
            whose estimates are then None; else None.
        verilog_before: that of the trained network, at the same interval; None if it is not known.
        measured: what open tools measured of the removed network, or None.
        counted_elsewhere: what the measured design takes of the part that its layout was chosen for; None if that is
            the part of the run, or not known.
        counts: what the measured layout takes at each stage, for each family that it was measured for.
        certificate: one entry for each link.
        checks: all other comparisons.
        stages: the stages of the flow in order, with their times. Equal runs differ only in these times.
        losses: the loss of each epoch of training under the locks, as Keras states it; empty if it is not known.
        warnings: what may be wrong with the run; each is a sentence that says what to do.
        left_out: stage to the reason why it did nothing, as `{"estimate": "not asked for"}`.
        created: the date as text; without it equal runs give equal bytes.
    """

    name: str
    target: Target
    metric: Metric
    layers: Sequence[LayerReport] = ()
    before: Estimate | None = None
    after: Estimate | None = None
    advice: Advice | None = None
    verilog: VerilogPrice | None = None
    verilog_before: VerilogPrice | None = None
    measured: Measured | None = None
    counted_elsewhere: Occupancy | None = None
    counts: Sequence[StagedCounts] = ()
    certificate: Sequence[LinkSummary] = ()
    checks: Sequence[Check] = ()
    stages: Sequence[StageTime] = ()
    losses: Sequence[float] = ()
    warnings: Sequence[str] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    seed: int | None = None
    created: str | None = None

    def _summary(self) -> Summary:
        metric, layers = self.metric, self.kernel_layers
        readings = [
            (f"{metric.name} {when}", "unknown" if (value := getattr(metric, when)) is None else f"{value:.4g}")
            for when in ("before", "after", "hardware")
        ]
        locked, total = (sum(getattr(layer, f"kernels_{of}") for layer in layers) for of in ("locked", "total"))
        estimates = (("before", self.before), ("after", self.after))
        sizes = [(f"estimate {when}", each.occupancy.words) for when, each in estimates if each is not None]
        violations = sum(link.violations or 0 for link in self.certificate)
        verdicts = [check.holds for check in self.checks]
        rows = [
            *readings,
            ("kernels locked", f"{locked:,} of {total:,}"),
            *sizes,
            ("certificate", f"{violations:,} violations in {len(self.certificate)} places"),
            ("checks", f"{verdicts.count(True)} hold, {verdicts.count(False)} do not"),
        ]
        return Summary(f"RunReport: {self.name} on {self.target.part.name}", ("what", "figure"), rows, self.warnings)

    @property
    def kernel_layers(self) -> tuple[LayerReport, ...]:
        """The convolutions, or every layer if there is none: kernels of the two kinds cannot be added."""
        convolutions = tuple(layer for layer in self.layers if layer.is_convolution)
        return convolutions or tuple(self.layers)

    def to_json(self) -> dict[str, Any]:
        """Return the report as JSON data; NaN is the string `nan`."""
        own = {each.name: getattr(self, each.name) for each in fields(self)}
        plain: dict[str, Any] = _plain({"format": FORMAT, **own}, "report")
        return plain


def _require_figures_or_reason(what: str, figure: float | None, left_out: str | None) -> None:
    if (figure is None) == (left_out is None):
        raise ReportError(
            f"{what} has {'neither a figure nor' if figure is None else 'both a figure and'} a reason to be left out"
        )


def _plain(value: object, where: str) -> Any:
    """Return `value` in JSON's own types."""
    if hasattr(value, "to_json"):
        return _plain(value.to_json(), where)
    if isinstance(value, Metric | LinkSummary | Check):
        return _plain({**asdict(value), "holds": value.holds}, where)
    if isinstance(value, Target | StageTime):
        return _plain(asdict(value), where)
    if isinstance(value, Occupancy):
        return _plain(to_plain(value), where)
    if isinstance(value, Mapping):
        return {str(key): _plain(item, f"{where}.{key}") for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item, f"{where}[{index}]") for index, item in enumerate(value)]
    if isinstance(value, np.generic):
        return _plain(value.item(), where)
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise ReportError(f"{where} is a {type(value).__name__}; wanted plain data (mapping, list, number, text or None)")
