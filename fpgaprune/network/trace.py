"""`Trace` is the result of one walk through a graph: its channels, and how they depend on each other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpgaprune.network.channels import Channels, Ids, Shape, Slots
from fpgaprune.network.linear import Linear

Axes = tuple[Ids | None, ...]


@dataclass(frozen=True)
class Count:
    """A number in a layer's config: how many entries of `ids` stay; in 2-D, in how many rows an entry stays."""

    ids: Ids


@dataclass(frozen=True)
class Listed:
    """A list in a layer's config with one value for each of `ids`; the values of those that stay are kept."""

    ids: Ids
    values: tuple[float, ...]


@dataclass(frozen=True)
class KeptSlots:
    """Slots that must stay, the reason (a word of `plan.KEPT`), and the path of the call that needs them."""

    ids: Ids
    reason: str
    by: str


@dataclass(frozen=True)
class Owner:
    """The class of a layer that makes channels, and their slots."""

    kind: str
    ids: Ids


@dataclass(frozen=True)
class Affine:
    """A merge that computes scale * x + offset for each channel of one operand x, because the others are constants.

    Attributes:
        path: the merge.
        operand: index of the operand x.
        ids: slots of the channels, along `axis` of a tensor of `shape` (without the batch axis).
        scale: one number for each channel.
        offset: one number for each channel.
        axis: see `ids`.
        shape: see `ids`.
        assumed: channels in which the other operands are not constants; they must leave.
    """

    path: str
    operand: int
    ids: Ids
    scale: NDArray[np.float64]
    offset: NDArray[np.float64]
    axis: int
    shape: Shape
    assumed: NDArray[np.bool_]


@dataclass
class Trace:
    """Everything that the walk found.

    Attributes:
        paths: `id(variable)` to weight path.
        tolerance: weights of at most this size count as zero.
        slots: the channels and their groups.
        linears: kernel path to the layer that reads channels through the kernel, in execution order.
        axes: weight path to the slots along each axis, or None for an axis that never shrinks. In a 2-D array, one
            index stands for the channels of a column, and stays if any of them stays.
        uses: weight path to the multiplications of one element for one sample.
        configs: layer path to the config entries that shrink.
        holds: slots that must stay.
        writes: call key to the slots of all outputs of the call.
        owners: path to layer, for layers that make channels.
        even: grouped convolutions: slots (groups, C_in / groups) and (groups, C_out / groups), and the path.
        solid: slots of a tensor that must keep a channel, and the path of the layer that needs it.
        partners: slot that is constant but is merged with others, to the path of the merge.
        borders: slot that is a constant other than 0 and is padded with zeros, to the path of the layer.
        members: layer path to the paths of its weights.
        leaving: call key of a merge to the channels that leave by an earlier pass.
        merges: call key to the slots and known channels of the operands, for merges without an `Affine`.
        affine: call key to the `Affine` of a merge with constant branches.
        unsupported: path to class name, for layers without a rule.
    """

    paths: Mapping[int, str]
    tolerance: float = 0.0
    slots: Slots = field(default_factory=Slots)
    linears: dict[str, Linear] = field(default_factory=dict)
    axes: dict[str, Axes] = field(default_factory=dict)
    uses: dict[str, int] = field(default_factory=dict)
    configs: dict[str, dict[str, Any]] = field(default_factory=dict)
    holds: list[KeptSlots] = field(default_factory=list)
    writes: dict[str, Ids] = field(default_factory=dict)
    owners: dict[str, Owner] = field(default_factory=dict)
    even: list[tuple[Ids, Ids, str]] = field(default_factory=list)
    solid: list[tuple[Ids, str]] = field(default_factory=list)
    partners: dict[int, str] = field(default_factory=dict)
    borders: dict[int, str] = field(default_factory=dict)
    members: dict[str, list[str]] = field(default_factory=dict)
    leaving: Mapping[str, NDArray[np.bool_]] = field(default_factory=dict)
    merges: dict[str, list[tuple[Ids, NDArray[np.bool_]]]] = field(default_factory=dict)
    affine: dict[str, Affine] = field(default_factory=dict)
    unsupported: dict[str, str] = field(default_factory=dict)
    _own: dict[tuple[int, str], Ids] = field(default_factory=dict)

    def hold(self, ids: Ids, reason: str, by: str) -> None:
        """Keep the slots `ids`."""
        self.holds.append(KeptSlots(np.unique(ids), reason, by))

    def opaque(self, shape: Shape) -> Channels:
        """Make channels of a tensor of which only the shape is known; they share one slot."""
        flat = (1,) * len(shape)
        return Channels(shape, self.slots.fresh(1).reshape(flat), np.zeros(flat, bool), np.zeros(flat))

    def own(self, operation: object, role: str, count: int) -> Ids:
        """Return the slots that `operation` makes; the same at each of its calls."""
        key = (id(operation), role)
        if key not in self._own:
            self._own[key] = self.slots.fresh(count)
        return self._own[key]
