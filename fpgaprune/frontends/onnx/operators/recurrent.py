"""`GRU`, `LSTM` and `RNN` of ONNX as GRU, LSTM and SimpleRNN of Keras."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import isclose
from typing import Any

import numpy as np

from fpgaprune.frontends.onnx.node import NodeStep, Operator
from fpgaprune.frontends.onnx.parameter import Parameter
from fpgaprune.frontends.onnx.value import Value


@dataclass(frozen=True)
class _Kind:
    """A kind of recurrent layer.

    Attributes:
        layer: its class in Keras.
        cell: the part of a weight's path that Keras puts before the weight's name.
        blocks: for each gate in the order of Keras, its block in the weights of ONNX.
        of_torch: for each gate in the order of Keras, its block in the weights of PyTorch.
        activations: the functions of ONNX if none are named: of the gates, of the proposed state, of the output.
    """

    layer: str
    cell: str
    blocks: tuple[int, ...]
    of_torch: tuple[int, ...]
    activations: tuple[str, ...]


_KINDS: Mapping[str, _Kind] = {
    "GRU": _Kind("GRU", "gru_cell", (0, 1, 2), (1, 0, 2), ("Sigmoid", "Tanh")),
    "LSTM": _Kind("LSTM", "lstm_cell", (0, 2, 3, 1), (0, 1, 2, 3), ("Sigmoid", "Tanh", "Tanh")),
    "RNN": _Kind("SimpleRNN", "simple_rnn_cell", (0,), (0,), ("Tanh",)),
}
# For each direction that a node may have, whether it reads its steps backwards.
_DIRECTIONS: Mapping[str, tuple[bool, ...]] = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}
RECURRENT = frozenset(kind.layer for kind in _KINDS.values())
_FUNCTIONS = {"Sigmoid": "sigmoid", "Tanh": "tanh", "Relu": "relu", "Softsign": "softsign", "Softplus": "softplus"}
_INPUTS = ("the sequence", "W", "R", "B", "sequence_lens", "initial_h", "initial_c", "peepholes")


def recurrent(step: NodeStep) -> tuple[Value, ...]:
    """Return the states of all steps, and the last ones; every sample begins with zeros."""
    kind, value = _KINDS[step.operator], _steps_in_order(step)
    directions = _directions(step)
    _require_plain(step, value)
    weights = [_weights(step, kind, value, at, len(directions)) for at in range(len(directions))]
    settings: dict[str, Any] = {
        "units": weights[0]["recurrent_kernel"].values.shape[0],
        **_functions(step, kind, len(directions)),
        "use_bias": "bias" in weights[0],
        "return_sequences": step.is_used[0],
    }
    if kind.layer == "GRU":
        settings["reset_after"] = bool(step.settings.get("linear_before_reset", 0))
    if step.module:
        weights = _as_in_module(step, kind, weights)
    weights = [{f"{kind.cell}/{name}": weight for name, weight in one.items()} for one in weights]
    if not step.is_used[0]:
        last = _last_states(step, kind, value, settings, weights)
        return last, last
    states = _all_states(step, kind, value, settings, weights)
    if not (len(step.is_used) > 1 and step.is_used[1]):
        return (states,)
    # Of several layers PyTorch joins the last states, and often reads those of the last layer alone.
    return states, _joined(step, [_end_of(step, states, at, len(weights)) for at in range(len(weights))])


def _end_of(step: NodeStep, states: Value, at: int, directions: int) -> Value:
    """Cut the last state of direction `at` out of the states of all steps."""
    plan, steps, units = step.plan, states.shape[0], states.shape[-1]
    sides = (0, steps - 1) if at else (steps - 1, 0)
    # One step of all directions, then one direction.
    row = plan.reshaped(replace(states, batch=0), (steps, directions * units), (1, 2), 3)
    for height, cropping in ((steps, sides), (directions, (at, directions - 1 - at))):
        row = plan.reshaped(row, (height, row.elements // height), (1, 2), 3)
        if any(cropping):
            shape = (1, row.shape[1])
            row = Value(
                plan.add("Cropping1D", f"{step.name}_last", (row,), shape, {"cropping": cropping}), shape, (1, 2), 3
            )
    return replace(plan.reshaped(row, (units,), (2,), 3), batch=1)


def _joined(step: NodeStep, states: Sequence[Value]) -> Value:
    """Return the states of each direction, in ONNX (1, batch, units), as one value."""
    if len(states) == 1:
        return states[0]
    shape = (len(states), *states[0].shape)
    layer = step.plan.add("Concatenate", f"{step.name}_joined", list(map(step.plan.whole, states)), shape, {"axis": 1})
    # Who reads one direction alone reads its layer.
    step.plan.joined[layer] = (1, tuple(states))
    return Value(layer, shape, (1, 2), 3, batch=1)


def _last_states(
    step: NodeStep, kind: _Kind, value: Value, settings: Mapping[str, Any], weights: Sequence[Mapping[str, Parameter]]
) -> Value:
    """Return the last states, in ONNX (directions, batch, units): a layer for each direction."""
    units, found = settings["units"], []
    for backwards, own in zip(_directions(step), weights, strict=True):
        name = f"{step.name}_backwards" if backwards and len(weights) > 1 else step.name
        given = {**settings, "go_backwards": True} if backwards else settings
        layer = step.plan.add(kind.layer, name, (value,), (units,), given, own)
        found.append(Value(layer, (units,), (2,), 3, batch=1))
    return _joined(step, found)


def _all_states(
    step: NodeStep, kind: _Kind, value: Value, settings: Mapping[str, Any], weights: Sequence[Mapping[str, Parameter]]
) -> Value:
    """Return the states of all steps, in ONNX (steps, directions, batch, units)."""
    steps, units, directions = value.shape[0], settings["units"], _directions(step)
    if directions == (False,):
        layer = step.plan.add(kind.layer, step.name, (value,), (steps, units), settings, weights[0])
        return Value(layer, (steps, units), (1, 3), 4, batch=2)
    if directions == (True,):
        step.refuse(
            "gives the states of all steps from the last to the first; wanted both directions, or its last state"
        )
    # Keras calls the two layers so.
    inner = kind.layer.lower()
    both = {
        f"{way}_{inner}/{name}": weight
        for way, own in zip(("forward", "backward"), weights, strict=True)
        for name, weight in own.items()
    }
    wrapped = {"layer": (kind.layer, {**settings, "name": inner})}
    layer = step.plan.add("Bidirectional", step.name, (value,), (steps, 2 * units), wrapped, both)
    flat = Value(layer, (steps, 2 * units), (1, 2), 3)
    return replace(step.plan.reshaped(flat, (steps, 2, units), (1, 2, 3), 4), batch=2)


def _directions(step: NodeStep) -> tuple[bool, ...]:
    """Return for each direction of the node whether it reads its steps backwards."""
    direction = step.text("direction", "forward")
    if direction not in _DIRECTIONS:
        step.refuse(f"reads its steps {direction!r}; wanted {', '.join(map(repr, _DIRECTIONS))}")
    return _DIRECTIONS[direction]


def _weights(step: NodeStep, kind: _Kind, value: Value, at: int, directions: int) -> dict[str, Parameter]:
    """Return the weights of direction `at` of the node, as a layer of Keras has them."""
    width = len(kind.blocks)
    kernel, recurrent_kernel = (_columns(step, place, width, kind.blocks, at, directions) for place in (1, 2))
    units = recurrent_kernel.values.shape[0]
    if kernel.values.shape != (value.shape[-1], width * units):
        step.refuse(
            f"has weights of shapes {step.weight(1).values.shape} and {step.weight(2).values.shape} for an input of "
            f"{value.shape[-1]} numbers a step"
        )
    after = kind.layer == "GRU" and bool(step.settings.get("linear_before_reset", 0))
    bias = _bias(step, width, units, kind.blocks, at, directions, apart=after)
    weights = {"kernel": kernel, "recurrent_kernel": recurrent_kernel}
    return weights if bias is None else {**weights, "bias": bias}


def _as_in_module(
    step: NodeStep, kind: _Kind, weights: Sequence[Mapping[str, Parameter]]
) -> list[dict[str, Parameter]]:
    """Return `weights` of each direction by name and in the layout of PyTorch.

    Exporters order the gates and join the biases.
    """
    planned = (weight for layer in step.plan.layers.values() for weight in layer.weights.values())
    taken = {name for weight in planned for name in weight.of_module}
    number = next(at for at in range(len(taken) + 1) if f"{step.module}.weight_ih_l{at}" not in taken)
    return [
        _as_in_layer(kind, one, f"{step.module}.{{}}_{{}}_l{number}{tail}")
        for one, tail in zip(weights, ("", "_reverse"), strict=False)
    ]


def _as_in_layer(kind: _Kind, weights: Mapping[str, Parameter], names: str) -> dict[str, Parameter]:
    """Return `weights` with their origins in a layer of PyTorch, whose parameters `names` spells."""
    units = weights["recurrent_kernel"].values.shape[0]
    order = _order(kind.of_torch, units)
    found = {}
    for what, letter in (("kernel", "ih"), ("recurrent_kernel", "hh")):
        inputs = weights[what].values.shape[0]
        origin = order * inputs + np.arange(inputs)[:, None]
        name = names.format("weight", letter)
        found[what] = replace(weights[what], shape=(order.size, inputs), origin=origin, of_module=(name,))
    if "bias" in weights:
        rows = np.arange(2)[:, None] * order.size + order
        spelled = tuple(names.format("bias", letter) for letter in ("ih", "hh"))
        origin = rows if weights["bias"].ndim == 2 else rows[0]
        found["bias"] = replace(weights["bias"], shape=(2, order.size), origin=origin, of_module=spelled)
    return found


def last_step(step: NodeStep, value: Value, before: Sequence[int], after: Sequence[int]) -> Value | None:
    """Cut `value` to its last step, if a recurrent layer gives it and can give that alone; else None."""
    layer = step.plan.layers[value.layer]
    shared = step.is_shared(layer.name) or step.plan.readers(layer.name)
    if layer.kind not in RECURRENT or len(layer.shape) != 2 or shared:
        return None
    steps, units = value.axes
    others = [number for axis, number in enumerate(before, 1) if axis != steps]
    if any(others) or any(after) or before[steps - 1] != layer.shape[0] - 1:
        return None
    layer.settings["return_sequences"], layer.shape = False, layer.shape[1:]
    return replace(value, shape=layer.shape, axes=(units,))


def _steps_in_order(step: NodeStep) -> Value:
    """Return the input of the node in the order (steps, numbers of a step)."""
    value = step.value_of_any_batch()
    if value.rank != 3 or value.batch != 1:
        step.refuse(
            f"reads a tensor of {value.rank} axes whose batch is axis {value.batch}; wanted (steps, batch, numbers)"
        )
    return step.plan.logical(value)


def _require_plain(step: NodeStep, value: Value) -> None:
    """Check that the node begins with zeros, and does nothing that Keras has no setting for."""
    for key in ("clip", "input_forget", "layout"):
        if step.settings.get(key, 0):
            step.refuse(f"has {key} {step.settings[key]:g}, which no layer of Keras has")
    given = dict(zip(_INPUTS, step.given, strict=False))
    lengths = given.get("sequence_lens")
    if lengths is not None and not (
        isinstance(lengths, Parameter) and (lengths.values == value.shape[0]).all() and lengths.size
    ):
        step.refuse("has lengths for its sequences; wanted all of one length")
    for what in ("initial_h", "initial_c", "peepholes"):
        found = given.get(what)
        if found is not None and not (isinstance(found, Parameter) and not found.values.any()):
            step.refuse(f"has {what}; wanted none, or zeros")
    if len(step.is_used) > 2 and step.is_used[2]:
        step.refuse("gives its cell state, which is read; use its output")


def _functions(step: NodeStep, kind: _Kind, directions: int) -> dict[str, str]:
    """Return the settings of Keras for the activation functions of the node, which all directions share."""
    named = step.settings.get("activations", kind.activations * directions)
    names = tuple(one.decode("utf-8", "replace") if isinstance(one, bytes) else str(one) for one in named)
    alphas, betas = (tuple(step.settings.get(f"activation_{key}", ())) for key in ("alpha", "beta"))
    if len(names) != len(kind.activations) * directions:
        step.refuse(f"has {len(names)} activation functions; wanted {len(kind.activations) * directions}")
    one = names[: len(kind.activations)]
    # Numbers would have to be told apart by direction.
    if names != one * directions or (directions > 1 and (alphas or betas)):
        step.refuse(f"has the activation functions {', '.join(names)}; wanted the same, without numbers, both ways")
    names = one
    # HardSigmoid alone takes numbers here, and comes first.
    if names[0] == "HardSigmoid" and len(names) > 1:
        found = (*alphas[:1], 0.2)[0], (*betas[:1], 0.5)[0]
        if not (isclose(found[0], 1 / 6, rel_tol=1e-6) and found[1] == 0.5):
            step.refuse(f"has a HardSigmoid with alpha {found[0]:g} and beta {found[1]:g}; Keras has 1/6 and 0.5")
    elif alphas or betas:
        step.refuse("gives numbers to its activation functions, which Keras does not take")
    keras = [
        _FUNCTIONS.get(name, "hard_sigmoid" if name == "HardSigmoid" and not at else "")
        for at, name in enumerate(names)
    ]
    if "" in keras or (len(names) == 3 and names[1] != names[2]):
        step.refuse(f"has the activation functions {', '.join(names)}; wanted those of Keras, one for both states")
    if kind.layer == "SimpleRNN":
        return {"activation": keras[0]}
    return {"recurrent_activation": keras[0], "activation": keras[1]}


def _columns(step: NodeStep, place: int, width: int, blocks: Sequence[int], at: int, directions: int) -> Parameter:
    """Return direction `at` of the weight (directions, gates * units, inputs) as (inputs, gates * units).

    Its gates are in the order of Keras.
    """
    weight = step.weight(place)
    shape = weight.values.shape
    if weight.ndim != 3 or shape[0] != directions or shape[1] % width or not weight.size:
        step.refuse(f"has {_INPUTS[place]} of shape {shape}; wanted {directions} direction(s) of {width} gates")
    own = weight.taken(np.array([at]), 0).reshaped(shape[1:])
    return own.taken(_order(blocks, shape[1] // width), 0).transposed((1, 0))


def _bias(
    step: NodeStep, width: int, units: int, blocks: Sequence[int], at: int, directions: int, *, apart: bool
) -> Parameter | None:
    """Return the biases of input and state of direction `at`: a row each if `apart`, else their sum; None if none."""
    if len(step.given) < 4 or step.given[3] is None:
        return None
    bias = step.weight(3)
    if bias.values.shape != (directions, 2 * width * units):
        step.refuse(f"has B of shape {bias.values.shape}; wanted {(directions, 2 * width * units)}")
    rows = bias.taken(np.array([at]), 0).reshaped((2, width * units)).taken(_order(blocks, units), 1)
    if apart:
        return rows
    # Zeros for the state leave the other bias as it is in the file.
    if not rows.values[1].any():
        return rows.moved(lambda array: array[0])
    return Parameter(rows.values.sum(0))


def _order(blocks: Sequence[int], units: int) -> Any:
    return np.concatenate([np.arange(block * units, (block + 1) * units) for block in blocks])


OPERATORS: dict[str, Operator] = dict.fromkeys(_KINDS, recurrent)
