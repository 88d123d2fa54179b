"""Keeps channels last from the first node to the last, also where qonnx leaves them first.

Measured on qonnx 1.0.0: it converts convolutions and max pooling to channels last, and moves the `Transpose` around
them past a few kinds of node. Around all other kinds, and at the end of the network, the `Transpose` stays. Here each
tensor keeps its order, and the permutation to ONNX's order is remembered. A tensor is transposed only if a node needs
ONNX's order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fpgaprune.design import FUNCTIONS
from fpgaprune.onnx_graph import Graph, attributes, set_attribute

DOMAIN = "qonnx.custom_op.channels_last"
GLOBAL_POOLS = frozenset({"GlobalMaxPool", "GlobalAveragePool"})
_POOLS = frozenset({"AveragePool", *GLOBAL_POOLS})
_ONE_BY_ONE = frozenset(function.onnx for function in FUNCTIONS.values() if function.converts and function.onnx)
_MERGES = frozenset({"Add", "Sub", "Mul", "Max", "Min", "Concat"})
_RESHAPES = frozenset({"Reshape", "Flatten", "Squeeze"})


def to_first(rank: int) -> tuple[int, ...]:
    """The permutation that moves channels from the last axis to the one after the batch."""
    return (0, rank - 1, *range(1, rank - 1))


def keep_channels_last(clean: Any) -> None:
    """Removes every `Transpose` from qonnx's model `clean` that does not really exchange axes."""
    _Layout(clean).run()


class _Layout:
    """The new nodes, and for each tensor the tensor that carries it and the permutation between the two."""

    def __init__(self, clean: Any) -> None:
        self.clean, self.nodes = clean, list(clean.graph.node)
        self.carried: dict[str, tuple[str, tuple[int, ...]]] = {}
        self.done: list[Any] = []

    def run(self) -> None:
        """Replaces the nodes of the graph by the new ones."""
        outputs = [value.name for value in self.clean.graph.output]
        for node in self.nodes:
            self._add(node)
        for name in outputs:
            source, perm = self._carrier(name)
            if source != name:
                self._rename(source, name) if _is_identity(perm) else self._turn(source, name, perm)
        del self.clean.graph.node[:]
        self.clean.graph.node.extend(self.done)
        Graph(self.clean.graph).sweep()

    def _add(self, node: Any) -> None:
        kind, source = node.op_type, node.input[0]
        carrier, perm = self._carrier(source)
        if kind == "Transpose":
            self.carried[node.output[0]] = (carrier, tuple(perm[axis] for axis in attributes(node)["perm"]))
        elif kind in _POOLS and node.domain != DOMAIN and perm == to_first(len(perm)):
            node.domain = DOMAIN
            self._emit(node, [carrier], perm)
        elif kind in _ONE_BY_ONE or (kind in _MERGES and self._share(node.input)):
            if kind == "Concat":
                set_attribute(node, "axis", perm[attributes(node)["axis"]])
            self._emit(node, [self._carrier(name)[0] for name in node.input], perm)
        elif kind == "Softmax":
            set_attribute(node, "axis", perm[attributes(node).get("axis", -1)])
            self._emit(node, [carrier], perm)
        elif kind == "Pad":
            self._emit(node, [carrier, self._permuted_pads(node, perm), *node.input[2:]], perm)
        elif kind in _RESHAPES:
            self._reshape(node, carrier, perm)
        else:
            node.input[:] = [self._as_asked(name) for name in node.input]
            self.done.append(node)

    def _reshape(self, node: Any, carrier: str, perm: tuple[int, ...]) -> None:
        """Adds a `Reshape`, also for a `Squeeze`; if only axes of size 1 change places, it reads the carrier."""
        shape = self._shape(node.output[0])
        if self._keeps_order(carrier, perm):
            maker = next((done for done in self.done if carrier in done.output), None)
            if maker is not None and maker.op_type in GLOBAL_POOLS and len(shape) == 2:
                # hls4ml drops the axes of size 1 from the outputs of these.
                self.clean.set_tensor_shape(carrier, list(shape))
                self.carried[node.output[0]] = (carrier, (0, 1))
                return
            node.input[0] = carrier
        else:
            node.input[0] = self._as_asked(node.input[0])
        name = f"{node.name}_shape"
        self.clean.set_initializer(name, np.array(shape, dtype=np.int64))
        node.op_type = "Reshape"
        del node.attribute[:]
        node.input[:] = [node.input[0], name]
        self.done.append(node)

    def _emit(self, node: Any, inputs: Sequence[str], perm: tuple[int, ...]) -> None:
        node.input[:] = inputs
        if not _is_identity(perm):
            asked, name = node.output[0], f"{node.output[0]}_last"
            shape = self._shape(asked)
            self.carried[asked] = (name, perm)
            node.output[0] = name
            self.clean.set_tensor_shape(name, [shape[perm.index(axis)] for axis in range(len(perm))])
        self.done.append(node)

    def _carrier(self, name: str) -> tuple[str, tuple[int, ...]]:
        return self.carried.get(name, (name, tuple(range(len(self._shape(name))))))

    def _share(self, names: Sequence[str]) -> bool:
        """Whether all these tensors are computed and carried in the same order."""
        computed = all(self.clean.get_initializer(name) is None for name in names)
        return computed and len({self._carrier(name)[1] for name in names}) == 1

    def _keeps_order(self, carrier: str, perm: tuple[int, ...]) -> bool:
        shape = self._shape(carrier)
        moved = [axis for axis in perm if shape[axis] != 1]
        return moved == sorted(moved)

    def _permuted_pads(self, node: Any, perm: tuple[int, ...]) -> str:
        pads, rank = self.clean.get_initializer(node.input[1]), len(perm)
        if _is_identity(perm):
            return str(node.input[1])
        ends = np.array(pads).reshape(2, rank)
        name = f"{node.name}_pads"
        self.clean.set_initializer(name, ends[:, [perm.index(axis) for axis in range(rank)]].ravel())
        return name

    def _as_asked(self, name: str) -> str:
        """The tensor `name` in ONNX's order; it is transposed if it is carried in another order."""
        carrier, perm = self._carrier(name)
        if name not in self.carried or _is_identity(perm):
            return carrier
        self._turn(carrier, name, perm)
        self.carried[name] = (name, tuple(range(len(perm))))
        return name

    def _turn(self, carrier: str, name: str, perm: tuple[int, ...]) -> None:
        from onnx import helper

        node = helper.make_node("Transpose", [carrier], [name], name=f"Transpose_of_{carrier}", perm=list(perm))
        self.done.append(node)

    def _rename(self, carrier: str, name: str) -> None:
        for node in self.done:
            node.input[:] = [name if tensor == carrier else tensor for tensor in node.input]
            node.output[:] = [name if tensor == carrier else tensor for tensor in node.output]
        self.clean.set_tensor_shape(name, self._shape(carrier))

    def _shape(self, name: str) -> list[int]:
        return list(self.clean.get_tensor_shape(name))


def _is_identity(perm: tuple[int, ...]) -> bool:
    return perm == tuple(range(len(perm)))
