"""The last phase trains the neighbours of the best network for long, if there is time for some of them."""

import time
from types import SimpleNamespace

import pytest

from fpgaprune.fit.knobs import Knobs
from fpgaprune.fit.limits import Limits
from fpgaprune.fit.phases import Phases
from fpgaprune.fit.ranking import Ranking
from fpgaprune.fit.single_layers import SingleLayers
from fpgaprune.fit.training import Training
from tests.unit.fit.made_up import LIMIT, Prices, made

TOLERANCE = (0.6, 3, 3)
TRAINING = Training(1, 1, 3)


class EnoughError(Exception):
    """One network is enough for the test."""


class Made(Prices):
    def single_layers(self, point):
        return SingleLayers({}, ())


@pytest.mark.parametrize(("seconds", "left", "epochs"), [(0.0, 1.0, 3), (1.0, 10.0, 3), (1.0, 8.0, 1)])
def test_neighbours_are_trained_for_long_where_there_is_time_for_three(seconds, left, epochs):
    points, asked = {}, []
    for sparsity in (0.0, 0.35, 0.5):
        for bits in (8, 6, 4):
            knobs = Knobs("weight", sparsity, bits, 8)
            points[knobs] = made(knobs, Prices().fastest(knobs), TOLERANCE)

    def judge(job):
        asked.append(job[1])
        raise EnoughError

    deadline = time.monotonic() + left
    trials = SimpleNamespace(job=lambda knobs, laid, passes, good: (knobs, passes), judge=judge, impossible={})
    ranking = Ranking(Limits(max_loss=LIMIT, latency_us=10.0), 5.0)
    log = SimpleNamespace(
        at=lambda _: deadline, ranking=ranking, points=points, begin=lambda _: None, end=lambda *_: None
    )
    names = ("sparsity", "weight_bits", "activation_bits")
    phases = Phases(trials, Made(), log, names, [], TRAINING)
    phases._slowest[TRAINING.whole] = seconds
    with pytest.raises(EnoughError):
        phases.look_around()
    assert asked == [epochs]
