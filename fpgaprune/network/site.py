"""`Site`: one call as a rule sees it, with the ways to say what the layer does to its channels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpgaprune.errors import RemovalError
from fpgaprune.network.channels import AxisChannels, Channels, Shape
from fpgaprune.network.graph import Call, value_of
from fpgaprune.network.linear import Linear, Taps
from fpgaprune.network.role import Role
from fpgaprune.network.slots import Ids
from fpgaprune.network.trace import Owner, Trace

Values = Callable[["Site"], "Channels | list[Channels]"]


@dataclass(frozen=True)
class LayerRule:
    """All that is known of one class of layers.

    Attributes:
        values: says to a `Site` what the layer does to its channels, their constants and its weights.
        role: what it does to channels as far as masks tell; None where any output may be made of any input.
    """

    values: Values
    role: Role | None = None


def of_each_size(rule: LayerRule, *names: str, sizes: tuple[int, ...] = (1, 2, 3)) -> dict[type, LayerRule]:
    """`rule` for classes of Keras that exist for several numbers of axes: `Conv{}D` is Conv1D, Conv2D, Conv3D."""
    from keras import layers

    return {getattr(layers, name.format(size)): rule for name in names for size in sizes}


@dataclass(frozen=True)
class Site:
    """One call, as a rule sees it: what comes in, and the ways to say what the layer does with it."""

    trace: Trace
    call: Call
    inputs: list[Channels]

    @property
    def layer(self) -> Any:
        """The Keras layer or operation."""
        return self.call.operation

    @property
    def weights_in_parts(self) -> bool:
        """Whether the layer holds its weights in parts, by LoRA or `quantize()`, so that no one array is its kernel."""
        return bool(getattr(self.layer, "lora_enabled", False) or getattr(self.layer, "quantization_mode", None))

    @property
    def path(self) -> str:
        """Its path."""
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
        """The slots `ids` stay because of this call."""
        self.trace.hold(ids, reason, self.path)

    def border(self, ids: Ids) -> None:
        """The slots `ids` are constants other than 0 that meet zero padding here; for the explanation."""
        for slot in ids:
            self.trace.borders.setdefault(int(slot), self.path)

    def unite(self, left: Ids, right: Ids) -> None:
        """`left[k]` and `right[k]` leave or stay together."""
        self.trace.slots.unite(left, right)

    def keep_all(self, reason: str = "unsupported") -> list[Channels]:
        """All inputs stay and nothing is known of the outputs; the layer is named as unsupported."""
        if reason == "unsupported":
            self.trace.unsupported[self.path] = type(self.layer).__name__
        for channels in self.inputs:
            self.hold(channels.ids, reason)
        results = [self.trace.opaque(shape) for shape in self.shapes]
        for channels in results:
            self.hold(channels.ids, reason)
            if channels.shape and channels.shape[-1]:
                self.owns(np.broadcast_to(channels.ids.reshape(-1), (channels.shape[-1],)))
        return results

    def line(self, axis: int, source: int = 0) -> AxisChannels:
        """The channels of an input along `axis`; if they vary along another axis, all stay and nothing is known."""
        channels = self.inputs[source]
        axis %= len(channels.shape)
        if set(channels.varying) <= {axis}:
            return channels.line(axis)
        self.hold(channels.ids, "layout")
        size = channels.shape[axis] or 1
        ids = np.broadcast_to(self.trace.slots.fresh(1), (size,))
        self.hold(ids, "layout")
        return AxisChannels(ids, np.zeros(ids.shape, bool), np.zeros(ids.shape))

    def own(self, count: int, role: str = "output") -> Ids:
        """The slots of the channels that this layer makes."""
        ids = self.trace.own(self.layer, role, count)
        self.owns(ids)
        return ids

    def owns(self, ids: Ids) -> None:
        """The plan explains `ids` under this layer's name."""
        self.trace.owners.setdefault(self.path, Owner(type(self.layer).__name__, ids))

    def shrinks(self, **entries: Any) -> None:
        """Config entries of this layer that become the given `Count`s (or tuples with them) or `Listed`s."""
        self.trace.configs.setdefault(self.path, {}).update(entries)

    def weight(self, variable: Any, *axes: Ids | None, uses: int = 0) -> str:
        """The path of `variable`, whose axes carry these slots."""
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
        """What a kernel makes of `line`, before the activation; the read is in the trace.

        Args:
            line: the channels read.
            kernel: variable whose axes `in_axis` (C_in / groups) and `out_axis` (C_out) are channels, the rest taps.
            out_ids: slots of the outputs.
            bias: variable added to the outputs, None where there is none yet.
            bias_path: its path, where there is none yet or it is no plain (C_out,) vector.
            bias_shape: shape of the bias, where it is no plain vector; the outputs are its first elements.
            bias_values: the bias as (C_out,), where `bias` is no plain vector.
            groups: groups of channels that do not read each other.
            in_axis: see `kernel`.
            out_axis: see `kernel`.
            uses: multiplications of one kernel element for one input.
            absorbs: a constant channel adds the same to every output position.
            mergeable: one constant channel may take over the kernels of another.
            flat_outputs: the kernel is (C_in, ...) and all its other axes together are outputs, which stay.
        """
        rank = len(kernel.shape)
        axes: list[Ids | None] = [None] * rank
        if flat_outputs:
            axes[0] = line.ids
        else:
            axes[in_axis] = line.ids.reshape(groups, -1) if groups > 1 else line.ids
            axes[out_axis] = out_ids
        path = self.weight(kernel, *axes, uses=uses)
        if bias is not None and bias_values is None:
            bias_path = self.weight(bias, out_ids)
            bias_values = value_of(bias, np.float64)
        before = self.trace.linears.get(path)
        if before is None:

            def read() -> NDArray[Any]:
                array = value_of(kernel)
                return (
                    array.reshape(1, len(array), -1)
                    if flat_outputs
                    else np.moveaxis(array, (in_axis, out_axis), (-2, -1))
                )

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
