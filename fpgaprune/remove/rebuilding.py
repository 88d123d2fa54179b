"""`rebuild` makes a model anew from its graph: in another precision, smaller by a plan, or as a copy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import keras
import numpy as np
from numpy.typing import NDArray

from fpgaprune.errors import RemovalError
from fpgaprune.network import (
    Call,
    Role,
    calls_of,
    count_uses,
    graph_of,
    is_model,
    producer,
    role_of,
    structures,
    unconnected,
    value_of,
)
from fpgaprune.remove.plan import Collapse, RemovalPlan
from fpgaprune.weights import named_weights

Swap = Callable[[Any], Any]

_FLOATS = ("float", "bfloat", "mixed_")


def rebuild(
    model: Any,
    plan: RemovalPlan | None = None,
    dtype: str | None = None,
    bare: bool = False,
    swaps: Mapping[str, Swap] | None = None,
) -> Any:
    """A functional model with layers of its own, the names of `model`'s, and its weights as `plan` wants them.

    Args:
        model: a functional or Sequential keras model; unchanged.
        plan: what leaves; None for nothing.
        dtype: dtype of every floating-point layer and input, such as "float64"; None for what each has now.
        bare: leave out a softmax or sigmoid that makes an output: where it saturates it hides what comes in.
        swaps: for some layer paths, what makes the layer's output of its input instead; their weights are left alone.

    Raises:
        RemovalError: the graph cannot be read, or a layer cannot be made from its config.
    """
    final = _final_layers(graph_of(model)) if bare else set()
    copy = _Builder(plan, dtype, final, swaps or {}).build(model, "", "")
    sources = named_weights(model) if model.weights else {}
    for path, variable in (named_weights(copy) if copy.weights else {}).items():
        if swaps and path.rpartition("/")[0] in swaps:
            continue
        value = small_value(sources.get(path), tuple(variable.shape), path, plan)
        variable.assign(value.astype(_numpy_dtype(variable.dtype)))
    for layer in copy._flatten_layers():
        if isinstance(layer, keras.layers.Normalization):
            layer.finalize_state()  # it computes with copies of its weights
    return copy


def small_value(source: Any, shape: tuple[int, ...], path: str, plan: RemovalPlan | None) -> NDArray[Any]:
    """The value of the weight at `path` in the small model of `plan`; sums are computed in float64.

    Raises:
        RemovalError: the plan does not give the shape that the small layer has.
    """
    value = np.zeros(shape) if source is None else value_of(source)
    if plan is None:
        return value
    if source is not None and value.ndim:
        value = value[np.ix_(*plan.kept[path])]
    if value.shape != shape:
        raise RemovalError(f"weight {path!r} is {value.shape} by the plan; the small layer has {shape}")
    if path in plan.deltas:
        value = value.astype(np.float64)
        np.add.at(value.reshape(-1), plan.deltas[path].at, plan.deltas[path].values)
    return value


def _numpy_dtype(name: str) -> Any:
    return np.float32 if name == "bfloat16" else name  # NumPy has no bfloat16; the assignment rounds


def _final_layers(graph: Any) -> set[int]:
    """Layers whose softmax or sigmoid makes an output of `graph` and nothing else."""
    calls = calls_of(graph)
    uses = count_uses(calls)
    read = {id(tensor) for call in calls for tensor in call.inputs}
    ends = {id(tensor) for tensor in graph.outputs} - read
    found = set()
    for call in calls:
        layer = call.operation
        squashes = getattr(layer, "activation", None) in (keras.activations.softmax, keras.activations.sigmoid)
        if uses[id(layer)] == 1 and (squashes or type(layer) is keras.layers.Softmax) and id(call.outputs[0]) in ends:
            found.add(id(layer))
    return found


@dataclass
class _Builder:
    plan: RemovalPlan | None
    dtype: str | None
    bare: set[int]
    swaps: Mapping[str, Swap]
    _layers: dict[int, Any] = field(default_factory=dict)

    def build(self, model: Any, key_prefix: str, path_prefix: str) -> Any:
        graph = graph_of(model)
        inputs, outputs = structures(graph)
        found = {id(tensor): self._input(tensor, path_prefix) for tensor in graph.inputs}
        for call in calls_of(graph, key_prefix, path_prefix):
            self._call(call, found)
        pick = _Lookup(found)
        copy = keras.Model(
            keras.tree.map_structure(pick, inputs), keras.tree.map_structure(pick, outputs), name=model.name
        )
        if not model.trainable:
            copy.trainable = False
        return copy

    def _input(self, tensor: Any, path_prefix: str) -> Any:
        layer = producer(tensor)
        entries = self._entries(path_prefix + layer.name)
        return keras.Input(
            batch_shape=entries.get("batch_shape", tensor.shape),
            dtype=self.dtype if self.dtype and tensor.dtype.startswith(_FLOATS) else tensor.dtype,
            name=layer.name,
            sparse=getattr(layer, "sparse", None) or None,
        )

    def _entries(self, path: str) -> Mapping[str, Any]:
        return self.plan.config.get(path, {}) if self.plan else {}

    def _call(self, call: Call, found: dict[int, Any]) -> None:
        if self.plan and call.key in self.plan.dropped:
            return
        if call.path in self.swaps:
            found[id(call.outputs[0])] = self.swaps[call.path](found[id(call.inputs[0])])
            return
        collapse = self.plan.collapsed.get(call.key) if self.plan else None
        if collapse:
            operand = found[id(call.inputs[collapse.operand])]
            found[id(call.outputs[0])] = self._collapsed(call, collapse, operand)
            return
        present = [tensor for tensor in call.inputs if id(tensor) in found]
        if len(present) < len(call.inputs) and (not present or role_of(call.operation) is not Role.JOIN):
            raise RemovalError(
                f"call {call.key!r} stays, but a tensor that it reads leaves: the plan is not for this model"
            )
        if len(present) == 1 < len(call.inputs):  # all other branches of a concatenation have left
            found[id(call.outputs[0])] = found[id(present[0])]
            return
        args = _filled(call.args, found)
        kwargs = {key: _filled(value, found) for key, value in call.kwargs.items()}
        if id(call.operation) in self.bare and isinstance(call.operation, keras.layers.Softmax):
            kwargs = {}  # an Identity takes no mask
        results = self._operation(call)(*args, **kwargs)
        for tensor, result in zip(call.outputs, keras.tree.flatten(results), strict=True):
            found[id(tensor)] = result

    def _collapsed(self, call: Call, collapse: Collapse, operand: Any) -> Any:
        if collapse.kind is None:
            return operand
        dtype = self.dtype or getattr(call.operation, "dtype_policy", None)
        return getattr(keras.layers, collapse.kind)(**collapse.config, dtype=dtype)(operand)

    def _operation(self, call: Call) -> Any:
        operation = call.operation
        if id(operation) not in self._layers:
            if is_model(operation):
                copy = self.build(operation, f"{call.key}/", f"{call.path}/")
            elif isinstance(operation, keras.Layer):
                copy = self._layer(operation, call.path)
            else:
                copy = unconnected(operation)
            self._layers[id(operation)] = copy
        return self._layers[id(operation)]

    def _layer(self, layer: Any, path: str) -> Any:
        config = _unbuilt(layer.get_config())
        if self.dtype:
            config = _with_dtype(config, self.dtype)
        if id(layer) in self.bare:
            if isinstance(layer, keras.layers.Softmax):
                return keras.layers.Identity(name=layer.name, dtype=config["dtype"])
            config = {**config, "activation": "linear"}
        try:
            return type(layer).from_config({**config, **self._entries(path)})
        except (TypeError, ValueError, NotImplementedError) as error:
            if not layer.weights and not self._entries(path):
                return unconnected(layer)  # a Lambda, for one, cannot be made of its config
            raise RemovalError(
                f"layer {path!r} ({type(layer).__name__}) cannot be made from its config: {error}"
            ) from error


@dataclass(frozen=True)
class _Lookup:
    found: Mapping[int, Any]

    def __call__(self, leaf: Any) -> Any:
        return self.found.get(id(leaf), leaf)


def _filled(value: Any, found: Mapping[int, Any]) -> Any:
    """`value` with its symbolic tensors replaced, and without those that have left."""
    if isinstance(value, keras.KerasTensor):
        return found[id(value)]
    if isinstance(value, list | tuple) and any(isinstance(item, keras.KerasTensor) for item in value):
        return [found[id(x)] if isinstance(x, keras.KerasTensor) else x for x in value if _present(x, found)]
    return keras.tree.map_structure(_Lookup(found), value)


def _present(item: Any, found: Mapping[int, Any]) -> bool:
    return not isinstance(item, keras.KerasTensor) or id(item) in found


def _unbuilt(config: Any) -> Any:
    """`config` without the input shapes that layers inside a wrapper were built for."""
    if isinstance(config, Mapping):
        return {key: _unbuilt(value) for key, value in config.items() if key != "build_config"}
    if isinstance(config, list):
        return [_unbuilt(item) for item in config]
    return config


def _with_dtype(config: Any, dtype: str) -> Any:
    if isinstance(config, Mapping):
        return {
            key: _policy(value, dtype) if key == "dtype" else _with_dtype(value, dtype) for key, value in config.items()
        }
    if isinstance(config, list):
        return [_with_dtype(item, dtype) for item in config]
    return config


def _policy(value: Any, dtype: str) -> Any:
    name = value if isinstance(value, str) else (value or {}).get("config", {}).get("name", "float32")
    return dtype if name.startswith(_FLOATS) else value
