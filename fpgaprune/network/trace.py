"""`Trace`: what one walk through a graph found of its channels, and of what binds them together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpgaprune.network.channels import Channels, Shape
from fpgaprune.network.linear import Linear
from fpgaprune.network.slots import Ids, Slots

Axes = tuple[Ids | None, ...]


@dataclass(frozen=True)
class Count:
    """A number in a layer's config that shrinks: the entries (or, in 2-D, rows with an entry) of `ids` that stay."""

    ids: Ids


@dataclass(frozen=True)
class Listed:
    """A list in a layer's config with one number for each of `ids`: those that stay are left."""

    ids: Ids
    values: tuple[float, ...]


@dataclass(frozen=True)
class KeptSlots:
    """Slots that must stay, why (a word of `plan.KEPT`) and which call says so."""

    ids: Ids
    reason: str
    by: str


@dataclass(frozen=True)
class Owner:
    """A layer that makes channels of its own: its class and their slots."""

    kind: str
    ids: Ids


@dataclass(frozen=True)
class Affine:
    """A merge that is scale * x + offset for each channel of one operand x, since the others are constants.

    Attributes:
        path: the merge.
        operand: which of its tensors is x.
        ids: slots of the channels, along `axis` of a tensor of `shape` (without the batch axis).
        scale, offset: one number for each channel.
        axis, shape: see `ids`.
        assumed: channels of which the others are no constants; they must leave.
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
        paths: weight path by `id(variable)`.
        tolerance: weights of at most this size count as zero.
        slots: the channels and their unions.
        linears: reads of channels through weights, by kernel path, in execution order.
        axes: for each weight path the slots along each axis, None where the axis never shrinks; 2-D where an index
            stands for several channels and stays with any of them.
        uses: how often one element of a weight multiplies for one input.
        configs: config entries that shrink, by layer path.
        holds: slots that must stay.
        writes: slots of all outputs of a call, by call key.
        owners: layers that make channels, by path.
        even: grouped convolutions: (groups, C_in / groups) and (groups, C_out / groups) slots and the path.
        solid: tensors that may not lose every channel, and the path that says so.
        partners: slots that are constant where they meet others, and the path of the merge.
        borders: slots that are constants other than 0 where they meet zero padding, and the path of it.
        members: weight paths of each layer, by path.
        leaving: for some merges, by call key, channels that an earlier pass found to leave.
        merges: slots and known channels of the operands of all other merges, by call key.
        affine: merges with branches that are constants, by call key.
        unsupported: path and class name of layers without a rule.
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
        """The slots `ids` stay."""
        self.holds.append(KeptSlots(np.unique(ids), reason, by))

    def opaque(self, shape: Shape) -> Channels:
        """Channels of a tensor of which nothing is known but its shape; one slot for all."""
        flat = (1,) * len(shape)
        return Channels(shape, self.slots.fresh(1).reshape(flat), np.zeros(flat, bool), np.zeros(flat))

    def own(self, operation: Any, role: str, count: int) -> Ids:
        """The slots that `operation` makes; the same at each of its calls."""
        key = (id(operation), role)
        if key not in self._own:
            self._own[key] = self.slots.fresh(count)
        return self._own[key]
