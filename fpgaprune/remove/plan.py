"""`RemovalPlan` says, without Keras, what leaves a model, why, and how every weight changes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import msgspec
import numpy as np
from numpy.typing import NDArray

from fpgaprune.errors import MaskError, RemovalError, shown
from fpgaprune.files import read_json
from fpgaprune.values import Array, MaskSet, Summarised, Summary, by_weight_path, near_misses

FORMAT = 1
Indices = tuple[NDArray[np.intp], ...]

REMOVED = {
    "dead": "its value is a constant, which is added to the biases of its readers",
    "unread": "nothing that stays reads it",
}
KEPT = {
    "read": "a layer reads it",
    "output": "it is in an output of the model",
    "input": "it is in an input of the model",
    "border": "it is a constant other than 0, but a reader pads it with zeros",
    "partner": "it is a constant, but an element-wise merge couples it with channels that are not",
    "last": "the tensor would have no channel left",
    "groups": "the groups of a convolution must keep equal sizes",
    "multiple": "the number of channels stays a multiple of `multiple_of`",
    "mixed": "a layer mixes all channels, such as a softmax",
    "layout": "a layer moves channels in a way that no smaller layer can",
    "state": "a recurrent layer keeps its units",
    "shared": "calls of a shared layer disagree",
    "unsupported": "a layer has no rule",
}


@dataclass(frozen=True)
class LayerChannels:
    """Which channels of one layer stay or leave, and why.

    Attributes:
        path: the layer.
        kind: its class name.
        reasons: for each channel, one word of `REMOVED` or `KEPT`.
        constants: for each channel, the constant that its readers see; None if it is not a constant.
        by: for each kept channel, the layer that needs it; "" for removed ones.
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
    """Numbers to add to some elements of a weight after slicing.

    Attributes:
        at: flat indices into the small weight.
        values: float64, one for each index.
    """

    at: NDArray[np.intp]
    values: NDArray[np.float64]


@dataclass(frozen=True)
class Collapse:
    """The replacement of a merge whose operands are constants, except one.

    Attributes:
        operand: index of the operand that stays.
        kind: class name of the layer that scales and shifts its channels, a 1x1 depthwise convolution; None if the
            channels stay as they are.
        config: config of that layer.
    """

    operand: int
    kind: str | None
    config: Mapping[str, Any]


@dataclass(frozen=True, repr=False)
class RemovalPlan(Summarised):
    """What `apply_removal` will do to one model with the weights that it has now.

    A small weight is `weight[np.ix_(*kept[path])]`, plus `deltas[path]` if there is one.

    Attributes:
        model: the model's name.
        digest: SHA-256 of the weights that the plan was made for.
        shapes: weight path to shape.
        kept: weight path to the indices that stay along each axis; an empty axis means that the weight leaves.
        made: weight path to shape, for weights that only the small model has; they start at 0.
        deltas: constants of removed channels, folded into biases or into the kernels of a channel that stays.
        config: layer path to the entries of the layer's config that change.
        dropped: keys of calls that leave.
        collapsed: call key to the replacement of a merge with a constant branch.
        channels: every layer that makes channels, in execution order.
        unsupported: path to class name, for layers without a rule; they are unchanged.
        multiplications: for one sample, before and after.
        lockable: slices of biases and shifts. Constant channels at zero-padded borders can leave too if these slices
            are locked at zero in fine-tuning (`MaskSet.from_slices`).
        tolerance: weights of at most this size were counted as zero.
        change: with a tolerance, how the removal changes the outputs, in the form of `Equivalence.to_json`.
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

    def _summary(self) -> Summary:
        counts = [(layer, len(layer.reasons), len(layer.kept)) for layer in self.channels]
        rows = [(layer.path, layer.kind, f"{total:,}", f"{total - kept:,}") for layer, total, kept in counts]
        leaving = sum(total - kept for _, total, kept in counts)
        before, after = self.multiplications
        notes = [f"{before:,} multiplications for a sample become {after:,}"]
        if self.unsupported:
            notes.append(f"layers without a rule, unchanged: {', '.join(self.unsupported)}")
        title = f"RemovalPlan: {leaving:,} of {sum(total for _, total, _ in counts):,} channels of {self.model} leave"
        return Summary(title, ("layer", "kind", "channels", "leave"), rows, notes)

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
        """Weight elements before and after, including new biases."""
        before = sum(math.prod(shape) for shape in self.shapes.values())
        after = sum(math.prod(len(axis) for axis in axes) for axes in self.kept.values())
        return before, after + sum(math.prod(shape) for shape in self.made.values())

    @property
    def channel_counts(self) -> tuple[int, int]:
        """Channels that layers make, before and after."""
        return sum(len(x.reasons) for x in self.channels), sum(len(x.kept) for x in self.channels)

    @property
    def only_drops(self) -> bool:
        """Whether everything that stays is as it was, so that `spread` leads back."""
        return not (self.deltas or self.made or self.collapsed)

    def spread(self, small: Mapping[str, Array], whole: Mapping[str, Array]) -> dict[str, Array]:
        """Return `whole`, weight path to array, with the elements of `small` in the places that the plan kept.

        Raises:
            RemovalError: the plan adds constants to weights, or an array of `small` has another shape than the plan's.
        """
        if not self.only_drops:
            raise RemovalError("the plan adds constants to weights that stay, so no way leads back")
        spread = {path: array.copy() for path, array in whole.items()}
        for path, array in small.items():
            places = np.ix_(*self.kept[path]) if array.ndim else ()
            wanted = tuple(map(len, self.kept[path]))
            if array.shape != wanted:
                raise RemovalError(f"weight {path!r} has shape {array.shape}; the plan kept {wanted}")
            spread[path][places] = array
        return spread

    def remap(self, masks: MaskSet) -> MaskSet:
        """Fit `masks` to the small model: sliced, and free where a constant was folded in.

        A folded constant changes an element that may have been locked at zero; the element is then free, because the
        lock no longer holds. Weights that leave have no mask.

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
        """Write a line for each layer: how many channels stay, and how many stay or leave for each reason."""
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

    def to_json(self) -> dict[str, object]:
        """Return the plan as JSON data, which `from_json` reads."""
        plain = msgspec.to_builtins(self, enc_hook=lambda numbers: numbers.tolist())
        shapes, kept = plain.pop("shapes"), plain.pop("kept")
        weights = {path: {"shape": shape, "kept": kept[path]} for path, shape in shapes.items()}
        return {"format": FORMAT, "weights": weights, **plain}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> RemovalPlan:
        """Return the plan that `to_json` wrote.

        Raises:
            RemovalError: `data` is not a plan of this format.
        """
        if data.get("format") != FORMAT:
            raise RemovalError(
                f"a removal plan has format {shown(data.get('format'))}; wanted {FORMAT}: plan the removal again"
            )
        try:
            for row in data["weights"].values():
                _check_kept(row["shape"], row["kept"])
            shapes = {path: row["shape"] for path, row in data["weights"].items()}
            kept = {path: row["kept"] for path, row in data["weights"].items()}
            config = {
                path: {key: tuple(value) if isinstance(value, list) else value for key, value in row.items()}
                for path, row in data["config"].items()
            }
            return msgspec.convert({**data, "shapes": shapes, "kept": kept, "config": config}, cls, dec_hook=_array)
        except (LookupError, TypeError, AttributeError, ValueError, OverflowError, msgspec.ValidationError) as error:
            raise RemovalError(f"a removal plan is not whole: {shown(error)}; plan the removal again") from error


def _array(kind: object, numbers: object) -> Array:
    """Return `numbers` as an array of the annotated type `kind`, such as `NDArray[np.intp]`."""
    (dtype,) = get_args(get_args(kind)[1])
    return np.array(numbers, dtype=dtype)


def _check_kept(shape: Any, kept: Any) -> None:
    """Check that the indices `kept` are inside a weight of `shape`."""
    for size, axis in zip(shape, kept, strict=True):
        if not all(type(index) is int and 0 <= index < size for index in axis):
            raise ValueError(f"kept {shown(axis)} of {shown(size)}")


def read_plan(path: Path) -> RemovalPlan:
    """Return the plan that the file at `path` holds in the form of `to_json`.

    Raises:
        RemovalError: the file is missing, or is not a plan.
    """
    try:
        document = read_json(path, RemovalError, "a removal plan", "run the removal again")
    except FileNotFoundError as error:
        raise RemovalError(f"{path} does not exist; run the removal again") from error
    if not isinstance(document, dict):
        raise RemovalError(f"{path} holds no removal plan; run the removal again")
    return RemovalPlan.from_json(document)
