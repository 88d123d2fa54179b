"""Makes one flat list of layers of a model, which computes the same at inference.

The layers of models inside the model stand in it themselves. Layers that do nothing at inference (Dropout,
augmentations) are left out. `TimeDistributed` becomes the layer that it applies to every step, an `EinsumDense` along
the last axis a `Dense`, and `RepeatVector` a `Reshape` and an `UpSampling1D`, which repeats the only step. A layer that
no single operation computes becomes several (`expansions`, `reversed_steps`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import keras

from fpgaprune.lowering.expansions import expanded, expands
from fpgaprune.lowering.layer_names import free_name
from fpgaprune.lowering.reversed_steps import reads_otherwise, with_steps_forward, wrapped_layers
from fpgaprune.network import (
    Role,
    calls_of,
    copied,
    is_model,
    keras_class,
    nested_graph,
    producer,
    role_of,
    set_weights,
    unconnected,
)

# Layers that treat the last axis alone, however many axes are before it.
_EACH_STEP = (*("Dense", "Activation", "ReLU", "LeakyReLU", "ELU", "Softmax", "BatchNormalization", "Rescaling"),)


def is_wrapped(layer: keras.Layer) -> bool:
    """Return whether `layer` is a `TimeDistributed` of a layer that treats each step in the same way by itself."""
    if keras_class(layer) is not keras.layers.TimeDistributed:
        return False
    inner = keras_class(layer.layer)
    if inner is None or (inner.__name__ not in _EACH_STEP and role_of(layer.layer) is not Role.IDENTITY):
        return False
    # A negative axis is the same one with the steps and without them.
    axis = getattr(layer.layer, "axis", -1)
    return axis == -1 or axis == [-1]


def is_dense(layer: keras.Layer) -> bool:
    """Return whether `layer` is an `EinsumDense` that computes what a `Dense` of the same weights does."""
    if keras_class(layer) is not keras.layers.EinsumDense:
        return False
    found = re.fullmatch(r"(\.\.\.|[a-zA-Z]+)([a-zA-Z]),\2([a-zA-Z])->\1\3", layer.equation.replace(" ", ""))
    return found is not None and layer.bias_axes in (None, found[3])


def _twin(layer: keras.Layer, name: str, **options: object) -> keras.Layer:
    """Return a layer that computes what `layer` does, with the same weights."""
    if not is_dense(layer):
        return copied(layer, name=name, **options)
    settings = {"activation": layer.activation, "use_bias": layer.bias_axes is not None, **options}
    return keras.layers.Dense(layer.kernel.shape[-1], name=name, dtype=layer.dtype_policy, **settings)


def flattened(model: keras.Model) -> keras.Model:
    """Return a functional model without models inside it, which computes what `model` does at inference.

    Every layer keeps its name if no other has it; `layer_owners` tells whose weights it holds.
    """
    functional = keras.Model(model.inputs, model.outputs, name=model.name)
    if not any(_changes(call) for call in calls_of(functional)):
        return functional
    names, copies = _flat_names(functional), {}
    taken, called = {producer(tensor).name for tensor in functional.inputs} | {*names.values()}, set()
    entries = [
        keras.Input(batch_shape=tensor.shape, dtype=tensor.dtype, name=producer(tensor).name)
        for tensor in functional.inputs
    ]

    def copy_of(operation: keras.Operation, name: str, **options: object) -> keras.Layer:
        if not isinstance(operation, keras.layers.Layer):
            return unconnected(operation)
        if id(operation) not in copies:
            copies[id(operation)] = (operation, _twin(operation, name, **options))
        return copies[id(operation)][1]

    def free(wanted: str) -> str:
        taken.add(name := free_name(wanted, taken))
        return name

    def run(graph: Any, given: Sequence[Any], prefix: str) -> list[Any]:
        found = {id(old): new for old, new in zip(graph.inputs, given, strict=True)}

        def moved(value: object) -> Any:
            return found.get(id(value), value)

        for call in calls_of(graph, path_prefix=prefix):
            args, kwargs = keras.tree.map_structure(moved, (call.args, dict(call.kwargs)))
            inner = nested_graph(call)
            if inner is not None:
                made = run(inner, [found[id(tensor)] for tensor in call.inputs], f"{call.path}/")
            else:
                name = names[call.path]
                # What a layer expands to has no weights of its own; a second call makes other layers.
                name = free(name) if name in called and expands(call.operation, args) else name
                called.add(name)
                if reads_otherwise(call):
                    result = with_steps_forward(call, names, args[0], copy_of, free)
                else:
                    result = _applied(call.operation, name, copy_of, free, args, kwargs)
                made = keras.tree.flatten(result)
            found |= {id(old): new for old, new in zip(call.outputs, made, strict=True)}
        return [found[id(tensor)] for tensor in graph.outputs]

    made = keras.Model(entries, run(functional, entries, ""), name=functional.name)
    for operation, twin in copies.values():
        if operation.weights:
            set_weights(twin, operation.get_weights())
    return made


def layer_owners(model: keras.Model) -> dict[str, str]:
    """Return the path of each layer of `model`, as its weights have it, to the layer's name in `flattened(model)`."""
    functional = keras.Model(model.inputs, model.outputs, name=model.name)
    owners = dict(_flat_names(functional))
    for path, layer in _leaves(functional, ""):
        if is_wrapped(layer):
            owners[f"{path}/{layer.layer.name}"] = owners[path]
    return owners


def owner_of(path: str, owners: Mapping[str, str]) -> str | None:
    """Return the layer in `flattened(model)` that holds the weight `path`; None if it has none there."""
    while "/" in path:
        path = path.rpartition("/")[0]
        if path in owners:
            return owners[path]
    return None


def _changes(call: Any) -> bool:
    operation = call.operation
    return (
        role_of(operation) is Role.IDENTITY
        or is_model(operation)
        or is_wrapped(operation)
        or is_dense(operation)
        or keras_class(operation) is keras.layers.RepeatVector
        or expands(operation, call.args)
        or reads_otherwise(call)
    )


def _applied(
    operation: keras.Operation, name: str, copy_of: Any, free: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Any:
    """Return what the layers that stand for `operation` make of its arguments."""
    if is_wrapped(operation):
        operation, kwargs = operation.layer, {}
    if role_of(operation) is Role.IDENTITY:
        return args[0]
    if keras_class(operation) is keras.layers.RepeatVector:
        one = keras.layers.Reshape((1, args[0].shape[-1]), name=free(f"{name}_step"))(args[0])
        return keras.layers.UpSampling1D(operation.n, name=name)(one)
    if expands(operation, args):

        def call(
            layer: keras.Layer, own: str, given: tuple[Any, ...], more: Mapping[str, Any], **options: Any
        ) -> keras.KerasTensor:
            return copy_of(layer, own, **options)(*given, **more)

        return expanded(operation, name, call, args, kwargs, free)
    return copy_of(operation, name)(*args, **kwargs)


def _flat_names(functional: keras.Model) -> dict[str, str]:
    """Return the path of each operation of `functional`, which no model inside it is, to its name in the flat model."""
    paths = [path for path, _ in _leaves(functional, "")]
    last = [path.rpartition("/")[2] for path in paths]
    taken = {producer(tensor).name for tensor in functional.inputs} | {path for path in paths if "/" not in path}
    names: dict[str, str] = {}
    for path, own in zip(paths, last, strict=True):
        if path in names:
            continue
        wanted = own if "/" not in path or last.count(own) == 1 else path.replace("/", "_")
        names[path] = path if "/" not in path else free_name(wanted, taken)
        taken.add(names[path])
    return names


def _leaves(graph: object, prefix: str) -> Iterator[tuple[str, Any]]:
    """Yield the path and the operation of each call of `graph`, those inside a model instead of the model.

    The two layers of a `Bidirectional` come after it.
    """
    for call in calls_of(graph, path_prefix=prefix):
        inner = nested_graph(call)
        if inner is None:
            yield call.path, call.operation
            yield from wrapped_layers(call).items()
        else:
            yield from _leaves(inner, f"{call.path}/")
