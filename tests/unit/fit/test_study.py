"""The study around the descent, on made-up networks: what it suggests, what ends early, what a kill leaves."""

import json
import math
import sys
from collections import Counter

import pytest

from fpgaprune.errors import RunError, ToolError
from fpgaprune.fit import study as study_module
from fpgaprune.fit.knobs import CHEAP, Knobs
from fpgaprune.fit.limits import Limits
from fpgaprune.fit.ranking import Ranking
from fpgaprune.fit.rungs import Rungs
from fpgaprune.fit.study import Space, Study, drop_unfinished_line
from fpgaprune.fit.workplace import Here
from tests.unit.fit.made_up import EPOCHS, LIMITS, Everything, Prices, laid_out, made, point, searched

RANKING = Ranking(LIMITS, 5.0)
HERE = Here(None, point)


def begun(folder):
    """Key of a trial to how often it was begun."""
    file = folder / "trials" / "begun"
    return Counter(line.split()[0] for line in file.read_text().splitlines()) if file.exists() else Counter()


def made_point(knobs, tolerance=(0.6, 3, 3), **more):
    from msgspec import structs

    return structs.replace(made(knobs, Prices().fastest(knobs), tolerance), **more)


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """A search of forty trials for the best network."""
    folder = tmp_path_factory.mktemp("study")
    return folder, searched(folder, HERE, 40)


def test_it_finds_a_network_that_keeps_the_limits(found):
    _, coordinator = found
    best = min(coordinator.points.values(), key=RANKING.rank)
    assert best.meets_limits
    assert best.share < 0.8


def test_a_trial_is_never_done_twice_and_the_same_search_goes_on(found):
    folder, coordinator = found
    assert set(begun(folder).values()) == {1}
    again = searched(folder, HERE, 40)
    assert again.points == coordinator.points
    assert set(begun(folder).values()) == {1}


def test_a_suggested_network_is_trained_from_the_smallest_good_one_that_leads_to_it(tmp_path):
    known = {
        "mild": made_point(Knobs("weight", 0.2, 7, 7), folder="mild"),
        "small": made_point(Knobs("weight", 0.5, 6, 6), folder="small"),
        "bad": made_point(Knobs("weight", 0.5, 2, 6), folder="bad"),
        "other": made_point(Knobs("weight", 0.2, 7, 7, filters=0.2), folder="other"),
    }
    assert [key for key, one in known.items() if not one.loses_little] == ["bad"]
    coordinator = searched(tmp_path, HERE, 25, rungs=Everything(), known=known)
    asked = [json.loads(line) for line in (tmp_path / "trials" / "asked").read_text().splitlines()]
    assert {one["start"] for one in asked} == {None, "mild", "small", "other"}
    for one in asked:
        knobs = Knobs.of(one)
        leading = [key for key in ("small", "other", "mild") if Knobs.of(known[key].settings).leads_to(knobs)]
        assert one["start"] == (leading[0] if leading else None)
    # What the study finds itself starts nothing: a search that goes on after a kill knows the same networks.
    assert coordinator.study.known_before(0) == []
    assert coordinator.study.known_before(10) == list(known)


def test_hopeless_networks_end_early(found):
    _, coordinator = found
    epochs = Counter(point.epochs for point in coordinator.points.values())
    assert 0 < epochs[EPOCHS[1]] < epochs[EPOCHS[0]] < 40
    states = Counter(trial.state.name for trial in coordinator.study._trials())
    assert states["PRUNED"] > states["COMPLETE"] > 0


def test_a_search_that_was_cut_goes_on_as_if_it_had_not_been(found, tmp_path):
    class CutError(Exception):
        """Ends the search in the middle, as a kill does."""

    def cut(job, progress):
        if len(list(job.kept.parent.glob("*.json"))) == 7:
            raise CutError
        return point(job, progress)

    with pytest.raises(CutError):
        searched(tmp_path, Here(None, cut), 40)
    journal = tmp_path / "search.journal"
    text = journal.read_bytes()
    journal.write_bytes(text[: text.rstrip(b"\n").rfind(b"\n") + 9])
    again = searched(tmp_path, HERE, 40)
    assert list(again.points) == list(found[1].points)


def test_a_journal_that_is_cut_in_a_line_is_read_on(tmp_path):
    journal = tmp_path / "deep" / "search.journal"
    drop_unfinished_line(journal)
    assert journal.read_bytes() == b""
    journal.write_bytes(b'{"a": 1}\n{"b": 2}\n{"c')
    drop_unfinished_line(journal)
    drop_unfinished_line(journal)
    assert journal.read_bytes() == b'{"a": 1}\n{"b": 2}\n'


def test_a_damaged_journal_is_refused_with_what_to_do(tmp_path):
    (tmp_path / "search.journal").write_text("not a journal\n{}\n")
    with pytest.raises(RunError, match=r"search.journal is no journal of a search: .*; delete it; trials"):
        searched(tmp_path, HERE, 1)


def test_another_question_has_a_study_of_its_own_in_the_journal(tmp_path):
    space = Space("weight")
    for name in ("first", "second"):
        study = Study(tmp_path / "search.journal", name, space, RANKING, False, 0)
        assert study.asked == 0
        study.refuse(study.ask(), "no such network")
        assert study.asked == 1


def test_the_study_knows_the_points_of_the_descent_first(tmp_path):
    study = Study(tmp_path / "search.journal", "one", Space("weight", False, 8, True), RANKING, False, 0)
    study.know(Knobs("weight", 0.5), made_point(Knobs("weight", 0.5)), "a")
    study.know(Knobs("weight", 0.5), made_point(Knobs("weight", 0.5)), "a")
    study.know(Knobs("weight", 0.5, 8, 8, CHEAP), made_point(Knobs("weight")), "b")
    study.know(Knobs("filter"), made_point(Knobs("filter")), "a unit that is not searched")
    study.know(Knobs("weight", 0.0, 16, 16), made_point(Knobs("weight", 0.0, 16, 16)), "more bits than are searched")
    study.know(Knobs("weight", 0.123), made_point(Knobs("weight")), "a sparsity that is not searched")
    study.know(Knobs("weight", filters=0.2), made_point(Knobs("weight")), "filters that are not searched")
    assert study.ended_keys() == ["a", "b"]
    assert study.asked == 0
    assert study._trials()[0].constraints["loss"] == pytest.approx(
        RANKING.lost_beyond(made_point(Knobs("weight", 0.5)))
    )


def test_a_front_is_spread_over_loss_and_share(tmp_path):
    coordinator = searched(tmp_path, HERE, 30, front=True)
    points = list(coordinator.points.values())
    assert max(one.lost for one in points) > 2 * min(one.lost for one in points)
    assert all(len(trial.values) == 3 for trial in coordinator.study._trials() if trial.state.name == "COMPLETE")


def test_knobs_that_the_network_cannot_have_train_nothing(tmp_path):
    coordinator = searched(tmp_path, HERE, 20, prices=Prices(most=-1.0))
    assert coordinator.points == {}
    assert coordinator.study.asked == 20
    assert begun(tmp_path) == {}


def test_a_search_ends_when_nothing_new_is_suggested(tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules["fpgaprune.fit.coordinator"], "_NOTHING_NEW", 5)
    coordinator = searched(tmp_path, HERE, 1000, prices=Prices(most=-1.0))
    assert coordinator.is_exhausted
    assert coordinator.study.asked == 5


def test_without_optuna_one_line_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(ToolError, match=r"optuna.*was not found: pip install 'fpgaprune\[search\]'"):
        study_module.require_optuna()


def test_a_price_beyond_a_limit_is_hopeless_only_if_another_network_is_nearer():
    rungs = Rungs(RANKING, False)
    far, near = laid_out("", {}, 3.0, 100, 100), made_point(Knobs("weight", 0.9, 4, 4))
    assert rungs.hopeless(far, []) is None
    assert "limit of the share" in rungs.hopeless(far, [near])
    nearest = made_point(Knobs("weight"), share=2.5, fits=False)
    assert rungs.hopeless(far, [nearest]) is None
    good = made_point(Knobs("weight", 0.9, 4, 4), lost=0.0, loses_little=True)
    assert "a network that keeps to every limit" in rungs.hopeless(laid_out("", {}, 0.9, 100, 100), [good])
    assert Rungs(RANKING, True).hopeless(laid_out("", {}, 0.9, 100, 100), [near]) is None


def test_a_limit_of_time_ends_a_network_by_its_price():
    rungs = Rungs(Ranking(Limits(latency_us=1.0), 5.0), True)
    slow = laid_out("", {}, 0.5, 400, 400)
    known = made_point(Knobs("weight", 0.9))
    assert "limit of the latency" in rungs.hopeless(slow, [known])
    assert rungs.hopeless(laid_out("", {}, 0.5, 210, 400), [known]) is None


def test_one_in_three_of_the_shortly_trained_goes_on_if_its_loss_is_near():
    rungs = Rungs(RANKING, False)
    points = [made_point(Knobs("weight", sparsity), lost=0.0) for sparsity in (0.2, 0.35, 0.5, 0.6, 0.68, 0.75)]
    assert [rungs.promotes(one, points, points) for one in points] == [False] * 4 + [True] * 2
    lossy = made_point(Knobs("weight", 0.95), lost=0.021)
    assert not rungs.promotes(lossy, [*points, lossy], points)
    assert rungs.promotes(points[-1], [*points, lossy, lossy], points)


def test_for_a_front_only_what_is_surely_beaten_ends():
    rungs = Rungs(RANKING, True)
    one, other = made_point(Knobs("weight"), lost=0.01, lost_error=0.004), made_point(Knobs("weight"), lost=0.013)
    assert rungs.promotes(other, [other], [one, other])
    assert not rungs.promotes(made_point(Knobs("weight"), lost=0.02), [other], [one, other])


def test_the_objective_orders_networks_as_the_ranking_does():
    laid = [laid_out("", {}, share, cycles, 1) for share in (0.1, 0.5, 0.79) for cycles in (10, 500, 501, 9000)]
    points = [
        made_point(
            Knobs("weight"), share=one.share, latency_cycles=one.latency_cycles, fits=True, lost=0.0, loses_little=True
        )
        for one in laid
    ]
    by_rank = sorted(range(len(laid)), key=lambda n: RANKING.rank(points[n])[:5])
    by_objective = sorted(range(len(laid)), key=lambda n: RANKING.objective(laid[n]))
    assert by_rank == by_objective


def test_the_journal_is_json_lines_and_nothing_else_lies_beside_it(found):
    folder, _ = found
    for line in (folder / "search.journal").read_text().splitlines():
        json.loads(line)
    assert {entry.name for entry in folder.iterdir()} == {"search.journal", "trials"}
    assert math.isfinite(RANKING.objective(laid_out("", {}, 5.0, 0, 0)))


def test_everything_is_tried_where_no_rung_ends_it(tmp_path):
    coordinator = searched(tmp_path, HERE, 12, rungs=Everything())
    assert len(coordinator.points) == len(begun(tmp_path))
    assert coordinator.study.asked == 12
