"""The answer of a search: what synthesis refutes is not called best, and what it has not counted is said."""

from types import SimpleNamespace

import pytest
from msgspec import structs

from fpgaprune.errors import RunError
from fpgaprune.fit import BEST, Candidate, Finalists, Knobs, Limits, Ranking, TrialRunner, VerilogRoute
from fpgaprune.flow import Silent
from fpgaprune.target import find_part
from tests.unit.fit.made_up import MadeUp, laid_out, made, made_point
from tests.unit.rtl.networks import parallel_design

RANKING = Ranking(Limits(share=0.8), 5.0)


def no_untried(refuted, shift):
    return None


def chosen(folder, shares, counted, counts=True, priced=0.0):
    """The answer and the notes, where `counted` says what a tool counts of each network; and the layouts that it had.

    Each network has two layouts, the second slower with half of the share. `priced` is the upper end of each price.
    """
    points, chosen_names = [], []
    for number, share in enumerate(shares):
        knobs = Knobs("weight", weight_bits=8 - number)
        home = folder / str(number)
        home.mkdir()
        parallel_design(3, 3).save(home / "design.json")
        point = made(knobs, MadeUp().best_layout(knobs), (0.9, 1, 1))
        points.append(structs.replace(point, share=share, used={"lut": 100}, fits=share <= 0.8, folder=str(home)))

    def whole(candidate, laid, epochs, counts=True):
        point = candidate.parent
        count = counted[points.index(point)]
        chosen_names.append(laid.name)
        if count is None:
            return structs.replace(point, epochs=epochs)
        if count == 0:
            return None
        share = count / 100 * point.share
        made = structs.replace(point, measured={"lut": count}, share=share, fits=share <= 0.8, epochs=epochs)
        return structs.replace(made, priced=priced)

    def layouts(design):
        # The price of a layout is that of the first network.
        return [laid_out(rung, {}, shares[0] / part, 10 * part, 10 * part) for rung, part in (("all", 1), ("half", 2))]

    route = SimpleNamespace(layouts=layouts)
    impossible = {Knobs("weight", weight_bits=8 - number): "no such network" for number in range(len(shares))}
    trials = SimpleNamespace(
        whole=whole, route=route, impossible=impossible, counting=lambda point: {} if counts else None
    )
    notes = []
    best = Finalists(trials, RANKING, lambda first: 9, folder, Silent(), no_untried, notes).best(points)
    return best, notes, chosen_names


def test_a_network_that_synthesis_refutes_gives_way_to_the_next(tmp_path):
    best, notes, _ = chosen(tmp_path, [0.70, 0.74], [120, 105])
    assert best.meets_limits
    assert best.measured == {"lut": 105}
    assert best.folder == str(tmp_path / BEST)
    assert (tmp_path / BEST / "design.json").read_bytes() == (tmp_path / "1" / "design.json").read_bytes()
    (note,) = notes
    assert note.startswith(f"{Knobs('weight')}: met the limits in the search")


def test_after_a_count_the_next_layout_is_chosen_by_the_corrected_price(tmp_path):
    # By its price the network fits as it is, 0.7 of 0.8; counted it took 1.2 times its price, and has to be halved.
    assert chosen(tmp_path, [0.70, 0.74], [120, 105])[2] == ["all", "half"]


@pytest.mark.parametrize(("upper", "layout"), [(0.90, "all"), (0.84, "all"), (0.75, "half")])
def test_the_margin_of_a_price_is_not_counted_twice(tmp_path, upper, layout):
    """Counted 0.84 of the part: 1.2 times the middle of the price. What its upper end covers corrects no other one."""
    assert chosen(tmp_path, [0.70, 0.74], [120, 105], priced=upper)[2] == ["all", layout]


@pytest.mark.parametrize(
    ("own", "others", "ratio", "wanted"),
    [
        # It fits, but for the room that is wished for; all others are far slower.
        ((0.79, 100), {"fast": (0.9, 10), "slow": (0.5, 1000)}, 1.0, ""),
        ((0.79, 100), {"fast": (0.7, 10)}, 1.0, "fast"),
        ((0.79, 100), {"alike": (0.7, 105)}, 1.0, "alike"),
        # No other leaves the room.
        ((0.79, 100), {"fast": (0.78, 10)}, 1.0, ""),
        # It does not fit, by its own price or by what a tool counted of the one before.
        ((0.81, 100), {"slow": (0.5, 1000)}, 1.0, "slow"),
        ((0.79, 100), {"slow": (0.5, 1000)}, 1.1, "slow"),
    ],
)
def test_the_final_network_keeps_the_layout_of_its_trial_unless_it_does_not_fit(tmp_path, own, others, ratio, wanted):
    parallel_design(3, 3).save(tmp_path / "design.json")
    knobs = Knobs("weight")
    point = made_point(
        knobs,
        (0.9, 1, 1),
        share=own[0],
        latency_cycles=own[1],
        interval_cycles=own[1],
        folder=str(tmp_path),
    )
    layouts = [laid_out(name, {}, share, cycles, cycles) for name, (share, cycles) in others.items()]
    trials = SimpleNamespace(route=SimpleNamespace(layouts=lambda design: layouts))
    finalists = Finalists(trials, RANKING, lambda first: 9, tmp_path, Silent(), no_untried)
    finalists._correction = ratio
    assert getattr(finalists._layout_of(Candidate.tried(point)), "name", "") == wanted
    # What the search has not trained has no layout of its own.
    assert finalists._layout_of(Candidate.untried(knobs, point.design(), None)).name in others


def test_without_time_no_other_network_is_trained_whole(tmp_path):
    best, notes, asked = bold(tmp_path, lost_later=0.1, epochs=lambda first: 9 if first else None)
    assert asked == [Knobs("weight", 0.5)]
    assert not best.meets_limits
    assert notes[-1] == "no time was left to train another network whole; give more --minutes"


def test_each_network_is_trained_for_the_epochs_that_its_time_allows(tmp_path):
    best, _, _ = bold(tmp_path, lost_later=0.1, epochs=lambda first: 9 if first else 5)
    assert best.epochs == 5


def test_without_time_for_a_second_training_the_first_one_takes_no_risk(tmp_path):
    best, _, asked = bold(tmp_path, lost_later=0.1, time_for_two=False)
    assert asked == [Knobs("weight")]
    assert best.meets_limits


def bold(folder, lost_later, price=0.5, epochs=lambda first: 9, time_for_two=True):
    """The answer where a smaller network lost a standard error too much in the search; what it loses later."""
    best, near = made(Knobs("weight"), MadeUp().best_layout(Knobs("weight")), (0.9, 1, 1)), Knobs("weight", 0.5)
    points = []
    for name, point in (("good", best), ("near", structs.replace(best, knobs=near, settings=near.settings()))):
        home = folder / name
        home.mkdir()
        parallel_design(3, 3).save(home / "design.json")
        share = 0.6 if name == "good" else 0.6 * price
        points.append(structs.replace(point, share=share, used={"lut": 100}, fits=True, folder=str(home)))
    limit = RANKING.limits.max_loss_fraction
    points[1] = structs.replace(points[1], lost=limit + 0.002, lost_error=0.0025, loses_little=False)
    asked = []

    def whole(candidate, laid, epochs, counts=True):
        point = candidate.parent
        asked.append(point.knobs)
        if point is points[1]:
            point = structs.replace(point, lost=lost_later, loses_little=lost_later <= limit)
        return structs.replace(point, measured={"lut": 100}, epochs=epochs)

    route = SimpleNamespace(layouts=lambda design: [laid_out("all", {}, 0.5, 10, 10)])
    trials, notes = SimpleNamespace(whole=whole, route=route, impossible={}), []
    finalists = Finalists(trials, RANKING, epochs, folder, Silent(), no_untried, notes, lambda: time_for_two)
    return finalists.best(points), notes, asked


def test_a_much_smaller_network_that_lost_hardly_too_much_is_tried_first(tmp_path):
    best, notes, asked = bold(tmp_path, lost_later=0.0)
    assert asked == [Knobs("weight", 0.5)]
    assert best.meets_limits
    assert notes == []


def test_if_it_loses_too_much_on_held_out_samples_the_best_one_is_the_answer(tmp_path):
    best, notes, asked = bold(tmp_path, lost_later=0.1)
    assert asked == [Knobs("weight", 0.5), Knobs("weight")]
    assert best.knobs == Knobs("weight")
    (note,) = notes
    said = (
        f"{asked[0]}: lost hardly too much in the search, and broke a limit when it was trained whole: accuracy lost "
    )
    assert note.startswith(said)
    assert note.endswith("loses too much")


def test_a_network_that_is_hardly_smaller_is_not_worth_a_training(tmp_path):
    assert bold(tmp_path, lost_later=0.0, price=0.95)[2] == [Knobs("weight")]


@pytest.mark.parametrize(("stays", "kept", "wanted"), [(True, True, [9, 0]), (False, True, [9]), (True, False, [9])])
def test_a_network_that_loses_by_more_training_is_that_of_its_trial(tmp_path, stays, kept, wanted):
    parallel_design(3, 3).save(tmp_path / "design.json")
    little = made_point(Knobs("weight"), (0.9, 1, 1), used={"lut": 9}, fits=True, folder=str(tmp_path))
    tried, asked = structs.replace(little, loses_little=kept), []

    def whole(candidate, laid, epochs, counts=True):
        asked.append(epochs)
        return structs.replace(candidate.point, loses_little=not epochs, lost=0.1 if epochs else 0.0)

    route = SimpleNamespace(layouts=lambda design: [laid_out("all", {}, 0.5, 100, 100)])
    trials = SimpleNamespace(whole=whole, route=route, impossible={}, counting=lambda design: None)
    finalists = Finalists(
        trials, RANKING, lambda first: 9, tmp_path, Silent(), no_untried, late_epochs=lambda _: 0 if stays else 4
    )
    best = finalists.best([tried])
    assert asked == wanted
    assert best.meets_limits == (0 in wanted)
    assert finalists.notes == [] or not best.meets_limits


@pytest.mark.parametrize(
    ("price", "lost", "wanted"),
    [(0.5, 0.0, ["small", "milder"]), (0.5, 0.1, ["small", "milder", "good"]), (0.95, 0.0, ["small", "good"])],
)
def test_after_a_network_that_loses_too_much_a_milder_one_comes_before_a_far_larger_one(tmp_path, price, lost, wanted):
    """The smaller network of the search loses too much when it is trained whole; a third one is known by its price."""
    design = parallel_design(3, 3)
    kinds = {"good": Knobs("weight"), "small": Knobs("weight", 0.75), "milder": Knobs("weight", 0.6)}
    points = {}
    for name, share in (("good", 0.6), ("small", 0.3)):
        (tmp_path / name).mkdir()
        design.save(tmp_path / name / "design.json")
        point = made(kinds[name], MadeUp().best_layout(kinds[name]), (0.9, 1, 1))
        points[name] = structs.replace(point, share=share, used={"lut": 9}, fits=True, folder=str(tmp_path / name))
    asked, refuted = [], []

    def whole(candidate, laid, epochs, counts=True):
        name = next(name for name, knobs in kinds.items() if knobs == candidate.knobs)
        asked.append(name)
        more = {"good": 0.0, "small": 0.1, "milder": lost}[name]
        return structs.replace(points["good"], knobs=candidate.knobs, lost=more, loses_little=more == 0)

    def milder(found, shift):
        refuted.append([point.knobs for point in found])
        return None if kinds["milder"] in refuted[-1] else Candidate.untried(kinds["milder"], design, None)

    route = SimpleNamespace(layouts=lambda design: [laid_out("all", {}, 0.6 * price, 100, 100)])
    trials = SimpleNamespace(whole=whole, route=route, impossible={}, counting=lambda design: None)
    Finalists(trials, RANKING, lambda first: 9, tmp_path, Silent(), milder).best(points.values())
    assert asked == wanted
    assert refuted[0] == [kinds["small"]]


@pytest.mark.parametrize(
    ("lost", "whole", "sizes", "time", "wanted", "answer"),
    [
        # It lost half a limit less than in the search, so the next smaller one may, and does.
        ([0.9, 1.2], [0.4, 0.9], [0.6, 0.4], 9, [0, 1], 1),
        # So much smaller is not worth a training; that one is far from the limit; without time none is trained.
        ([0.9, 1.2], [0.4, 0.9], [0.6, 0.55], 9, [0], 0),
        ([0.9, 1.6], [0.4, 0.9], [0.6, 0.4], 9, [0], 0),
        ([0.9, 1.2], [0.4, 0.9], [0.6, 0.4], None, [0], 0),
        # It breaks the limit: what was kept is the answer. Of several the smallest comes first.
        ([0.9, 1.2], [0.4, 1.9], [0.6, 0.4], 9, [0, 1], 0),
        ([0.9, 1.1, 1.15, 1.2], [0.4, 0.5, 0.6, 0.7], [0.6, 0.4, 0.3, 0.2], 9, [0, 3], 3),
    ],
)
def test_after_a_network_that_keeps_the_limits_smaller_ones_are_trained(
    tmp_path, lost, whole, sizes, time, wanted, answer
):
    """Losses of the search and of whole trainings, as multiples of the limit."""
    limit, points, asked = RANKING.limits.max_loss_fraction, [], []
    for number, (less, size) in enumerate(zip(lost, sizes, strict=True)):
        (tmp_path / str(number)).mkdir()
        parallel_design(3, 3).save(tmp_path / str(number) / "design.json")
        knobs, little = Knobs("weight", number / 10), less <= 1
        more = {"lost": less * limit, "loses_little": little, "fits": True, "folder": str(tmp_path / str(number))}
        points.append(made_point(knobs, (0.9, 1, 1), share=size, used={"lut": 9}, **more))

    def trained(candidate, laid, epochs, counts=True):
        number = points.index(candidate.point)
        asked.append(number)
        loss = whole[number]
        return structs.replace(candidate.point, lost=loss * limit, loses_little=loss <= 1, judged_on="held-out")

    route = SimpleNamespace(layouts=lambda design: [laid_out("all", {}, 0.5, 100, 100)])
    trials, notes = SimpleNamespace(whole=trained, route=route, impossible={}, counting=lambda design: None), []
    epochs = lambda first: 9 if first else time  # noqa: E731
    best = Finalists(trials, RANKING, epochs, tmp_path, Silent(), no_untried, notes).best(points)
    assert asked == wanted
    assert best.knobs == points[answer].knobs
    assert notes == []


@pytest.mark.parametrize(
    ("losses", "wanted"),
    [
        ((0.0, 0.1, -1.5), (0, 2)),
        # What one network lost more counts by half, and before the last trial in full.
        ((0.0, -0.6, -0.7, -1.6), (0, 1, 3)),
    ],
)
def test_what_the_samples_of_the_search_hid_of_one_network_they_hid_of_the_next(tmp_path, losses, wanted):
    """On held-out samples each network loses twice the limit more than in the search."""
    limit = RANKING.limits.max_loss_fraction
    points = []
    for number, lost in enumerate(losses):
        home = tmp_path / str(number)
        home.mkdir()
        parallel_design(3, 3).save(home / "design.json")
        knobs = Knobs("weight", 0.8 - number / 10)
        point = made(knobs, MadeUp().best_layout(knobs), (0.99, 1, 1))
        points.append(structs.replace(point, lost=lost * limit, used={"lut": 9}, fits=True, folder=str(home)))
    asked = []

    def whole(candidate, laid, epochs, counts=True):
        asked.append(candidate.knobs)
        lost = candidate.parent.lost + 2 * limit
        return structs.replace(candidate.parent, lost=lost, loses_little=lost <= limit)

    route = SimpleNamespace(layouts=lambda design: [laid_out("all", {}, 0.5, 100, 100)])
    trials = SimpleNamespace(whole=whole, route=route, impossible={}, counting=lambda design: None)
    best = Finalists(trials, RANKING, lambda first: 9, tmp_path, Silent(), no_untried).best(points)
    assert asked == [points[number].knobs for number in wanted]
    assert best.meets_limits


def test_if_synthesis_refutes_all_the_nearest_is_the_answer(tmp_path):
    best, notes, _ = chosen(tmp_path, [0.70, 0.74, 0.76, 0.78], [130, 120, 140, 100])
    assert not best.meets_limits
    assert best.measured == {"lut": 120}
    assert len(notes) == 3


def test_a_network_that_was_tried_twice_is_trained_whole_once(tmp_path):
    parallel_design(3, 3).save(tmp_path / "design.json")
    twice, other = (
        made_point(knobs, (0.9, 1, 1), fits=True, share=0.5, folder=str(tmp_path))
        for knobs in (Knobs("weight", 0.35), Knobs("weight", 0.2))
    )
    asked = []

    def whole(candidate, laid, epochs, counts=True):
        asked.append(candidate.knobs)
        return structs.replace(candidate.parent, loses_little=False, lost=1.0)

    route = SimpleNamespace(layouts=lambda design: [laid_out("all", {}, 0.5, 10, 10)])
    trials = SimpleNamespace(whole=whole, route=route, impossible={}, counting=lambda point: None)
    points = [twice, structs.replace(twice, epochs=4), other]
    Finalists(trials, RANKING, lambda first: 9, tmp_path, Silent(), no_untried).best(points)
    assert sorted(asked, key=str) == sorted({twice.knobs, other.knobs}, key=str)


@pytest.mark.parametrize("counts", [True, False])
def test_what_no_tool_has_counted_is_said(tmp_path, counts):
    best, notes, _ = chosen(tmp_path, [0.7], [None], counts)
    assert best.measured is None
    assert [note for note in notes if "no tool has counted" in note] == notes
    assert len(notes) == counts


def test_an_answer_that_no_tool_counts_in_time_is_not_counted_and_says_so(tmp_path):
    parallel_design(3, 3).save(tmp_path / "design.json")
    knobs, asked = Knobs("weight"), []
    tried = made_point(knobs, (0.9, 1, 1), fits=True, share=0.5, folder=str(tmp_path))

    def whole(candidate, laid, epochs, counts):
        asked.append(counts)
        return candidate.parent

    route = SimpleNamespace(layouts=lambda design: [laid_out("all", {}, 0.5, 10, 10)])
    trials, notes = SimpleNamespace(whole=whole, route=route, impossible={}, counting=lambda design: {}), []
    late = Finalists(trials, RANKING, lambda first: 9, tmp_path, Silent(), no_untried, notes)
    late.has_time_to_count = lambda layout, epochs: False
    late.best([tried])
    assert asked == [False]
    (note,) = notes
    assert note.endswith(f"that takes longer than --minutes allows: 'fpgaprune measure {tmp_path / BEST}' does it")


@pytest.mark.parametrize(("share", "counted"), [(3.1, True), (3.3, False)])
def test_no_tool_counts_what_is_far_beyond_the_part(tmp_path, share, counted):
    trials_run, limits = [], Limits(share=0.8)
    parallel_design(3, 3).save(tmp_path / "design.json")
    point = made_point(Knobs("weight"), (0.9, 1, 1), folder=str(tmp_path))
    executor = SimpleNamespace(result=lambda trial: trials_run.append(trial) or point)
    route = VerilogRoute(find_part("xc7z020"), "xc7")
    trials = TrialRunner(
        route, {"target": {"part": "xc7z020"}, "finetune": {}}, tmp_path, tmp_path / "x.npz", limits, executor, ""
    )
    asked = {"measure": {"families": ["xc7"], "interval": 0}}
    for counts in (True, False):
        trials.whole(Candidate.tried(point), laid_out("all", asked, share, 10, 10), 3, counts=counts)
    families = [trial.document["measure"]["families"] for trial in trials_run]
    assert families == [["xc7"] if counted else [], []]


def test_a_network_that_fits_is_trained_before_those_of_a_search_that_do_not(tmp_path):
    asked, design = [], parallel_design(3, 3)
    design.save(tmp_path / "design.json")
    wide = made_point(Knobs("weight"), (0.9, 1, 1), fits=False, share=9.0, folder=str(tmp_path))
    first = Candidate.untried(Knobs("weight", weight_bits=4), design, None)

    def whole(candidate, laid, epochs, counts):
        asked.append(candidate.knobs)
        return structs.replace(wide, knobs=candidate.knobs, fits=True, share=0.5)

    route = SimpleNamespace(layouts=lambda design: [laid_out("all", {}, 0.5, 10, 10)])
    trials = SimpleNamespace(whole=whole, route=route, impossible={}, counting=lambda design: None)
    epochs = lambda first: 9 if first else None  # noqa: E731
    best = Finalists(trials, RANKING, epochs, tmp_path, Silent(), no_untried, first=first).best([wide])
    assert asked == [first.knobs] == [best.knobs]
    assert best.meets_limits


def test_no_network_at_all_is_an_error_that_says_why(tmp_path):
    with pytest.raises(RunError, match="no such network"):
        chosen(tmp_path, [0.7], [0])


@pytest.mark.parametrize(
    ("asked", "share", "lost", "wins"),
    [("0.2 %", 0.3, 0.0, True), ("0.2 %", 0.6, 0.0, False), ("0.2 %", 0.3, 1.0, False), (None, 0.3, 0.0, False)],
)
def test_the_answer_is_trimmed_if_it_then_is_smaller_and_keeps_the_limits(tmp_path, asked, share, lost, wins):
    for name in ("plain", "trimmed"):
        (tmp_path / name).mkdir()
        parallel_design(3, 3).save(tmp_path / name / "design.json")
    plain = made_point(Knobs("weight"), share=0.5, used={"lut": 9}, fits=True, loses_little=True)
    plain = structs.replace(plain, measured={"lut": 9}, folder=str(tmp_path / "plain"))
    smaller = structs.replace(
        plain, share=share, lost=lost, loses_little=lost == 0, folder=str(tmp_path / "trimmed"), measured={"lut": 5}
    )
    limits = []

    def trimmed(point, max_loss):
        limits.append((point.folder, max_loss))
        return smaller

    trials = SimpleNamespace(
        whole=lambda *_, **__: plain,
        trimmed=trimmed,
        route=SimpleNamespace(layouts=lambda design: [laid_out("all", {}, 0.5, 100, 100)]),
        impossible={},
        counting=lambda design: {},
    )
    finalists = Finalists(trials, RANKING, lambda first: 9, tmp_path, Silent(), no_untried, trims=lambda point: asked)
    assert finalists.best([plain]).measured == {"lut": 5 if wins else 9}
    assert limits == ([(plain.folder, asked)] if asked else [])


def test_an_answer_that_cannot_be_trimmed_stays(tmp_path):
    (tmp_path / "plain").mkdir()
    parallel_design(3, 3).save(tmp_path / "plain" / "design.json")
    plain = made_point(Knobs("weight"), share=0.5, used={"lut": 9}, fits=True, loses_little=True)
    plain = structs.replace(plain, measured={"lut": 9}, folder=str(tmp_path / "plain"))
    trials = SimpleNamespace(
        whole=lambda *_, **__: plain,
        trimmed=lambda *_: None,
        route=SimpleNamespace(layouts=lambda design: [laid_out("all", {}, 0.5, 100, 100)]),
        impossible={plain.knobs: "its type wraps"},
        counting=lambda design: {},
    )
    finalists = Finalists(trials, RANKING, lambda first: 9, tmp_path, Silent(), no_untried, trims=lambda point: "1 %")
    assert finalists.best([plain]).measured == {"lut": 9}
