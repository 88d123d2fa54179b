"""`Site` is one call as a rule sees it, with methods to say what the layer does to its channels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fpgaprune.errors import RemovalError
from fpgaprune.network.channels import AxisChannels, Channels, Ids, Role, Shape
from fpgaprune.network.graph import Call, value_of
from fpgaprune.network.linear import Linear, Taps
from fpgaprune.network.trace import Owner, Trace
from fpgaprune.values import Array

if TYPE_CHECKING:
    import keras

Values = Callable[["Site"], "Channels | list[Channels]"]


@dataclass(frozen=True)
class LayerRule:
    """Rule of one class of layers: how it computes channels, and its role.

    Attributes:
        values: tells a `Site` what the layer does to its channels, their constants and its weights.
        role: what it does to channels, without the values of its weights; None if any output may read any input.
    """

    values: Values
    role: Role | None = None


def of_each_size(rule: LayerRule, *names: str, sizes: tuple[int, ...] = (1, 2, 3)) -> dict[type, LayerRule]:
    """Map Keras's classes for several numbers of axes to `rule`: `Conv{}D` stands for Conv1D, Conv2D and Conv3D."""
    from keras import layers

    return {getattr(layers, name.format(size)): rule for name in names for size in sizes}


@dataclass(frozen=True)
class Site:
    """One call as a rule sees it: its inputs, and methods to say what the layer does with them."""

    trace: Trace
    call: Call
    inputs: list[Channels]

    @property
    def layer(self) -> keras.Layer:
        """The Keras layer or operation."""
        return self.call.operation

    @property
    def path(self) -> str:
        """The path of the call."""
        return self.call.path

    @property
    def shapes(self) -> list[Shape]:
        """The shapes of its outputs, without the batch axis."""
        return [tuple(tensor.shape[1:]) for tensor in self.call.outputs]

    @property
    def shape(self) -> Shape:
        """The shape of its first output, without the batch axis."""
        return self.shapes[0]

    def hold(self, ids: Ids, reason: str) -> None:
        """Keep the slots `ids` because of this call."""
        self.trace.hold(ids, reason, self.path)

    def border(self, ids: Ids) -> None:
        """Note for the explanation that the slots `ids` are constants other than 0, padded with zeros here."""
        for slot in ids:
            self.trace.borders.setdefault(int(slot), self.path)

    def unite(self, left: Ids, right: Ids) -> None:
        """Let `left[k]` and `right[k]` leave or stay together."""
        self.trace.slots.unite(left, right)

    def keep_all(self) -> list[Channels]:
        """Keep all inputs and outputs, of which nothing is known, and list the layer as unsupported."""
        self.trace.unsupported[self.path] = type(self.layer).__name__
        results = [self.trace.opaque(shape) for shape in self.shapes]
        for channels in self.inputs:
            self.hold(channels.ids, "unsupported")
        for channels in results:
            self.hold(channels.ids, "unsupported")
            if channels.shape and channels.shape[-1]:
                self.owns(np.broadcast_to(channels.ids.reshape(-1), (channels.shape[-1],)))
        return results

    def line(self, axis: int) -> AxisChannels:
        """Return the first input's channels on `axis`; if they vary on another, all stay and none is known."""
        channels = self.inputs[0]
        axis %= len(channels.shape)
        if set(channels.varying) <= {axis}:
            return channels.line(axis)
        self.hold(channels.ids, "layout")
        size = channels.shape[axis] or 1
        ids = np.broadcast_to(self.trace.slots.fresh(1), (size,))
        self.hold(ids, "layout")
        return AxisChannels(ids, np.zeros(ids.shape, bool), np.zeros(ids.shape))

    def own(self, count: int) -> Ids:
        """Return the slots of the channels that this layer makes."""
        ids = self.trace.own(self.layer, "output", count)
        self.owns(ids)
        return ids

    def owns(self, ids: Ids) -> None:
        """Make the plan explain `ids` under this layer's name."""
        self.trace.owners.setdefault(self.path, Owner(type(self.layer).__name__, ids))

    def shrinks(self, **entries: object) -> None:
        """Note config entries of this layer that shrink to `Count`s (or tuples with them) or `Listed`s."""
        self.trace.configs.setdefault(self.path, {}).update(entries)

    def weight(self, variable: keras.Variable, *axes: Ids | None, uses: int = 0) -> str:
        """Note the slots on the axes of `variable`, and return its path."""
        path = self.trace.paths.get(id(variable))
        if path is None:
            raise RemovalError(f"layer {self.path!r} holds a variable {variable.path!r} that is not among its weights")
        before = self.trace.axes.setdefault(path, axes)
        for old, new in zip(before, axes, strict=True):
            if old is not None and new is not None:
                self.unite(old, new)
        self.trace.uses[path] = self.trace.uses.get(path, 0) + uses
        return path

    def linear(
        self,
        line: AxisChannels,
        kernel: Any,
        out_ids: Ids,
        *,
        bias: Any = None,
        bias_path: str | None = None,
        bias_shape: tuple[int, ...] | None = None,
        bias_values: NDArray[np.float64] | None = None,
        groups: int = 1,
        in_axis: int = -2,
        out_axis: int = -1,
        uses: int = 1,
        absorbs: bool = True,
        mergeable: bool = True,
        flat_outputs: bool = False,
    ) -> AxisChannels:
        """Return the channels that a kernel makes of `line`, before the activation; the trace gets the `Linear`.

        Args:
            line: the channels read.
            kernel: variable whose axes `in_axis` (C_in / groups) and `out_axis` (C_out) are channels, the rest taps.
            out_ids: slots of the outputs.
            bias: variable (C_out,) added to the outputs; None if there is none, or if it has another shape.
            bias_path: path of the bias, if `bias` is None.
            bias_shape: shape of the bias, if it is not (C_out,); its first elements belong to the outputs.
            bias_values: the bias as (C_out,), if `bias` is None.
            groups: number of groups of channels that do not read each other.
            in_axis: see `kernel`.
            out_axis: see `kernel`.
            uses: multiplications of one kernel element for one sample.
            absorbs: whether a constant channel adds the same to every output position.
            mergeable: whether the kernels of one constant channel may be added to those of another.
            flat_outputs: whether the kernel is (C_in, ...) and all its other axes are outputs, which stay.
        """
        rank = len(kernel.shape)
        axes: list[Ids | None] = [None] * rank
        if flat_outputs:
            axes[0] = line.ids
        else:
            axes[in_axis] = line.ids.reshape(groups, -1) if groups > 1 else line.ids
            axes[out_axis] = out_ids
        path = self.weight(kernel, *axes, uses=uses)
        if bias is not None:
            bias_path = self.weight(bias, out_ids)
            bias_values = value_of(bias, np.float64)
        before = self.trace.linears.get(path)
        if before is None:

            def read() -> Array:
                if flat_outputs:
                    return value_of(kernel).reshape(1, kernel.shape[0], -1)
                return np.moveaxis(value_of(kernel), (in_axis, out_axis), (-2, -1))

            before = self.trace.linears[path] = Linear(
                path=self.path,
                taps=Taps(read, groups, self.trace.tolerance),
                source=line,
                out_ids=out_ids,
                kernel_path=path,
                in_axis=in_axis % rank,
                out_axis=out_axis % rank,
                bias_path=bias_path or f"{self.path}/bias",
                bias_shape=bias_shape,
                absorbs=absorbs,
                mergeable=mergeable and groups == 1,
            )
        else:
            before.source = before.source.meet(line)
            before.absorbs &= absorbs
        return before.output(line, absorbs, np.zeros(len(out_ids)) if bias_values is None else bias_values)
