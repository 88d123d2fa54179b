"""Streams whose values have widths of their own: only the bits that tell values apart, and the same numbers."""

import numpy as np
import pytest

from fpgaprune.emulate import emulate, raw_of_real
from fpgaprune.rtl import Chain, Circuit, Computation, Lane, Number, Stream, scaled_each, share
from fpgaprune.values import FixedType
from tests.unit.emulate.test_quantise import INPUT, WIDEST, quantiser

KINDS = [FixedType(3, 1, False), FixedType(4, 3, True, "RND", "SAT"), None, FixedType(1, 1)]


def test_a_lane_has_the_bits_that_tell_its_values_apart():
    assert [Lane(*row).width for row in ((0, 7, 0), (0, 12, 2), (-8, 7, 0), (-8, 4, 2), (0, 0, 0), (-1, 0, 0))] == [
        *(3, 2, 4, 2, 0, 1)
    ]


def values_of(links, x):
    """What a row of computations makes of raw values (samples, lanes)."""
    for link in links:
        assert isinstance(link, Computation)
        columns = np.split(x, link.copies, axis=1)
        parts = [np.stack(link.circuit.evaluate(list(part.T)), axis=1) for part in columns]
        x = np.concatenate(parts, axis=1)
    return x


@pytest.mark.parametrize("packed", [False, True])
def test_a_cast_packs_and_unpacks_to_the_numbers_of_the_emulator(packed):
    x = (np.random.default_rng(0).integers(-(1 << 13), 1 << 13, (200, 4)) / 256).astype(np.float32)
    design = quantiser(KINDS, range(4), (1, 4))
    chain = Chain.begin(Stream.of((1, 4), INPUT))
    chain.cast(KINDS, WIDEST)
    if packed:
        chain.pack()
        assert chain.stream.bits == chain.links[-1].after == 3 + 4 + 0 + 1
        assert chain.stream.beside(2) == chain.stream.each * 2
        chain.unpack()
    assert chain.stream.bits == 4 * WIDEST.width
    assert [lane.zeros for lane in chain.stream.each] == [14, 15, 0, 16]
    found = WIDEST.to_float(values_of(chain.links, raw_of_real(x.astype(np.float64), INPUT)))
    np.testing.assert_array_equal(found, emulate(design, x.reshape(-1, 1, 4)).reshape(-1, 4))


def test_what_changes_values_forgets_what_was_known_of_each():
    for change in (Chain.accumulate, lambda chain: chain.scatter(2), lambda chain: chain.assign(FixedType(8, 4))):
        chain = Chain.begin(Stream.of((3, 4), INPUT))
        chain.cast(KINDS, WIDEST)
        chain.pack()
        change(chain)
        assert chain.stream.each is None or [lane.width for lane in chain.stream.each] == [3, 4, 0, 1]
        assert not chain.stream.packed


def test_products_leave_out_the_bits_that_are_always_zero():
    circuit = Circuit()
    values = [
        Number(circuit, circuit.shl(circuit.input(4, True, -8, 7), 3), 5),
        Number(circuit, circuit.const(0), 5),
        Number(circuit, circuit.input(5, False, 0, 31), 5),
    ]
    solved = []

    def solve(matrix, low, high):
        solved.append(matrix)
        return share(matrix)

    products = scaled_each(values, [3, 7, -5], FixedType(8, 8), solve)
    # No adder is looked for that the constant would share.
    np.testing.assert_array_equal(solved[0], [[24, 0, 0], [0, 0, 0], [0, 0, -5]])
    for product in products:
        circuit.output(product.place, 20)
    a, b = np.arange(-8, 8), np.arange(16) * 2
    found = circuit.evaluate([a, b])
    np.testing.assert_array_equal(np.broadcast_arrays(*found), [a * 8 * 3, 0 * a, b * -5])
    # The factor 3 takes one adder of the short value.
    adders = [circuit.nodes[place] for place in circuit.alive() if circuit.nodes[place].op in ("add", "sub")]
    assert min(node.width for node in adders) < 8
