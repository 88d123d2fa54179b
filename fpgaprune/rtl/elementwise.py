"""Layers that compute each value on its own, as chains: activations, batch normalisation, merges of two inputs."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from fpgaprune.design import LookUp, Map, Merge, Quantise
from fpgaprune.emulate import Exact, Step, constant
from fpgaprune.errors import RtlError, UnsupportedLayerError
from fpgaprune.rtl.chain import Chain
from fpgaprune.rtl.links import Computation
from fpgaprune.rtl.number import Number
from fpgaprune.rtl.solve import Context
from fpgaprune.rtl.sums import scaled_each
from fpgaprune.rtl.tables import look_up

# A multiplier outside a DSP block takes as many LUTs as so many adders, with its memory and the way of the values there
# and back.
_ADDERS = 12
# Values that come one by one pass a border of zeros one by one too, and the layers behind pause: they get so many times
# the cycles.
_LEFT = 3


def look_up_each(context: Context, chain: Chain) -> None:
    """Look each value up in a table."""
    step = context.step
    chain.compute_lanes(step.operation(LookUp).function, lambda x: look_up(step, x), step.result)


def map_each(context: Context, chain: Chain) -> None:
    """Apply a function that comparisons and products compute to each value."""
    step = context.step
    name = step.operation(Map).function
    if name == "prelu":
        _prelu(context, chain)
    else:
        chain.compute_lanes(name, lambda x: _COMPARED[name](step, x), step.result)


def quantise(context: Context, chain: Chain) -> None:
    """Assign each value to a type of its own; if types differ between pixels, a sample becomes one beat."""
    step = context.step
    types = step.operation(Quantise).types(step.layer.output_shape)

    def repeats(lanes: int) -> bool:
        return not len(types) % lanes and types == types[:lanes] * (len(types) // lanes)

    chain.relaid(next(n for n in (chain.stream.lanes, step.layer.output_shape[-1], len(types)) if repeats(n)))
    chain.cast(types[: chain.stream.lanes], step.result)


def _prelu(context: Context, chain: Chain) -> None:
    """Compute `nnet::prelu`: one alpha for each value of a sample, from memory if the beats have different ones."""
    step = context.step
    kind, alphas = step.type("param"), step.weight("param").reshape(chain.stream.beats, chain.stream.lanes)
    channels = step.layer.output_shape[-1]
    if chain.stream.lanes == 1 and (alphas.reshape(-1, channels) == alphas[:channels, 0]).all():
        alphas = alphas[:channels]
    if (alphas == alphas[:1]).all():

        def at_once(values: list[Number]) -> list[Number]:
            products = scaled_each(values, [int(a) for a in alphas[0]], kind, context.solve)
            return [_where_positive(step, x, p) for x, p in zip(values, products, strict=True)]

        chain.compute("prelu", at_once, step.result)
        return

    def from_memory(values: list[Number], number: Number) -> list[Number]:
        columns = (alphas[:, lane].tolist() for lane in range(len(values)))
        return [
            _where_positive(step, x, x * number.looked_up(column, kind.fraction))
            for x, column in zip(values, columns, strict=True)
        ]

    chain.compute_numbered("prelu", from_memory, step.result, len(alphas))


def batch_normalization(context: Context, chain: Chain) -> None:
    """Compute `nnet::normalize`: all channels at once, or a few values at a time by the layout or where that pays.

    It pays where a sample leaves time, and a multiplier that takes scales from memory costs less than its adders.

    Raises:
        RtlError: the layout folds the layer less than once, or more often than it has channels.
    """
    layer = context.step.layer
    have, channels, turns = chain.stream.lanes, layer.output_shape[-1], context.layout.fold.get(layer.name)
    if turns is not None and not 1 <= turns <= channels:
        raise RtlError(
            f"the layout folds it {turns} times; fold it 1 to {channels} times, as it has {channels} channels"
        )
    every = channels if context.step.weight("scale").size == channels and have != 1 else have

    def in_time(lanes: int) -> bool:
        if turns is not None:
            return every <= turns * lanes
        return math.prod(layer.output_shape) // lanes * _LEFT <= context.beats

    # Some part of a beat, and of a pixel.
    few = (n for n in range(1, every) if have % n == 0 == channels % n and in_time(n))
    lanes = next(few, every)
    if lanes < every and turns is None:
        at_once = replace(chain, links=list(chain.links))
        _scaled(context, at_once, every)
        lanes = lanes if lanes * _ADDERS < _adders(at_once) else every
    if lanes < every:
        chain.notes.append(f"{lanes} of {have} values at a time, as a sample leaves time for that")
    _scaled(context, chain, lanes)


def _adders(chain: Chain) -> int:
    """Count the additions of what `chain` computes; a multiplication counts as several."""
    circuits = [link.circuit for link in chain.links if isinstance(link, Computation)]
    ops = Counter(circuit.nodes[place].op for circuit in circuits for place in circuit.alive())
    return ops["add"] + ops["sub"] + _ADDERS * ops["mul"]


def _scaled(context: Context, chain: Chain, lanes: int) -> None:
    """Scale times x plus bias, `lanes` values at a time; only the assignment to the result rounds."""
    step = context.step
    scale, bias = step.weight("scale").reshape(-1), step.weight("bias").reshape(-1)
    scale_type, bias_type = step.type("scale"), step.type("bias")
    chain.relaid(lanes)
    scales = scale.reshape(-1, lanes)
    biases = np.broadcast_to(bias, scale.shape).reshape(scales.shape)
    if (scales == scales[0]).all() and (biases == biases[0]).all():

        def by_adders(values: list[Number]) -> list[Number]:
            products = scaled_each(values, scales[0].tolist(), scale_type, context.solve)
            return [
                (p + Number.constant(p.circuit, b, bias_type.fraction)).into(step.result)
                for p, b in zip(products, biases[0].tolist(), strict=True)
            ]

        chain.compute("normalize", by_adders, step.result)
        chain.kept = int(np.count_nonzero(scale))
        chain.dropped = scale.size - chain.kept
        return

    def from_memory(values: list[Number], number: Number) -> list[Number]:
        found = []
        for lane, x in enumerate(values):
            product = x * number.looked_up(scales[:, lane].tolist(), scale_type.fraction)
            offset = number.looked_up(biases[:, lane].tolist(), bias_type.fraction)
            found.append((product + offset).into(step.result))
        return found

    chain.compute_numbered("normalize", from_memory, step.result, len(scales))
    chain.kept, chain.dropped = scale.size, 0


def merge(context: Context, chain: Chain) -> None:
    """Merge two inputs: their values stand side by side in a beat, and each two become one value."""
    step = context.step
    name = step.operation(Merge).function
    if name not in _MERGES:
        raise UnsupportedLayerError(f"merge {name!r} has no Verilog; those that have: {', '.join(_MERGES)}")
    operation = _MERGES[name]

    def merged(values: list[Number]) -> list[Number]:
        half = len(values) // 2
        return [operation(step, a, b) for a, b in zip(values[:half], values[half:], strict=True)]

    chain.compute(name, merged, step.result)


def concatenate(context: Context, chain: Chain) -> None:
    """Assign both inputs, whose streams `pair` has joined, to the result."""
    chain.assign(context.step.result)


def _constant(x: Number, value: Exact) -> Number:
    return Number.constant(x.circuit, int(value.integers().reshape(-1)[0]), value.fraction)


def _relu_max(limit: int) -> Callable[[Step, Number], Number]:
    def relu_max(step: Step, x: Number) -> Number:
        whole = x.at_fraction(max(x.fraction, 0))
        return whole.clipped(0, limit << whole.fraction).into(step.result)

    return relu_max


def _leaky_relu(step: Step, x: Number) -> Number:
    return _where_positive(step, x, _constant(x, constant(step.operation(Map).parameter, step.type("param"))) * x)


def _thresholded_relu(step: Step, x: Number) -> Number:
    above = _constant(x, constant(step.operation(Map).parameter, step.type("param"))).less(x)
    return x.chosen(above, Number.constant(x.circuit, 0, x.fraction)).into(step.result)


def _where_positive(step: Step, x: Number, other: Number) -> Number:
    positive = x.circuit.less(x.circuit.const(0), x.place)
    return x.into(step.result).chosen(positive, other.into(step.result))


# Functions that comparisons and products compute.
_COMPARED: Mapping[str, Callable[[Step, Number], Number]] = {
    "linear": lambda step, x: x.into(step.result),
    "relu": lambda step, x: x.on(x.circuit.larger(x.place, x.circuit.const(0))).into(step.result),
    "relu6": _relu_max(6),
    "leaky_relu": _leaky_relu,
    "thresholded_relu": _thresholded_relu,
}

_MERGES: Mapping[str, Callable[[Step, Number, Number], Number]] = {
    "add": lambda step, a, b: (a + b).into(step.result),
    "subtract": lambda step, a, b: (a - b).into(step.result),
    "multiply": lambda step, a, b: (a * b).into(step.result),
    "average": lambda step, a, b: (a + b).scaled(-1).into(step.result),
    "maximum": lambda step, a, b: a.into(step.result).chosen(b.less(a), b.into(step.result)),
    "minimum": lambda step, a, b: a.into(step.result).chosen(a.less(b), b.into(step.result)),
}
