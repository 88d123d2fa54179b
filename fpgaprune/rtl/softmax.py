"""Softmax layers as chains: the exponentials and the inverse of their sum come from tables."""

from __future__ import annotations

from fpgaprune.emulate import Exact, difference_type, exponentials_of, inverses_of, sum_type_of
from fpgaprune.rtl.chain import Chain
from fpgaprune.rtl.number import Number, in_pairs
from fpgaprune.rtl.solve import Context
from fpgaprune.rtl.sums import summed
from fpgaprune.values import FixedType


def softmax(context: Context, chain: Chain) -> None:
    """`nnet::softmax_stable` over the values of a beat."""
    step = context.step
    chain.relaid(step.layer.output_shape[-1])
    norm, accum, sum_type = difference_type(step), step.type("accum"), sum_type_of(step)

    def normalised(values: list[Number]) -> list[Number]:
        top = in_pairs(values, Number.larger)
        exponentials = _table(exponentials_of(step).into(accum))
        powers = [_at_top_bits((top - value).into(norm), norm, *exponentials) for value in values]
        total = summed(powers, accum, tree=True).into(sum_type)
        inverse = _at_top_bits(total, sum_type, *_table(inverses_of(step)))
        return [(power * inverse).into(step.result) for power in powers]

    chain.compute("softmax", normalised, step.result)


def _table(values: Exact) -> tuple[tuple[int, ...], int]:
    """The raw entries of a table, and their fraction bits."""
    return tuple(values.integers().reshape(-1).tolist()), values.fraction


def _at_top_bits(x: Number, kind: FixedType, entries: tuple[int, ...], fraction: int) -> Number:
    """The entry of a table at the index in the highest bits of `x`, a value of type `kind`."""
    circuit = x.circuit
    bits = len(entries).bit_length() - 1
    place = circuit.wrap(circuit.shr(x.place, kind.width - bits), bits, signed=False)
    return Number(circuit, place, 0).looked_up(entries, fraction)
