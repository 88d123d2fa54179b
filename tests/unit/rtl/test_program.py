"""Which kernels each group of multipliers visits."""

import numpy as np
import pytest

from fpgaprune.rtl import Program


def kernels(seed, taps, inputs, outputs, kept):
    rng = np.random.default_rng(seed)
    return rng.integers(-9, 9, (taps, inputs, outputs)) * (rng.random((inputs, outputs)) < kept)


def computed(program, x):
    """What the groups store and the turns add up, for the values (channels, taps) of one place."""
    stored = {}
    for group in range(program.groups):
        total, slot = 0, 0
        for number in range(group * program.steps, min((group + 1) * program.steps, len(program.places))):
            channel, part = divmod(int(program.places[number, 1]), program.split)
            total += int(program.weights[number] @ x[channel][part * program.taps : (part + 1) * program.taps])
            if program.lasts[number]:
                stored[group, slot] = total
                total, slot = 0, slot + 1
    found, total = [], 0
    for turn in program.turns:
        total += 0 if turn.nothing else stored.pop((turn.group, turn.slot))
        if turn.last:
            found.append(total)
            total = 0
    assert not stored
    return found


@pytest.mark.parametrize("seed", range(40))
def test_every_sum_is_that_of_the_kernels_kept(seed):
    rng = np.random.default_rng(seed)
    taps, inputs, outputs, multipliers = (int(rng.integers(1, high)) for high in (13, 9, 9, 60))
    weights = kernels(seed, taps, inputs, outputs, rng.choice([0, 0.1, 0.5, 1]))
    program = Program.of(weights, multipliers)
    x = rng.integers(-50, 50, (inputs, taps))
    assert computed(program, x) == np.einsum("ct,tco->o", x, weights).tolist()
    kept = int(weights.reshape(program.split, -1, inputs, outputs).any(axis=1).sum())
    assert len(program.places) == kept
    # No group has a cycle more than its share, and none is idle.
    assert program.groups <= max(1, kept)
    assert program.multipliers <= multipliers
    assert program.steps == max(1, -(-kept // program.groups))
    assert len(program.turns) <= outputs + program.groups - 1


@pytest.mark.parametrize(
    ("taps", "multipliers", "split", "groups"),
    [
        (9, 30, 1, 3),
        (9, 17, 9, 17),
        (9, 15, 3, 5),
        (9, 13, 3, 4),
        (9, 10, 1, 1),
        (9, 9, 1, 1),
        (9, 8, 9, 8),
        (9, 6, 3, 2),
        (9, 3, 3, 1),
        (9, 2, 9, 2),
        (40, 12, 10, 3),
        (40, 10, 4, 1),
        (7, 3, 7, 3),
        (1, 5, 1, 5),
    ],
)
def test_few_multipliers_take_a_kernel_part_by_part(taps, multipliers, split, groups):
    program = Program.of(np.ones((taps, 4, 4), np.int64), multipliers)
    assert (program.split, program.groups, program.taps) == (split, groups, taps // split)


def test_a_quarter_of_the_kernels_takes_a_quarter_of_the_steps():
    rng = np.random.default_rng(0)
    weights = rng.integers(1, 9, (9, 16, 32))
    locked = rng.permutation(16 * 32)[: 3 * 128]
    pruned = weights.reshape(9, -1).copy()
    pruned[:, locked] = 0
    full, quarter = Program.of(weights, 27), Program.of(pruned.reshape(weights.shape), 27)
    assert (full.steps, quarter.steps) == (171, 43)
    assert full.balance < 1.01
    assert quarter.balance < 1.01


def test_a_depthwise_kernel_reads_its_own_channel():
    weights = np.array([[1, 0, 3, 4], [5, 0, 0, 8]])
    x = np.array([[1, 10], [2, 20], [3, 30], [4, 40]])
    program = Program.depthwise(weights, 4)
    assert program.places.tolist() == [[0, 0], [2, 2], [3, 3]]
    assert computed(program, x) == [51, 0, 9, 336]
    program = Program.depthwise(weights, 1)
    assert program.places.tolist() == [[0, 0], [0, 1], [2, 4], [3, 6], [3, 7]]
    assert computed(program, x) == [51, 0, 9, 336]
