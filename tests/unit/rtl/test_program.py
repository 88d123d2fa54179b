"""Which kernels each group of multipliers visits."""

import numpy as np
import pytest

from fpgaprune.rtl.program import Program


def kernels(seed, taps, inputs, outputs, kept):
    rng = np.random.default_rng(seed)
    return rng.integers(-9, 9, (taps, inputs, outputs)) * (rng.random((inputs, outputs)) < kept)


def computed(program, x):
    """What the groups store and the turns add up, for the values (channels, taps) of one place."""
    stored = {}
    for group in range(program.groups):
        total, slot = 0, 0
        for number in range(group * program.steps, min((group + 1) * program.steps, len(program.places))):
            total += int(program.weights[number] @ x[program.places[number, 1]])
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
    taps, inputs, outputs, groups = (int(rng.integers(1, high)) for high in (10, 9, 9, 12))
    weights = kernels(seed, taps, inputs, outputs, rng.choice([0, 0.1, 0.5, 1]))
    program = Program.of(weights, groups)
    x = rng.integers(-50, 50, (inputs, taps))
    assert computed(program, x) == np.einsum("ct,tco->o", x, weights).tolist()
    kept = int(weights.any(axis=0).sum())
    assert len(program.places) == kept
    # No group has a cycle more than its share, and none is idle.
    assert program.groups == max(1, min(groups, kept))
    assert program.steps == max(1, -(-kept // program.groups))
    assert len(program.turns) <= outputs + program.groups - 1


def test_a_quarter_of_the_kernels_takes_a_quarter_of_the_steps():
    rng = np.random.default_rng(0)
    weights = rng.integers(1, 9, (9, 16, 32))
    locked = rng.permutation(16 * 32)[: 3 * 128]
    pruned = weights.reshape(9, -1).copy()
    pruned[:, locked] = 0
    full, quarter = Program.of(weights, 3), Program.of(pruned.reshape(weights.shape), 3)
    assert (full.steps, quarter.steps) == (171, 43)
    assert full.balance < 1.01
    assert quarter.balance < 1.01


def test_a_depthwise_kernel_reads_its_own_channel():
    weights = np.array([[1, 0, 3, 4], [5, 0, 0, 8]])
    program = Program.depthwise(weights, 2)
    assert program.places.tolist() == [[0, 0], [2, 2], [3, 3]]
    assert computed(program, np.array([[1, 10], [2, 20], [3, 30], [4, 40]])) == [51, 0, 9, 336]
