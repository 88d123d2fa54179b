"""`trimmed`: takes bits and weights from a chain, first those that cost least loss for each look-up table saved."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from fpgaprune.trim.chain import Chain, Floats
from fpgaprune.trim.losses import LossOf, MoveLosses
from fpgaprune.trim.moves import moves_of
from fpgaprune.trim.unit_price import Fabric, UnitPrices

# Moves at once, as a share of the weights that are not zero; several that change the same channel are not.
_AT_ONCE = 1 / 60
# Of the moves of a round, so many times more are tried.
_TRIED = 3
# A move may raise the loss by so many times what it does alone.
_WORSE = 1.5
# Of a loss in float32, as a share.
_ROUNDING = 1e-6
# Look-up tables that are a rounding error of a sum.
_NOTHING = 1e-6
# The search ends when a chain takes this share of the look-up tables of the smallest one that is good enough: on few
# samples, a chain may lose too much and a smaller one not.
_AHEAD = 0.8


@dataclass(frozen=True)
class Trimmed:
    """A chain with fewer bits.

    Attributes:
        chain: the chain; None if none on the way is good enough.
        tables: about how many look-up tables it takes, sharing left out.
        before: the same before the search.
        rounds: of the search.
    """

    chain: Chain | None
    tables: float
    before: float
    rounds: int


def trimmed(
    chain: Chain,
    batches: Iterator[tuple[Floats, LossOf]],
    keeps: Callable[[Chain], bool],
    fabric: Fabric,
    tell: Callable[[float], None] = lambda _: None,
) -> Trimmed:
    """Return the smallest chain on the way down from `chain` that `keeps` what it should.

    Each round makes the moves that raise the loss least for each look-up table that they save, and some that lower the
    loss and take none.

    Args:
        chain: the network.
        batches: endless; samples (N, inputs) on which a round finds the loss of its moves, and the loss of the outputs.
        keeps: whether a chain is good enough.
        fabric: what a look-up table does.
        tell: called each round with the share of the look-up tables that are left.
    """
    arriving, now = chain.types[0], chain.without_dead()
    best = now if keeps(now) else None
    first = least = UnitPrices(now, fabric, arriving).total
    rounds, price = 0, first
    while price >= _AHEAD * least:
        changed = _next(UnitPrices(now, fabric, arriving), *next(batches))
        if changed is None:
            break
        now, rounds = changed, rounds + 1
        price = UnitPrices(now, fabric, arriving).total
        tell(price / first)
        if keeps(now):
            best, least = now, price
    return Trimmed(best, least, first, rounds)


def _next(prices: UnitPrices, x: Floats, loss: LossOf) -> Chain | None:
    """Return the chain of `prices` after a round; None where no move saves anything."""
    chain = prices.chain
    losses = MoveLosses(chain, x, loss)
    moves = list(moves_of(chain, losses.arriving))
    rise = losses.after(moves) - losses.value
    saved = np.array([prices.total - prices.after(move.apply(chain)) for move in moves])
    saves, mends = saved > _NOTHING, (np.abs(saved) <= _NOTHING) & (rise < 0)
    if not saves.any():
        return None
    count = max(1, round(_AT_ONCE * sum(np.count_nonzero(kernel) for kernel in chain.kernels)))
    # What lowers the loss and saves too comes first, the largest first.
    order = np.where(rise < 0, rise * np.maximum(saved, 1), rise / np.maximum(saved, _NOTHING))
    value = losses.value
    taken: set[tuple[int, int]] = set()
    for chosen, by in ((saves, order), (mends, rise)):
        places = np.flatnonzero(chosen)
        places = places[np.argsort(by[places], kind="stable")]
        left = count
        for at in places[: _TRIED * count]:
            if not left or moves[at].changes in taken:
                continue
            changed = moves[at].apply(chain)
            after = float(loss(changed.outputs(x)))
            # Moves of one round may undo or repeat one another.
            if after - value <= max(rise[at] * _WORSE, 0) + _ROUNDING * abs(value):
                chain, value, left = changed, after, left - 1
                taken.add(moves[at].changes)
    return chain.without_dead()
