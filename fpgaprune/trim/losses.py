"""`MoveLosses`: the loss after each of many moves, from the values of the chain before them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from fpgaprune.trim.chain import Chain, Floats
from fpgaprune.trim.moves import Move

# Outputs (..., N, outputs) to the loss of each batch, (...).
LossOf = Callable[[Floats], Floats]
# Numbers in the largest array at a time.
_MOST = 1 << 22


class MoveLosses:
    """The loss of a chain on samples, and after a move: a move changes one channel of one value.

    Args:
        chain: before the moves.
        x: samples (N, inputs).
        loss: of its outputs.

    Attributes:
        value: the loss before the moves.
        arriving: the input of each layer, before it is rounded, and the outputs of the last one.
    """

    def __init__(self, chain: Chain, x: Floats, loss: LossOf) -> None:
        self.chain, self.loss = chain, loss
        self.arriving: list[Floats] = []
        self._rounded: list[Floats] = []
        values = x
        for number in range(len(chain)):
            self.arriving.append(values)
            self._rounded.append(chain.types[number].rounded(values))
            values = chain.sums(number, self._rounded[-1])
        self.arriving.append(values)
        self.value = float(loss(values))

    def after(self, moves: Sequence[Move]) -> Floats:
        """Return the loss after each of `moves`, (moves,)."""
        found = np.empty(len(moves), np.float32)
        for number in range(len(self.chain) + 1):
            own = [at for at, move in enumerate(moves) if move.changes[0] == number]
            widths = [
                self.chain.kernels[at].shape[1] for at in range(min(number, len(self.chain) - 1), len(self.chain))
            ]
            size = max(1, _MOST // (len(self.arriving[0]) * max(widths)))
            for first in range(0, len(own), size):
                some = own[first : first + size]
                found[some] = self._batch(number, [moves[at] for at in some])
        return found

    def _batch(self, number: int, moves: Sequence[Move]) -> Floats:
        """Return the loss after each of `moves`, which all change a channel of the input of layer `number`."""
        channels = np.array([move.changes[1] for move in moves])
        columns = np.stack([move.values(self.chain, self.arriving, self._rounded) for move in moves])
        if number == len(self.chain):
            values = np.broadcast_to(self.arriving[-1], (len(moves), *self.arriving[-1].shape)).copy()
            values[np.arange(len(moves)), :, channels] = columns
            return self.loss(values)
        change = columns - self._rounded[number][:, channels].T
        kernel = self.chain.kernels[number]
        values = self.arriving[number + 1] + change[:, :, None] * kernel[channels][:, None, :]
        values += np.stack([move.shift(self.chain) for move in moves])[:, None, :]
        for later in range(number + 1, len(self.chain)):
            values = self.chain.sums(later, self.chain.types[later].rounded(values))
        return self.loss(values)


def loss_for(labels: np.ndarray, outputs: int, last: str) -> LossOf:
    """Return the loss of what the last Dense layer gives, before its activation.

    It is the mean cross-entropy for class numbers (N,) and for whole numbers (N, outputs) of which one in a row is 1;
    one output tells no from yes. For all else it is the mean squared error behind the activation, which is a sigmoid
    for other whole numbers of 0 and 1.

    Args:
        labels: (N,) or (N, outputs).
        outputs: of the layer.
        last: `linear`, `softmax` or `sigmoid`.
    """
    rows = labels.reshape(len(labels), -1)
    flags = np.issubdtype(labels.dtype, np.integer) and rows.min(initial=0) >= 0 and rows.max(initial=0) <= 1
    if outputs > 1 and flags and rows.shape[1] == outputs and (rows.sum(axis=1) == 1).all():
        return _cross_entropy(rows.argmax(axis=1))
    if outputs > 1 and np.issubdtype(labels.dtype, np.integer) and rows.shape[1] == 1:
        return _cross_entropy(rows[:, 0])
    if outputs == 1 and flags:
        of_logits = _cross_entropy(rows[:, 0])
        return lambda logits: of_logits(np.concatenate([np.zeros_like(logits), logits], axis=-1))
    wanted, behind = rows.astype(np.float32), "sigmoid" if flags and last == "linear" else last
    return lambda values: np.square(finished(values, behind) - wanted).mean(axis=(-2, -1))


def finished(values: Floats, last: str) -> Floats:
    """Return values of the last Dense layer, (..., outputs), behind the activation `last`."""
    if last == "linear":
        return values
    if last == "sigmoid":
        return np.float32(1) / (np.float32(1) + np.exp(-values))
    raised = np.exp(values - values.max(axis=-1, keepdims=True))
    found: Floats = raised / raised.sum(axis=-1, keepdims=True)
    return found


def _cross_entropy(labels: np.ndarray) -> LossOf:
    rows = np.arange(len(labels))

    def loss(logits: Floats) -> Floats:
        largest = logits.max(axis=-1)
        total = np.log(np.exp(logits - largest[..., None]).sum(axis=-1)) + largest
        found: Floats = (total - logits[..., rows, labels]).mean(axis=-1)
        return found

    return loss
