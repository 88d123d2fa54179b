"""Softmax layers as chains: the exponentials and the inverse of their sum come from tables."""

from __future__ import annotations

import math

from fpgaprune.design import Softmax
from fpgaprune.emulate import Exact, Step, difference_type, exponentials_of, inverses_of, sum_type_of
from fpgaprune.errors import UnsupportedLayerError
from fpgaprune.rtl.chain import Chain
from fpgaprune.rtl.number import Number, in_pairs
from fpgaprune.rtl.solve import Context
from fpgaprune.rtl.sums import summed
from fpgaprune.values import FixedType

_VARIANTS = ("stable", "latency", "argmax")


def softmax(context: Context, chain: Chain) -> None:
    """`nnet::softmax` over the values of a beat, or over an axis of the whole tensor."""
    step = context.step
    name = step.operation(Softmax).variant
    if name not in _VARIANTS:
        raise UnsupportedLayerError(
            f"softmax implementation {name!r} has no Verilog; those that have: {', '.join(_VARIANTS)}. Choose one of "
            "them, or leave the softmax out: the largest logit names the same class"
        )
    shape = step.layer.output_shape
    inner, outer = step.operation(Softmax).inner, step.operation(Softmax).outer
    members = math.prod(shape) // (outer * inner)
    if inner == 1 and members % shape[-1] == 0 and members == shape[-1]:
        chain.relaid(shape[-1])
    else:
        chain.gather(chain.stream.beats)

    def normalised(values: list[Number]) -> list[Number]:
        found: list[Number | None] = [None] * len(values)
        for start in range(0, len(values), members * inner):
            for offset in range(inner):
                places = range(start + offset, start + members * inner, inner)
                for place, value in zip(places, _one(step, name, [values[p] for p in places]), strict=True):
                    found[place] = value
        return [value for value in found if value is not None]

    chain.compute("softmax", normalised, step.result)


def _one(step: Step, name: str, values: list[Number]) -> list[Number]:
    if name == "argmax":
        return _argmax(step, values)
    if name == "latency":
        return _normalised(step, values, step.sources[0].types["result"], negative=False)
    norm = difference_type(step)
    top = in_pairs(values, Number.larger)
    return _normalised(step, [(top - value).into(norm) for value in values], norm, negative=True)


def _normalised(step: Step, values: list[Number], address: FixedType, negative: bool) -> list[Number]:
    accum, sum_type = step.type("accum"), sum_type_of(step)
    exponentials = _table(exponentials_of(step, address, negative).into(accum))
    powers = [_at_top_bits(value, address, *exponentials) for value in values]
    total = summed(powers, accum, tree=True).into(sum_type)
    inverse = _at_top_bits(total, sum_type, *_table(inverses_of(step)))
    return [(power * inverse).into(step.result) for power in powers]


def _table(values: Exact) -> tuple[tuple[int, ...], int]:
    """The raw entries of a table, and their fraction bits."""
    return tuple(values.integers().reshape(-1).tolist()), values.fraction


def _at_top_bits(x: Number, kind: FixedType, entries: tuple[int, ...], fraction: int) -> Number:
    """The entry of a table at the index in the highest bits of `x`, a value of type `kind`."""
    circuit = x.circuit
    bits = len(entries).bit_length() - 1
    place = circuit.wrap(circuit.shr(x.place, kind.width - bits), bits, signed=False)
    return Number(circuit, place, 0).looked_up(entries, fraction)


def _argmax(step: Step, values: list[Number]) -> list[Number]:
    top = in_pairs(values, Number.larger)
    circuit = top.circuit
    zero, one = Number.constant(circuit, 0, 0), Number.constant(circuit, 1, 0)
    before, found = circuit.const(0), []
    for value in values:
        # The result is one for the first value that equals the largest, and zero for all others.
        lower = value.less(top)
        is_first = circuit.select(before, circuit.const(0), circuit.select(lower, circuit.const(0), circuit.const(1)))
        before = circuit.select(before, circuit.const(1), is_first)
        found.append(one.chosen(is_first, zero).into(step.result))
    return found
