"""The smallest network that selection leaves: an eighth of each layer's channels, from the input to the output.

For example, two of 16 channels stay alive. Each keeps its best kernel that reads a living channel, and a living filter
keeps a kernel that reads it: so a path of free kernels leads through every layer.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fpgaprune.network import ChannelAxes, Flags, FlatStep, Groups, Ids, Network, groups_of, network_of, weights_of
from fpgaprune.select.units import Partition

if TYPE_CHECKING:
    import keras

Scores = NDArray[np.float64]


@dataclass(frozen=True)
class _Pairs:
    """Each pair of an input and an output channel of one weight.

    Attributes:
        reads: group of the input channel.
        makes: group of the output channel.
        units: the best unit that touches the pair.
        scores: score of this unit; -inf if all units of the pair are locked.
    """

    reads: Ids
    makes: Ids
    units: Ids
    scores: Scores


def skeleton(
    model: keras.Model,
    partitions: Mapping[str, Partition],
    axes: Mapping[str, ChannelAxes],
    scores: Mapping[str, Scores],
    locked: Mapping[str, Flags],
    share: float,
) -> dict[str, Flags]:
    """Return for each weight the units that must stay free so that `share` of each layer's channels stays alive.

    At least one channel of each layer stays alive, and every output channel of the model. A layer that cannot be read
    in the model's graph is treated alone. Units that are locked already cannot be chosen.

    Args:
        model: a Keras model.
        partitions: weight path to its units.
        axes: weight path to its channel axes.
        scores: weight path to the score of each unit.
        locked: weight path to whether a unit is locked already.
        share: of the output channels of each layer, 0..1; 0 keeps none.
    """
    kept = {path: np.zeros(partition.count, dtype=bool) for path, partition in partitions.items()}
    if share <= 0:
        return kept
    network = network_of(model)
    channels = Groups({}, {}, 0) if network is None else groups_of(network)
    # One more group stands for unknown channels, which are alive.
    count = channels.count + 1
    pairs: dict[str, _Pairs] = {}
    steps = {} if network is None else network.by_layer
    known_weights = weights_of(model)
    for path, partition in partitions.items():
        if len(partition.shape) < 2 or path.endswith("/recurrent_kernel"):
            continue
        found = _pairs(partition, axes[path], scores[path], locked[path])
        known = _named(found, steps.get(id(known_weights[path].layer), []), channels)
        if known is None:
            known = _Pairs(np.full_like(found.reads, channels.count), found.makes + count, found.units, found.scores)
            count += int(found.makes.max()) + 1
        pairs[path] = known
    stays = _staying(network, channels, pairs, share, count)
    alive = np.ones(count, dtype=bool)
    for of_one in pairs.values():
        alive[of_one.makes] = False
    alive |= stays
    for path, of_one in pairs.items():
        fed = _best(of_one.makes, stays, alive[of_one.reads], of_one.scores)
        # A kernel that feeds a channel also reads one, so this one has its reader.
        read = np.zeros(count, dtype=bool)
        read[of_one.reads[fed]] = True
        reading = _best(of_one.reads, stays & ~read, stays[of_one.makes], of_one.scores)
        kept[path][of_one.units[np.concatenate([fed, reading])]] = True
    return kept


def _pairs(partition: Partition, axes: ChannelAxes, scores: Scores, locked: Flags) -> _Pairs:
    """Return the pairs of one weight; its groups are the numbers of its channels."""
    ndim = len(partition.shape)
    both = tuple(sorted({axis % ndim for axis in axes.kernel}))
    numbers = []
    for own in (axes.inputs, axes.outputs):
        mine = {axis % ndim for axis in own}
        small = tuple(size if axis in mine else 1 for axis, size in enumerate(partition.shape) if axis in both)
        numbers.append(np.arange(math.prod(small), dtype=np.intp).reshape(small))
    sides = tuple(size for axis, size in enumerate(partition.shape) if axis in both)
    reads, makes = (np.broadcast_to(number, sides).ravel() for number in numbers)
    # The units at the positions of each pair; an axis along which labels do not vary needs only one position.
    wide = tuple(size if axis in both else partition.labels.shape[axis] for axis, size in enumerate(partition.shape))
    labels = np.moveaxis(np.broadcast_to(partition.labels, wide), both, range(len(both))).reshape(len(reads), -1)
    free = np.where(locked, -np.inf, scores)
    units = labels[:, 0]
    if labels.shape[1] > 1:
        units = labels[np.arange(len(labels)), np.argmax(free[labels], axis=1)]
    return _Pairs(reads, makes, units, free[units])


def _named(pairs: _Pairs, steps: list[FlatStep], channels: Groups) -> _Pairs | None:
    """Return the pairs with the numbers of the model's groups; None for a layer without a rule."""
    if not steps or steps[0].path not in channels.made:
        return None
    step = steps[0]
    inputs, outputs = channels.tensors[step.inputs[0]], channels.made[step.path]
    reads, n_out = pairs.reads, int(pairs.makes.max()) + 1
    groups = int(getattr(step.layer, "groups", 1) or 1)
    if groups > 1:
        reads = reads + pairs.makes // (n_out // groups) * (len(inputs) // groups)
    if n_out % len(outputs) or int(reads.max()) >= len(inputs):
        return None
    # A recurrent weight makes the same channels once for each gate.
    return _Pairs(inputs[reads], np.tile(outputs, n_out // len(outputs))[pairs.makes], pairs.units, pairs.scores)


def _staying(network: Network | None, channels: Groups, pairs: Mapping[str, _Pairs], share: float, count: int) -> Flags:
    """Return the groups that stay alive: the best of each layer; groups that other layers chose count first."""
    stays = np.zeros(count, dtype=bool)
    value, possible = np.zeros(count), np.ones(count, dtype=bool)
    layers = [np.unique(ids) for ids in channels.made.values()]
    for of_one in pairs.values():
        pairs_of = np.bincount(of_one.makes, minlength=count)
        mine = np.flatnonzero(pairs_of)
        if mine[0] > channels.count:
            layers.append(mine)
        free = of_one.scores > -np.inf
        possible[mine[np.bincount(of_one.makes[free], minlength=count)[mine] == 0]] = False
        sums = np.bincount(of_one.makes, weights=np.where(free, of_one.scores, 0), minlength=count)
        mean = sums / np.maximum(pairs_of, 1)
        value += mean / (np.abs(mean[mine]).mean() or 1.0)
    if network is not None:
        for tensor in network.outputs:
            stays[channels.tensors[tensor]] = True
    for mine in layers:
        missing = math.ceil(share * len(mine)) - int(stays[mine].sum())
        rest = mine[~stays[mine] & possible[mine]]
        if missing > 0:
            stays[rest[np.argsort(-value[rest], kind="stable")[:missing]]] = True
    return stays


def _best(groups: Ids, wanted: Flags, fits: Flags, scores: Scores) -> Ids:
    """Return each wanted group's best free pair that fits, else its best free pair; of equals the last."""
    found = np.full(len(wanted), -1, dtype=np.intp)
    possible = wanted[groups] & (scores > -np.inf)
    for rows in (np.flatnonzero(possible & fits), np.flatnonzero(possible & ~fits)):
        rows = rows[found[groups[rows]] < 0]
        best = np.full(len(wanted), -np.inf)
        np.maximum.at(best, groups[rows], scores[rows])
        rows = rows[scores[rows] == best[groups[rows]]]
        found[groups[rows]] = rows
    return found[found >= 0]
