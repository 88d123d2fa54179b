"""`rebuild` makes a new model from a model's graph: in another precision, smaller by a plan, or as a copy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import keras
import numpy as np

from fpgaprune.errors import RemovalError
from fpgaprune.files import in_a_line
from fpgaprune.network import (
    IDENTITIES,
    Call,
    Role,
    activation_in,
    calls_of,
    copied,
    graph_of,
    is_model,
    is_of_a_user,
    keras_class,
    nested_graph,
    producer,
    role_of,
    structures,
    unconnected,
    value_of,
)
from fpgaprune.remove.plan import Collapse, RemovalPlan
from fpgaprune.values import Array, every_path, named_weights

Swap = Callable[[Any], Any]

_FLOATS = ("float", "bfloat", "mixed_")


def rebuild(
    model: keras.Model,
    plan: RemovalPlan | None = None,
    dtype: str | None = None,
    bare: bool = False,
    swaps: Mapping[str, Swap] | None = None,
) -> keras.Model:
    """Return a functional model with new layers, the names of `model`'s layers, and its weights changed as `plan` says.

    Args:
        model: a functional or Sequential keras model; unchanged.
        plan: what leaves; None removes nothing.
        dtype: dtype of every input and layer of floats, such as "float64"; a `Lambda` and layers of a user's own keep
            theirs. None keeps each one's.
        bare: leave out a softmax or sigmoid that makes an output, because it hides its input where it saturates.
        swaps: layer path to a function that makes the layer's output from its input; its weights are not copied.

    Raises:
        RemovalError: the graph cannot be read, or a layer cannot be made from its config.
    """
    final = {id(layer) for layer in squashing_layers(model)} if bare else set()
    copy = _Builder(plan, dtype, final, swaps or {}).build(model, "", "")
    sources = every_path(model)
    for path, variable in named_weights(copy).items():
        if swaps and path.rpartition("/")[0] in swaps:
            continue
        value = small_value(sources.get(path), tuple(variable.shape), path, plan)
        # NumPy has no bfloat16; the assignment rounds to it.
        variable.assign(value.astype(np.float32 if variable.dtype == "bfloat16" else variable.dtype))
    for layer in copy._flatten_layers():
        if isinstance(layer, keras.layers.Normalization):
            layer.finalize_state()  # the layer computes with copies of its weights
    return copy


def small_value(source: object, shape: tuple[int, ...], path: str, plan: RemovalPlan | None) -> Array:
    """Return the value of the weight at `path` in the small model of `plan`; sums are computed in float64.

    Raises:
        RemovalError: the plan's shape is not that of the small layer.
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


@dataclass
class _Builder:
    plan: RemovalPlan | None
    dtype: str | None
    bare: set[int]
    swaps: Mapping[str, Swap]
    _layers: dict[int, Any] = field(default_factory=dict)

    def build(self, model: keras.Model, key_prefix: str, path_prefix: str) -> keras.Model:
        graph = graph_of(model)
        inputs, outputs = structures(graph)
        found = {id(tensor): self._input(tensor, path_prefix) for tensor in graph.inputs}
        for call in calls_of(graph, key_prefix, path_prefix):
            self._call(call, found)
        copy = keras.Model(_replaced(inputs, found), _replaced(outputs, found), name=model.name)
        if not model.trainable:
            copy.trainable = False
        return copy

    def _input(self, tensor: keras.KerasTensor, path_prefix: str) -> keras.KerasTensor:
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

    def _collapsed(self, call: Call, collapse: Collapse, operand: object) -> Any:
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

    def _layer(self, layer: keras.Layer, path: str) -> keras.Layer:
        changes = dict(self._entries(path))
        plain = not layer.weights and not changes
        hers = is_of_a_user(layer)
        if plain and (hers or isinstance(layer, keras.layers.Lambda)):
            return unconnected(layer)  # its config need not say everything that it computes with
        if id(layer) in self.bare:
            if isinstance(layer, keras.layers.Softmax):
                return keras.layers.Identity(name=layer.name, dtype=self.dtype or layer.dtype_policy)
            changes |= {"activation": "linear"}
        try:
            # A layer of a user's own may read a tensor of its own precision.
            return copied(layer, partial(_cleaned, dtype=None if hers else self.dtype), **changes)
        except (TypeError, ValueError, NotImplementedError) as error:
            if plain:
                return unconnected(layer)
            raise RemovalError(
                f"layer {path!r} ({type(layer).__name__}) cannot be made from its config: {in_a_line(error)}; give its "
                "class a get_config with all arguments of its __init__"
            ) from error


def _replaced(value: object, found: Mapping[int, Any]) -> Any:
    """Return `value` with each tensor in `found` replaced."""
    return keras.tree.map_structure(lambda leaf: found.get(id(leaf), leaf), value)


def _filled(value: object, found: Mapping[int, Any]) -> Any:
    """Return `value` with its symbolic tensors replaced, and without those that have left."""
    if isinstance(value, keras.KerasTensor):
        return found[id(value)]
    if isinstance(value, list | tuple) and any(isinstance(item, keras.KerasTensor) for item in value):
        return [found.get(id(x), x) for x in value if id(x) in found or not isinstance(x, keras.KerasTensor)]
    return _replaced(value, found)


def _cleaned(config: object, dtype: str | None) -> Any:
    """Return `config` with `dtype`, and without the input shapes for which a wrapper's layers were built."""
    if isinstance(config, Mapping):
        return {
            key: _policy(value, dtype) if dtype and key == "dtype" else _cleaned(value, dtype)
            for key, value in config.items()
            if key != "build_config"
        }
    if isinstance(config, list):
        return [_cleaned(item, dtype) for item in config]
    return config


def _policy(value: Any, dtype: str) -> Any:
    name = value if isinstance(value, str) else (value or {}).get("config", {}).get("name", "float32")
    return dtype if name.startswith(_FLOATS) else value


# Layers behind it that hand on every number that they read.
_HANDING_ON = IDENTITIES | {"Flatten", "Permute", "Reshape"}


def squashing_layers(model: keras.Model) -> tuple[Any | None, ...]:
    """Return for each output of `model` the layer whose softmax or sigmoid makes it and nothing else; None without one.

    The layer may stand in a model inside `model`, and before layers that only reshape.
    """
    graph = graph_of(model)
    uses = Counter(id(call.operation) for call in _all_calls(graph))
    return tuple(_squashing(graph, tensor, uses) for tensor in graph.outputs)


def squashing_functions(model: keras.Model) -> tuple[str | None, ...]:
    """Return for each output of `model` which function the layer of `squashing_layers` applies, as `softmax`."""
    return tuple(None if layer is None else _function(layer) for layer in squashing_layers(model))


def _function(layer: keras.Layer) -> str:
    known = activation_in(layer)
    return known.name if known is not None else f"softmax over {layer.axis}"


def _all_calls(graph: object) -> Iterator[Call]:
    for call in calls_of(graph):
        yield call
        inner = nested_graph(call)
        if inner is not None:
            yield from _all_calls(inner)


def _squashing(graph: Any, tensor: keras.KerasTensor, uses: Counter[int]) -> Any | None:
    calls = calls_of(graph)
    makers = {id(made): call for call in calls for made in call.outputs}
    read = Counter(id(given) for call in calls for given in call.inputs) + Counter(map(id, graph.outputs))
    # An output is read once, by whoever calls the model.
    while read[id(tensor)] == 1 and id(tensor) in makers:
        call = makers[id(tensor)]
        layer, inner = call.operation, nested_graph(call)
        if uses[id(layer)] > 1:
            return None
        if inner is not None:
            place = [id(made) for made in call.outputs].index(id(tensor))
            return _squashing(inner, inner.outputs[place], uses)
        if _squashes(layer):
            return layer
        if getattr(keras_class(layer), "__name__", None) not in _HANDING_ON:
            return None
        tensor = call.inputs[0]
    return None


def _squashes(layer: keras.Layer) -> bool:
    known = activation_in(layer)
    return type(layer) is keras.layers.Softmax or (known is not None and known.name in ("softmax", "sigmoid"))
