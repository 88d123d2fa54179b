"""`RemovalPlan`: what leaves a model, why, and what every weight becomes, as data without Keras."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpgaprune.documents import read_json
from fpgaprune.errors import MaskError, RemovalError, shown
from fpgaprune.masks import MaskSet
from fpgaprune.weights import by_weight_path, near_misses

FORMAT = 1
Indices = tuple[NDArray[np.intp], ...]

REMOVED = {
    "dead": "its value is a constant, which the biases of its readers absorb",
    "unread": "nothing that stays reads it",
}
KEPT = {
    "read": "a layer reads it",
    "output": "it is in an output of the model",
    "input": "it is in an input of the model",
    "border": "it is a constant other than 0 that meets zero padding, where it is no constant",
    "partner": "it is a constant, but an element-wise merge couples it with channels that are not",
    "last": "the tensor would have no channel left",
    "groups": "the groups of a convolution must stay of one size",
    "multiple": "the number of channels stays a multiple of what was asked for",
    "mixed": "a layer mixes all channels, such as a softmax",
    "layout": "a layer moves channels in a way that no smaller layer can",
    "state": "a recurrent layer keeps its units",
    "shared": "calls of a shared layer disagree",
    "unsupported": "a layer has no rule",
}


@dataclass(frozen=True)
class LayerChannels:
    """What becomes of the channels that one layer makes.

    Attributes:
        path: the layer.
        kind: its class name.
        reasons: one word of `REMOVED` or `KEPT` for each channel.
        constants: the constant that its readers see, for each channel; None where it is none.
        by: for each kept channel the layer that asks for it; "" for removed ones.
    """

    path: str
    kind: str
    reasons: tuple[str, ...]
    constants: tuple[float | None, ...]
    by: tuple[str, ...]

    @property
    def kept(self) -> NDArray[np.intp]:
        """Indices of the channels that stay."""
        return np.flatnonzero([reason in KEPT for reason in self.reasons])


@dataclass(frozen=True)
class Delta:
    """Numbers that are added to some elements of a weight after slicing.

    Attributes:
        at: flat indices into the small weight.
        values: float64, one for each index.
    """

    at: NDArray[np.intp]
    values: NDArray[np.float64]


@dataclass(frozen=True)
class Collapse:
    """The replacement of a merge of which all operands but one are constants.

    Attributes:
        operand: which of the merge's tensors stays.
        kind: class name of the layer that scales and shifts its channels, a 1x1 depthwise convolution; None where
            there is nothing to do to them.
        config: of that layer.
    """

    operand: int
    kind: str | None
    config: Mapping[str, Any]


@dataclass(frozen=True)
class RemovalPlan:
    """What `apply_removal` will do to one model with the weights that it has now.

    A small weight is `weight[np.ix_(*kept[path])]`, plus `deltas[path]` where there is one.

    Attributes:
        model: the model's name.
        digest: SHA-256 of the weights that the plan was made for.
        shapes: shape of every weight, by path.
        kept: for every weight the indices that stay along each axis; an empty axis means that the weight leaves.
        made: shape of every weight that only the small model has; it starts at 0.
        deltas: constants of removed channels, folded into biases or into the kernels of a channel that stays.
        config: layer config entries that change, by layer path.
        dropped: keys of calls that leave altogether.
        collapsed: what stands in the place of a merge with a constant branch, by call key.
        channels: every layer that makes channels, in execution order.
        unsupported: class name by path, of layers without a rule; they are unchanged.
        multiplications: for one input, before and after.
        lockable: slices of biases and shifts that, locked at zero in fine-tuning (`MaskSet.from_slices`), take
            from constant channels at zero-padded borders the constant that keeps them in the model.
        tolerance: weights of at most this size were taken for zero.
        change: with a tolerance, what the removal does to the outputs, as `Equivalence.to_json` tells it.
    """

    model: str
    digest: str
    shapes: Mapping[str, tuple[int, ...]]
    kept: Mapping[str, Indices]
    made: Mapping[str, tuple[int, ...]]
    deltas: Mapping[str, Delta]
    config: Mapping[str, Mapping[str, Any]]
    dropped: tuple[str, ...]
    collapsed: Mapping[str, Collapse]
    channels: tuple[LayerChannels, ...]
    unsupported: Mapping[str, str]
    multiplications: tuple[int, int]
    lockable: tuple[str, ...] = ()
    tolerance: float = 0.0
    change: Mapping[str, Any] | None = None

    @property
    def empty(self) -> bool:
        """Whether nothing leaves."""
        return (
            not self.deltas
            and not self.collapsed
            and all(
                len(indices) == size
                for path, shape in self.shapes.items()
                for indices, size in zip(self.kept[path], shape, strict=True)
            )
        )

    @property
    def parameters(self) -> tuple[int, int]:
        """Weight elements before and after, biases that have to be made included."""
        before = sum(math.prod(shape) for shape in self.shapes.values())
        after = sum(math.prod(len(axis) for axis in axes) for axes in self.kept.values())
        return before, after + sum(math.prod(shape) for shape in self.made.values())

    @property
    def channel_counts(self) -> tuple[int, int]:
        """Channels that layers make, before and after."""
        return sum(len(x.reasons) for x in self.channels), sum(len(x.kept) for x in self.channels)

    def remap(self, masks: MaskSet) -> MaskSet:
        """`masks` for the small model: sliced, and free wherever a constant was folded in.

        A folded constant changes the value of an element that may have been locked at zero; the plan then
        frees it rather than claim a lock that does not hold. Weights that leave have no mask.

        Raises:
            MaskError: a mask fits no weight of the model that the plan was made for.
        """
        small: dict[str, NDArray[np.bool_]] = {}
        for path, mask in by_weight_path(masks, self.shapes).items():
            if path not in self.shapes:
                raise MaskError(f"mask for {path!r} fits no weight of the plan; {near_misses(path, self.shapes)}")
            if mask.shape != self.shapes[path]:
                raise MaskError(f"mask for {path!r} has shape {mask.shape}; the plan's weight has {self.shapes[path]}")
            sliced = mask[np.ix_(*self.kept[path])] if mask.ndim else mask.copy()
            if sliced.size == 0 and mask.size:
                continue
            if path in self.deltas:
                sliced.reshape(-1)[self.deltas[path].at] = True
            small[path] = sliced
        return MaskSet(small)

    def explain(self) -> str:
        """One line per layer: how many channels stay, and how many leave or stay for which reason."""
        lines = [
            f"{self.model}: channels {self.channel_counts[0]} -> {self.channel_counts[1]}, "
            f"parameters {self.parameters[0]} -> {self.parameters[1]}, "
            f"multiplications {self.multiplications[0]} -> {self.multiplications[1]}"
        ]
        for layer in self.channels:
            tally = Counter(
                f"{reason} ({by})" if by and by != layer.path else reason
                for reason, by in zip(layer.reasons, layer.by, strict=True)
            )
            parts = ", ".join(f"{count} {text}" for text, count in sorted(tally.items()))
            lines.append(f"{layer.path} ({layer.kind}): {len(layer.kept)} of {len(layer.reasons)} stay: {parts}")
        lines += [f"{key}: its other branches are constants" for key in self.collapsed]
        lines += [f"{path} ({kind}): no rule, unchanged" for path, kind in self.unsupported.items()]
        return "\n".join(lines)

    def to_json(self) -> dict[str, Any]:
        """The whole plan as JSON data; `from_json` gives it back."""
        return {
            "format": FORMAT,
            "model": self.model,
            "digest": self.digest,
            "weights": {
                path: {"shape": list(self.shapes[path]), "kept": [axis.tolist() for axis in self.kept[path]]}
                for path in self.shapes
            },
            "made": {path: list(shape) for path, shape in self.made.items()},
            "deltas": {p: {"at": d.at.tolist(), "values": d.values.tolist()} for p, d in self.deltas.items()},
            "config": {path: dict(entries) for path, entries in self.config.items()},
            "dropped": list(self.dropped),
            "collapsed": {
                key: {"operand": c.operand, "kind": c.kind, "config": dict(c.config)}
                for key, c in self.collapsed.items()
            },
            "channels": [
                {
                    "path": layer.path,
                    "kind": layer.kind,
                    "reasons": list(layer.reasons),
                    "constants": list(layer.constants),
                    "by": list(layer.by),
                }
                for layer in self.channels
            ],
            "unsupported": dict(self.unsupported),
            "multiplications": list(self.multiplications),
            "lockable": list(self.lockable),
            "tolerance": self.tolerance,
            "change": None if self.change is None else dict(self.change),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> RemovalPlan:
        """The plan that `to_json` wrote.

        Raises:
            RemovalError: `data` is no plan of this format.
        """
        if data.get("format") != FORMAT:
            raise RemovalError(
                f"a removal plan has format {shown(data.get('format'))}; wanted {FORMAT}: plan the removal anew"
            )
        try:
            for row in data["weights"].values():
                _check_kept(row["shape"], row["kept"])
            return cls(
                model=data["model"],
                digest=data["digest"],
                shapes={path: tuple(row["shape"]) for path, row in data["weights"].items()},
                kept={
                    path: tuple(np.array(axis, dtype=np.intp) for axis in row["kept"])
                    for path, row in data["weights"].items()
                },
                made={path: tuple(shape) for path, shape in data["made"].items()},
                deltas={
                    path: Delta(np.array(row["at"], dtype=np.intp), np.array(row["values"], dtype=np.float64))
                    for path, row in data["deltas"].items()
                },
                config={path: {k: _tupled(v) for k, v in row.items()} for path, row in data["config"].items()},
                dropped=tuple(data["dropped"]),
                collapsed={
                    key: Collapse(row["operand"], row["kind"], row["config"]) for key, row in data["collapsed"].items()
                },
                channels=tuple(
                    LayerChannels(
                        row["path"], row["kind"], tuple(row["reasons"]), tuple(row["constants"]), tuple(row["by"])
                    )
                    for row in data["channels"]
                ),
                unsupported=dict(data["unsupported"]),
                multiplications=(data["multiplications"][0], data["multiplications"][1]),
                lockable=tuple(data["lockable"]),
                tolerance=data["tolerance"],
                change=data["change"],
            )
        except (LookupError, TypeError, AttributeError, ValueError, OverflowError) as error:
            raise RemovalError(f"a removal plan is not whole: {shown(error)}; plan the removal anew") from error


def _check_kept(shape: Any, kept: Any) -> None:
    """The indices `kept` are those of a weight of `shape`."""
    for size, axis in zip(shape, kept, strict=True):
        if not all(type(index) is int and 0 <= index < size for index in axis):
            raise ValueError(f"kept {shown(axis)} of {shown(size)}")


def read_plan(path: Path) -> RemovalPlan:
    """The plan whose `to_json` the file at `path` holds.

    Raises:
        RemovalError: the file is missing, or holds no plan.
    """
    try:
        document = read_json(path, RemovalError, "a removal plan", "run the removal again")
    except FileNotFoundError as error:
        raise RemovalError(f"{path} does not exist; run the removal again") from error
    if not isinstance(document, dict):
        raise RemovalError(f"{path} holds no removal plan; run the removal again")
    return RemovalPlan.from_json(document)


def _tupled(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
