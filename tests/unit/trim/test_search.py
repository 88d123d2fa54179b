"""Trimming: the loss and the price of a move are those of the network after it, locks stay, and limits hold."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fpgaprune.trim import Chain, ChannelTypes, Fabric, MoveLosses, UnitPrices, loss_for, moves_of, trimmed

FABRICS = (Fabric(2, 4), Fabric(3, 6))


def whole(values):
    """A loss without rounding: every number counts by its place, in steps of 2**-12."""
    rows = np.arange(values.shape[-2] * values.shape[-1], dtype=np.float64).reshape(values.shape[-2:])
    return np.einsum("...nc,nc->...", values.astype(np.float64) * 4096, rows % 97)


@st.composite
def chains(draw):
    """Two or three layers of powers of two, some of them zero, with types of 1 to 4 bits."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    sizes = draw(st.lists(st.integers(2, 5), min_size=3, max_size=4))
    kernels, biases, types = [], [], []
    for number, (rows, columns) in enumerate(pairwise(sizes)):
        signs = rng.choice([-1.0, 0.0, 1.0], (rows, columns))
        kernels.append((signs * 2.0 ** rng.integers(-2, 2, (rows, columns))).astype(np.float32))
        biases.append((rng.integers(-8, 8, columns) / 8).astype(np.float32))
        width = rng.integers(1, 5, rows)
        types.append(ChannelTypes(width, rng.integers(0, 3, rows), number == 0, number > 0))
    x = (rng.integers(-64, 64, (6, sizes[0])) / 32).astype(np.float32)
    return Chain(tuple(kernels), tuple(biases), tuple(types)), x


@settings(max_examples=40, deadline=None)
@given(chains(), st.sampled_from(FABRICS))
def test_loss_and_price_of_a_move_are_those_of_the_chain_after_it(drawn, fabric):
    chain, x = drawn
    chain = chain.without_dead()
    losses, prices = MoveLosses(chain, x, whole), UnitPrices(chain, fabric, chain.types[0])
    moves = list(moves_of(chain, losses.arriving))
    after = losses.after(moves)
    assert losses.value == whole(chain.outputs(x))
    for move, loss in zip(moves, after, strict=True):
        changed = move.apply(chain)
        # Stored as float32.
        assert loss == np.float32(whole(changed.outputs(x))), move
        told = prices.after(changed)
        assert told == pytest.approx(UnitPrices(changed, fabric, chain.types[0]).total), move


@settings(max_examples=40, deadline=None)
@given(chains())
def test_what_nothing_reads_does_not_change_the_outputs(drawn):
    chain, x = drawn
    assert np.array_equal(chain.without_dead().outputs(x), chain.outputs(x))


def digits(seed=0):
    """A chain of which one input decides, and labels that follow from it."""
    rng = np.random.default_rng(seed)
    x = (rng.integers(-8, 8, (400, 6)) / 8).astype(np.float32)
    labels = (x[:, 2] > 0).astype(np.int64)
    first = (rng.choice([-0.25, 0.25], (6, 5))).astype(np.float32)
    first[0] = 0
    first[2] = 2
    second = np.array([[-1, 1]] * 5, np.float32)
    types = (
        ChannelTypes(np.full(6, 5), np.full(6, 1), True, False),
        ChannelTypes(np.full(5, 4), np.full(5, 2), False),
    )
    return Chain((first, second), (np.zeros(5, np.float32), np.array([1, 0], np.float32)), types), x, labels


def share_right(chain, x, labels):
    return float((chain.outputs(x).argmax(-1) == labels).mean())


def endless(x, labels):
    while True:
        yield x, loss_for(labels, 2, "linear")


@pytest.mark.parametrize("fabric", FABRICS)
def test_a_network_that_needs_one_input_becomes_small_within_its_limit(fabric):
    chain, x, labels = digits()
    before = share_right(chain, x, labels)
    told = []
    found = trimmed(
        chain, endless(x, labels), lambda now: share_right(now, x, labels) >= before - 0.01, fabric, told.append
    )
    assert share_right(found.chain, x, labels) >= before - 0.01
    assert found.tables < found.before / 4
    assert found.rounds == len(told)
    for was, now in zip(chain.kernels, found.chain.kernels, strict=True):
        assert not now[was == 0].any()


def test_a_chain_that_may_lose_nothing_stays_as_good():
    chain, x, labels = digits(1)
    outputs = chain.outputs(x)
    found = trimmed(chain, endless(x, labels), lambda now: np.array_equal(now.outputs(x), outputs), Fabric())
    assert np.array_equal(found.chain.outputs(x), outputs)
    assert trimmed(chain, endless(x, labels), lambda now: False, Fabric()).chain is None


def test_what_bits_take_away_on_average_is_part_of_the_biases():
    chain, x, _ = digits()
    # Odd steps alone: a cut takes a step of each value.
    x = x + np.float32(1 / 16)
    (cut,) = (move for move in moves_of(chain, [x]) if move.changes == (0, 2) and not move.integer)
    assert cut.lost == 1 / 16
    assert np.array_equal(cut.apply(chain).outputs(x), chain.outputs(x))
    plain = chain.with_types(0, cut.apply(chain).types[0])
    assert not np.array_equal(plain.outputs(x), chain.outputs(x))


def test_losses_are_cross_entropy_and_squared_error():
    logits = np.array([[2.0, 0.0], [0.0, 1.0]], np.float32)
    wanted = float(np.log1p(np.exp([-2.0, -1.0])).mean())
    assert loss_for(np.array([0, 1]), 2, "softmax")(logits) == pytest.approx(wanted)
    assert loss_for(np.array([0, 1]), 1, "sigmoid")(np.array([[-2.0], [1.0]], np.float32)) == pytest.approx(wanted)
    error = loss_for(np.array([[1.0], [0.0]], np.float32), 1, "linear")(np.array([[3.0], [0.0]], np.float32))
    assert error == pytest.approx(2.0)
    one_hot = loss_for(np.array([[1, 0], [0, 1]]), 2, "linear")
    assert one_hot(logits) == pytest.approx(wanted)
    several = loss_for(np.array([[1, 1], [0, 0]]), 2, "linear")
    assert several(np.array([[50.0, 50.0], [-50.0, -50.0]], np.float32)) == pytest.approx(0.0)
    assert several(np.zeros((2, 2), np.float32)) == pytest.approx(0.25)
    counted = loss_for(np.array([3, 0]), 1, "linear")
    assert counted(np.array([[3.0], [2.0]], np.float32)) == pytest.approx(2.0)
    half = loss_for(np.array([[0.5]], np.float32), 1, "sigmoid")(np.zeros((1, 1), np.float32))
    assert half == pytest.approx(0.0)
