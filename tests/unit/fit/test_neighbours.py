"""The outlook on a made-up network: it finds what a descent leaves, and asks for little that fails."""

from dataclasses import replace
from itertools import product, starmap

import numpy as np
import pytest
from msgspec import structs

from fpgaprune.fit import (
    POWERS_OF_TWO,
    SPARSITIES,
    WIDTHS,
    Descent,
    Knobs,
    LayerSensitivity,
    Limits,
    LossSurrogate,
    Neighbourhood,
    Ranking,
)
from fpgaprune.values import loss_text
from tests.unit.fit.made_up import LIMIT, MadeUp, laid_out, made, made_point

NAMES = ("sparsity", "weight_bits", "activation_bits")
RANKING = Ranking(Limits(max_loss=loss_text(LIMIT), latency_us=10.0), 5.0)
NEIGHBOURHOOD = Neighbourhood(NAMES, MadeUp(), RANKING, whole=1, epochs=1)


def descended(tolerance, most=99):
    """The points of a descent that has time for `most` networks."""
    found = []

    def judge(knobs, laid, good):
        found.append(made(knobs, laid, tolerance))
        return found[-1]

    descent = Descent(NAMES, MadeUp(), judge, lambda: len(found) < most, lambda point: LIMIT - point.lost)
    return [point for _, point in descent.run(Knobs("weight"))]


def looked(points, tolerance, most=12):
    """The points that the outlook adds."""
    found = []
    while len(found) < most and (asked := NEIGHBOURHOOD.next([*points, *found])):
        knobs, good = asked
        assert good is None or (good.loses_little and good.knobs.leads_to(knobs))
        assert knobs not in {point.knobs for point in [*points, *found]}
        found.append(made(knobs, MadeUp().best_layout(knobs), tolerance))
    return found


def smallest(points):
    return min(point.share for point in points if point.loses_little)


def test_it_finds_smaller_networks_in_the_time_that_a_descent_has_left():
    rng = np.random.default_rng(0)
    ratios, hits, asked = [], 0, 0
    for _ in range(40):
        tolerance = (rng.uniform(0.3, 0.9), *rng.integers(2, 6, 2))
        points = descended(tolerance, 8)
        if not any(point.loses_little for point in points):
            continue
        more = looked(points, tolerance, 8)
        ratios.append(smallest([*points, *more]) / smallest(points))
        hits, asked = hits + sum(point.loses_little for point in more), asked + len(more)
    assert max(ratios) <= 1
    assert np.mean(ratios) < 0.92
    # Fewer than two networks are trained in vain for each that is good.
    assert hits > asked / 3


def test_it_turns_one_knob_back_to_turn_another_further():
    rng, back = np.random.default_rng(1), 0
    for _ in range(20):
        tolerance = (rng.uniform(0.4, 0.9), *rng.integers(2, 6, 2))
        points = descended(tolerance)
        if not any(point.loses_little for point in points):
            continue
        best = min((point for point in points if point.loses_little), key=lambda point: point.share)
        own = best.knobs
        turned = [point.knobs for point in looked(points, tolerance)]
        back += any(not own.leads_to(knobs) for knobs in turned)
    assert back


def test_a_longer_training_makes_a_network_likely_that_lost_too_much():
    tolerance = (0.6, 3, 3)
    points = descended(tolerance)
    surrogate = LossSurrogate.fitted(points, 1, LIMIT, LayerSensitivity({}, ()))
    best = min((point for point in points if point.loses_little), key=lambda point: point.share).knobs
    smaller = replace(best, sparsity=SPARSITIES[SPARSITIES.index(best.sparsity) + 1])
    likely = [surrogate.likelihood(smaller, epochs) for epochs in (1, 4, 16)]
    assert likely == sorted(likely)
    assert likely[0] < 0.3
    assert likely[2] > 0.7
    # What long trainings lost says the same as what short ones lose twice as much of.
    long = [structs.replace(point, lost=point.lost / 2, epochs=16 * point.epochs) for point in points]
    assert LossSurrogate.fitted(long, 1, LIMIT, LayerSensitivity({}, ())).likelihood(smaller, 1) < 0.3
    suggested, _ = replace(NEIGHBOURHOOD, epochs=16).next(points)
    usual = NEIGHBOURHOOD.next(points)
    assert usual is None or suggested != usual[0]
    assert MadeUp().best_layout(suggested).share < 0.97 * MadeUp().best_layout(best).share


def test_hardly_a_network_that_loses_little_is_called_hopeless_and_many_are_that_lose_far_too_much():
    rng = np.random.default_rng(2)
    lost, called = [], []
    for _ in range(20):
        tolerance = (rng.uniform(0.3, 0.9), *rng.integers(2, 6, 2))
        points = descended(tolerance, 8)
        few = [point for point in points[:5] if point.loses_little]
        assert not NEIGHBOURHOOD.is_hopeless(few, Knobs("weight", 0.95, 2, 2))
        for knobs in starmap(Knobs, product(["weight"], SPARSITIES, WIDTHS, WIDTHS)):
            lost.append(made(knobs, MadeUp().best_layout(knobs), tolerance).lost)
            called.append(NEIGHBOURHOOD.is_hopeless(points, knobs))
    lost, called = np.array(lost), np.array(called)
    assert called[lost <= LIMIT].mean() < 0.05
    assert called[lost > 5 * LIMIT].mean() > 0.8


@pytest.mark.parametrize(
    ("lost", "epochs", "knobs", "hopeless"),
    [
        (1.6, 8, Knobs("weight", 0.6, 5), True),
        (1.6, 8, Knobs("weight", 0.75, 4), True),
        # Its loss may be chance, its training was short, or one of its knobs is milder.
        (1.4, 8, Knobs("weight", 0.75, 4), False),
        (1.6, 7, Knobs("weight", 0.75, 4), False),
        (1.6, 8, Knobs("weight", 0.75, 6), False),
    ],
)
def test_what_is_smaller_than_a_network_that_lost_far_too_much_is_hopeless(lost, epochs, knobs, hopeless):
    refuted = made_point(Knobs("weight", 0.6, 5), lost=lost * LIMIT, lost_error=0.5 * LIMIT, epochs=epochs)
    assert replace(NEIGHBOURHOOD, epochs=8).is_hopeless([refuted], knobs) == hopeless


def test_filters_are_taken_back_where_single_weights_lose_less():
    tolerance, names = (0.85, 3, 3), ("filters", *NAMES)
    knobs = [
        Knobs("weight", share, 5, filters=filters) for filters, share in product((0.0, 0.2, 0.35), (0.0, 0.2, 0.35))
    ]
    knobs.remove(Knobs("weight", 0.35, 5))
    points = [made(one, MadeUp().best_layout(one), tolerance) for one in knobs]
    best = min((point for point in points if point.loses_little), key=lambda point: point.share)
    assert best.knobs.filters == 0.35
    neighbourhood, found = replace(NEIGHBOURHOOD, names=names), []
    while len(found) < 6 and (asked := neighbourhood.next([*points, *found])):
        found.append(made(asked[0], MadeUp().best_layout(asked[0]), tolerance))
    smaller = [point for point in found if point.loses_little and point.share < 0.8 * best.share]
    assert any(point.knobs.filters == 0.0 for point in smaller)


def test_nothing_is_suggested_without_a_good_network_or_with_few():
    points = descended((0.8, 3, 3))
    assert NEIGHBOURHOOD.next([]) is None
    assert NEIGHBOURHOOD.next(points[:3]) is None
    assert NEIGHBOURHOOD.next([structs.replace(point, loses_little=False) for point in points]) is None


def test_what_was_trained_whole_is_not_tried_again():
    points = descended((0.8, 3, 3), 10)
    knobs, _ = NEIGHBOURHOOD.next(points)
    again = made_point(knobs, (0.8, 3, 3), lost=1.01 * LIMIT, loses_little=False)
    found = NEIGHBOURHOOD.next([*points, again])
    assert found is None or found[0] != knobs
    # After a short training it may be.
    shortly = [structs.replace(point, epochs=0) for point in [*points, again]]
    turned = set()
    while found := NEIGHBOURHOOD.next(shortly, turned):
        turned.add(found[0])
    assert knobs in turned


def test_knobs_that_no_network_can_have_are_passed_over():
    points = descended((0.8, 3, 3))
    knobs, _ = NEIGHBOURHOOD.next(points)
    found = NEIGHBOURHOOD.next(points, {knobs})
    assert found is None or found[0] != knobs


@pytest.mark.parametrize("names", [NAMES, (*NAMES, "hold")])
def test_only_knobs_that_may_be_turned_are(names):
    points = descended((0.8, 3, 3))
    knobs, _ = replace(NEIGHBOURHOOD, names=names).next(points)
    assert knobs.hold == "" or "hold" in names
    held = replace(NEIGHBOURHOOD, names=("hold",), estimates=Cheaper()).next(points)
    assert held[0].hold == POWERS_OF_TWO
    assert replace(held[0], hold="") in {point.knobs for point in points}


class Cheaper(MadeUp):
    """Powers of two take half."""

    def best_layout(self, knobs):
        laid = super().best_layout(knobs)
        return laid_out("only", {}, laid.share / 2, 100, 100) if knobs.hold else laid


class FillsThePart(MadeUp):
    """Estimates of a network that is laid out to be as fast as the part allows: every size is the same."""

    estimated = 0

    def best_layout(self, knobs):
        return laid_out("part", {"measure": {"part": "made up"}}, 0.8, 100, 100)

    def size(self, layout, knobs):
        self.estimated += 1
        return 0.8


def test_where_every_network_fills_the_part_products_and_bits_say_which_is_smaller():
    estimates = FillsThePart()
    points = descended((0.6, 3, 3))
    asked = replace(NEIGHBOURHOOD, estimates=estimates).next(points)
    assert asked is not None
    best = min((point for point in points if point.meets_limits), key=RANKING.rank).knobs
    sizes = [one.kept * one.weight_bits * (one.activation_bits + 1) for one in (asked[0], best)]
    assert sizes[0] < sizes[1]
    assert estimates.estimated == 0


def test_the_choice_ends_in_time_with_the_best_one_so_far():
    estimates, asked = MadeUp(), []

    def size(layout, knobs):
        asked.append(knobs)
        return estimates.best_layout(knobs).share

    slow = MadeUp()
    slow.size = size
    points = descended((0.6, 3, 3))
    whole = replace(NEIGHBOURHOOD, estimates=slow).next(points)
    many = len(asked)
    short = replace(NEIGHBOURHOOD, estimates=slow).next(points, until=0.0)
    assert whole is not None
    assert short is not None
    assert len(asked) - many < many
