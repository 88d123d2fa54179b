"""Finds in a traced model each tensor that is made of variables alone and meets the data.

That tensor, and not the variable, is what the model computes with: a layer may add to its kernel (LoRA), scale it
(weight normalisation) or round it before it multiplies. Only TensorFlow's graph says so for every class of layers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import keras

# Operations with a function inside: the attributes that name one, and the inputs that the function does not get.
_BRANCHES = {"If": 1, "StatelessIf": 1, "PartitionedCall": 0, "StatefulPartitionedCall": 0}
_LOOPS = frozenset({"While", "StatelessWhile"})


@dataclass(frozen=True)
class _Fact:
    """Origin of a tensor: whether it depends on the data, and if not, the variables that it is computed from.

    Attributes:
        variables: names of the variables.
        data: whether it depends on the data too.
        handle: whether it is the variable itself, not yet read.
    """

    variables: frozenset[str] = frozenset()
    data: bool = False
    handle: bool = False

    @property
    def is_made_of_variables(self) -> bool:
        return bool(self.variables) and not self.data


_DATA = _Fact(data=True)


class Meetings:
    """Every tensor of a traced function that is made of variables alone, and is read together with the data.

    Attributes:
        tensors: those tensors, in the order of the graph; a variable from which the data pick rows stands for itself.
    """

    def __init__(self, function: Any, names: Mapping[int, str]) -> None:
        """Find the meetings of a concrete function.

        Args:
            function: of `tf.function(...).get_concrete_function`.
            names: id of the handle of a variable, to its name.
        """
        self._facts: dict[tuple[int, str], _Fact] = {}
        self.tensors: list[Any] = []
        captured = {id(inner): names.get(id(outer)) for outer, inner in function.graph.captures}
        for tensor in function.graph.inputs:
            name = captured.get(id(tensor))
            self._facts[_key(tensor)] = _DATA if name is None else _Fact(frozenset({name}), handle=True)
        self._walk(function.graph)

    def variables(self, tensor: object) -> frozenset[str]:
        """Return the names of the variables that `tensor` is made of; none if it depends on the data."""
        fact = self._fact(tensor)
        return frozenset() if fact.data else fact.variables

    def _fact(self, tensor: object) -> _Fact:
        return self._facts.get(_key(tensor), _DATA)

    def _walk(self, graph: Any) -> None:
        for operation in graph.get_operations():
            inputs = [self._fact(tensor) for tensor in operation.inputs]
            if operation.type == "Placeholder":
                continue
            if any(fact.data for fact in inputs):
                self._meet(operation, inputs)
                result = _DATA
            else:
                handle = operation.type == "Identity" and any(fact.handle for fact in inputs)
                result = _Fact(frozenset().union(*(fact.variables for fact in inputs)), handle=handle)
            for tensor in operation.outputs:
                self._facts[_key(tensor)] = result
        for tensor in graph.outputs:
            if self._fact(tensor).is_made_of_variables and tensor.dtype.name != "resource":
                self.tensors.append(tensor)

    def _meet(self, operation: keras.Operation, inputs: list[_Fact]) -> None:
        if operation.type not in _BRANCHES and operation.type not in _LOOPS:
            read = zip(operation.inputs, inputs, strict=True)
            self.tensors += [tensor for tensor, fact in read if fact.is_made_of_variables]
            return
        left_out = _BRANCHES.get(operation.type, 0)
        for body in _bodies(operation):
            for tensor, inner, fact in zip(operation.inputs[left_out:], body.inputs, inputs[left_out:], strict=True):
                # A value that is handed over is judged here; inside, it stands for data.
                if fact.is_made_of_variables and not fact.handle:
                    self.tensors.append(tensor)
                self._facts[_key(inner)] = fact if fact.handle or fact == _Fact() else _DATA
            if operation.type in _LOOPS:
                self._change_in(body)
            self._walk(body)

    def _change_in(self, body: Any) -> None:
        """Keep what a loop gives to its next turn only if it is always the same."""
        for inner, outer in zip(body.inputs, body.outputs, strict=True):
            if outer is not inner and not self._facts[_key(inner)].handle:
                self._facts[_key(inner)] = _DATA


def _key(tensor: keras.KerasTensor) -> tuple[int, str]:
    return id(tensor.graph), tensor.name


def _bodies(operation: keras.Operation) -> Iterator[Any]:
    """Yield the graphs inside `operation` that compute its outputs."""
    for name in ("body", "f", "then_branch", "else_branch"):
        try:
            inside = operation.get_attr(name)
        except ValueError:
            continue
        yield operation.graph._get_function(inside.name).graph
