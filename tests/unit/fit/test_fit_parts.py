"""The pieces of a search: knobs, limits, settings, layouts, samples that are held back, the answer."""

import math
from dataclasses import asdict
from importlib import import_module
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs
from typer.testing import CliRunner

from fpgaprune.cli import app
from fpgaprune.errors import ConfigError
from fpgaprune.fit import (
    SPARSITIES,
    WIDTHS,
    Fit,
    FitPoint,
    Knobs,
    Limits,
    Ranking,
    SearchLog,
    TrialRunner,
    VerilogRoute,
    facts,
    front_rows,
    reasons,
    write_split,
)
from fpgaprune.flow import Dataset, RunDirectory, Silent, load_data, parse_config
from fpgaprune.flow.run import FORMAT
from fpgaprune.layout import joined
from fpgaprune.target import find_part
from tests.unit.fit.made_up import laid_out

NAMES = ("sparsity", "filters", "weight_bits", "activation_bits")
knobs = st.builds(
    Knobs,
    st.just("weight"),
    st.sampled_from(SPARSITIES),
    st.sampled_from(WIDTHS),
    st.sampled_from(WIDTHS),
    filters=st.sampled_from(SPARSITIES),
)
laid = st.builds(
    laid_out,
    st.just(""),
    st.just({}),
    st.floats(0.001, 4),
    st.integers(1, 10**6),
    st.integers(1, 10**6),
)


@given(knobs, st.sampled_from(NAMES))
def test_each_turn_asks_for_less_and_is_a_flow(start, name):
    turned = list(start.stronger(name))
    for first, second in zip([start, *turned], turned, strict=False):
        cheaper = (
            getattr(second, name) > getattr(first, name)
            if name in ("sparsity", "filters")
            else getattr(second, name) < getattr(first, name)
        )
        assert cheaper
        assert {n: getattr(second, n) for n in NAMES if n != name} == {n: getattr(start, n) for n in NAMES if n != name}
    for one in turned[-1:]:
        parse_config(one.settings(), "test")


@pytest.mark.parametrize(
    ("more", "layers"),
    [
        ({}, {}),
        ({"hold": "digits(1)"}, {"x": {"activation_bits": 5}}),
        ({"hold": "digits(1)", "narrow": frozenset({("x", "activation_bits"), ("d", "weight_bits")})},
         {"x": {"activation_bits": 4}, "d": {"weight_bits": 7}}),
    ],
)  # fmt: skip
def test_an_input_with_a_sign_has_a_bit_more_where_weights_are_held(more, layers):
    made = Knobs("weight", activation_bits=4, signed=frozenset({"x"}), **more)
    assert made.settings()["hls"].get("layers", {}) == layers


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_loss", -0.1),
        ("max_loss", math.inf),
        ("share", 0.0),
        ("share", 1.5),
        ("minutes", 0.0),
        ("latency_us", -1.0),
    ],
)
def test_a_limit_that_cannot_be_is_refused_by_name(name, value):
    with pytest.raises(ConfigError, match=name):
        Limits(**{name: value})


def test_limits_of_time_become_cycles_of_the_clock():
    assert Limits().cycle_limits(5.0) == (math.inf, math.inf)
    assert Limits(latency_us=2.0).cycle_limits(5.0)[0] == 400
    assert Limits(samples_per_s=1e6).cycle_limits(5.0)[1] == 200
    assert Limits(samples_per_s=1e6, interval_cycles=50).cycle_limits(5.0)[1] == 50


def test_a_search_does_not_trust_luck():
    assert Limits(max_loss="1 %").margin(0.012, 0.003) > 0
    assert Limits(max_loss="1 %").margin(0.011, 0.006, searching=True) < 0
    assert Limits(max_loss="1 %").margin(0.009, 0.003, searching=True) > 0


def test_a_loss_that_is_just_the_limit_keeps_to_it():
    assert Limits(max_loss="0.5 %").margin(0.961 - 0.956, 0.0, searching=True) == 0
    assert Limits(max_loss="0.5 %").margin(0.961 - 0.956, 0.0) == 0
    assert Limits(max_loss="0.5 %").margin(0.0051, 0.0) < 0


def test_where_few_samples_judge_a_search_adds_half_of_the_standard_error():
    assert Limits(max_loss="0.5 %").margin(0.008, 0.008, searching=True) > 0
    assert Limits(max_loss="0.5 %").margin(0.010, 0.008, searching=True) < 0
    assert Limits(max_loss="0.5 %").margin(0.0056, 0.0038, searching=True) > 0
    assert Limits(max_loss="0.5 %").margin(0.0056, 0.0033, searching=True) < 0


def test_what_training_without_a_sample_forgets_is_allowed_in_the_search_only():
    limits = Limits(max_loss="1 %", retraining_loss=0.02)
    assert limits.margin(0.025, 0.0, searching=True) > 0
    assert limits.margin(0.035, 0.0, searching=True) < 0
    assert limits.margin(0.015, 0.0) < 0
    # Two networks that take alike: the one nearer to its limit is the worse one, held-out or held back.
    ranking = Ranking(limits, 5.0)
    assert ranking.rank(point(0.009)) < ranking.rank(point(0.024, judged_on="held-out"))
    assert ranking.rank(point(0.009))[-1] == pytest.approx(0.3)
    assert ranking.rank(point(0.009, judged_on="held-out"))[-1] == pytest.approx(0.9)


@pytest.mark.parametrize(("size", "wins"), [(0.47, False), (0.40, True)])
def test_a_few_per_cent_of_the_part_are_not_worth_the_whole_loss(size, wins):
    ranking = Ranking(Limits(max_loss="2 %", latency_us=100.0), 5.0)
    accurate, small = (point(lost, share=0.1, size=of) for lost, of in ((0.0, 0.5), (0.02, size)))
    assert (ranking.rank(small) < ranking.rank(accurate)) == wins


def test_limits_that_become_known_later_hold_for_what_was_judged_before():
    log = SearchLog(Ranking(Limits(max_loss="1 %"), 5.0), Silent(), lambda _: None)
    log.points = {"a": point(0.025, loses_little=False), "b": point(0.035, loses_little=False)}
    log.change_limits(Limits(max_loss="1 %", retraining_loss=0.02))
    assert [one.loses_little for one in log.points.values()] == [True, False]
    assert log.ranking.limits.retraining_loss == 0.02


def test_a_network_that_two_phases_ask_for_is_told_once():
    told, heard = [], []
    progress = SimpleNamespace(stage=lambda name, state, *_: told.append((name, state)), step=None)
    log = SearchLog(Ranking(Limits(max_loss="1 %"), 5.0), progress, heard.append)
    for key in ("a", "a", "b"):
        job = SimpleNamespace(key=key, knobs="nothing")
        log.begin(job)
        log.end(job, point(0.005))
    assert told == [(f"trial {number}", state) for number in (1, 2) for state in ("running", "done")]
    assert [standing.trial for standing in heard] == [1, 2]


@given(laid, laid)
def test_a_layout_within_the_limits_ranks_before_one_beyond(one, other):
    limits = Limits(share=0.8, latency_us=100.0)

    def kept(layout):
        return layout.share <= limits.share and layout.latency_cycles <= 20_000

    if kept(one) and not kept(other):
        assert Ranking(limits, 5.0).rank_layout(one) < Ranking(limits, 5.0).rank_layout(other)


def test_without_a_limit_the_fastest_comes_first_and_with_one_the_smallest():
    fast, small = laid_out("", {}, 0.7, 100, 10), laid_out("", {}, 0.1, 900, 10)
    free, timed, slow = (Ranking(Limits(latency_us=most), 5.0) for most in (None, 5.0, 1.0))
    assert free.rank_layout(fast) < free.rank_layout(small)
    assert timed.rank_layout(small) < timed.rank_layout(fast)
    assert slow.keeps_time(fast)
    assert not slow.keeps_time(small)


def test_settings_join_key_by_key_and_a_schedule_is_one_value():
    first = {
        "hls": {"weight_bits": 8, "layers": {"a": {"reuse_factor": 2}}},
        "finetune": {"schedule": {"kind": "rounds", "rounds": 2}},
    }
    second = {
        "hls": {"layers": {"a": {"strategy": "resource"}, "b": {}}},
        "finetune": {"schedule": {"kind": "one_shot"}},
    }
    assert joined(first, second) == {
        "hls": {"weight_bits": 8, "layers": {"a": {"reuse_factor": 2, "strategy": "resource"}, "b": {}}},
        "finetune": {"schedule": {"kind": "one_shot"}},
    }
    assert first["hls"]["layers"]["a"] == {"reuse_factor": 2}


@pytest.mark.parametrize(
    ("granularity", "sparsity", "select", "criterion"),
    [
        ("weight", 0.95, {}, "synflow"),
        ("weight", 0.94, {}, None),
        ("kernel", 0.95, {}, None),
        ("weight", 0.95, {"criterion": "taylor"}, "taylor"),
        ("weight", 0.95, {"normalize": "max"}, None),
    ],
)
def test_the_last_weights_are_chosen_by_their_paths_unless_the_flow_says_how(
    tmp_path, granularity, sparsity, select, criterion
):
    document = {"target": {"part": "xc7z020"}, "select": select, "finetune": {}}
    route = VerilogRoute(find_part("xc7z020"), "xc7")
    trials = TrialRunner(route, document, tmp_path, tmp_path / "x.npz", Limits(), None, "")
    made = trials.trial(Knobs(granularity, sparsity), laid_out("all", {}, 0.5, 10, 10), 3)
    assert made.document["select"].get("criterion") == criterion
    assert made.document["select"].get("normalize") == ("none" if criterion == "synflow" else select.get("normalize"))


def arrays(count, first=0):
    x = np.arange(first, first + count, dtype=np.float32)[:, None]
    return x, x[:, 0].astype(np.int64) % 3


def test_the_search_judges_by_training_samples_that_it_does_not_train_on(tmp_path):
    x, y = arrays(1000)
    x_test, y_test = arrays(50, 5000)
    write_split(tmp_path / "a.npz", Dataset("mine", x, y, x_test, y_test), 3, 1000)
    found = load_data(str(tmp_path / "a.npz"))
    trained, judged = set(found.x_train[:, 0]), set(found.x_test[:, 0])
    assert len(judged) == 250
    assert len(trained) == 750
    assert trained | judged == set(x[:, 0])
    assert (found.y_test == found.x_test[:, 0].astype(np.int64) % 3).all()
    write_split(tmp_path / "b.npz", Dataset("mine", x, y, x_test, y_test), 3, 1000)
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


def test_validation_samples_judge_if_there_are_some(tmp_path):
    x, y = arrays(100)
    x_valid, y_valid = arrays(20, 700)
    write_split(tmp_path / "a.npz", Dataset("mine", x, y, x, y, x_valid, y_valid), 0, 1000)
    found = load_data(str(tmp_path / "a.npz"))
    assert (found.x_test == x_valid).all()
    assert (found.x_train == x).all()


def test_several_inputs_keep_their_names(tmp_path):
    x, y = arrays(200)
    pair = (x, -x)
    write_split(tmp_path / "a.npz", Dataset("mine", pair, y, pair, y, inputs=("left", "right")), 0, 1000)
    found = load_data(str(tmp_path / "a.npz"))
    assert found.inputs == ("left", "right")
    assert (found.x_train[0] == -found.x_train[1]).all()


def point(lost=0.0, share=0.5, latency=10, **more):
    given = {
        "knobs": Knobs("weight"), "settings": {}, "metric": "accuracy", "value": 0.9, "lost": lost, "lost_error": 0.0,
        "judged_on": "validation", "samples": 100, "used": {"lut": 5}, "measured": None, "resource": "lut",
        "share": share, "latency_cycles": latency, "interval_cycles": latency, "loses_little": True,
        "fits": True, "in_time": True,
        "epochs": 1, "folder": "f",
    }  # fmt: skip
    return FitPoint(**{**given, **more})


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(1, 4)), min_size=1, max_size=12))
@settings(max_examples=60)
def test_the_front_is_what_no_point_beats(figures):
    points = tuple(point(*figure) for figure in figures)
    front = Fit("n", "p", 5.0, "hls", "estimate", asdict(Limits()), points[0], points).front
    for one in points:
        beaten = any(
            all(a <= b for a, b in zip(other, mine, strict=True)) and other != mine
            for mine in [(one.lost, one.share, one.latency_cycles)]
            for other in [(each.lost, each.share, each.latency_cycles) for each in points]
        )
        assert (not beaten) == any(one is each for each in front)


def test_the_reasons_name_what_was_locked_and_what_has_a_bit_less(tmp_path):
    run = RunDirectory(tmp_path)
    run.write_json("manifest.json", {"format": FORMAT, "stages": {}, "config": {"select": {"criterion": "l1"}}})
    narrow = frozenset({("d1_relu", "activation_bits"), ("out", "weight_bits")})
    own = Knobs("kernel", 0.6, 6, 4, filters=0.35, narrow=narrow)
    best = structs.replace(point(), knobs=own, folder=str(tmp_path))
    said = reasons(Fit("n", "p", 5.0, "hls", "estimate", asdict(Limits()), best, (best,), rates={"filters": 0.01}))
    assert said[0] == "Locked: 35% of filters, then 60% of kernels, those with the lowest score (l1)."
    assert said[1].startswith("A bit less: d1_relu, out's weights; without it the outputs move least")
    assert said[2].endswith("filters 1.00 %.")
    best = structs.replace(best, knobs=Knobs("weight"))
    plain = reasons(Fit("n", "p", 5.0, "hls", "estimate", asdict(Limits()), best, (best,)))
    assert plain == ["Layout: the fastest whose estimate keeps the share of the part."]


def test_a_narrow_table_keeps_what_has_a_bit_less_together():
    narrow = frozenset({("input", "activation_bits"), ("out", "weight_bits")})
    one = structs.replace(point(), number=7, knobs=Knobs("weight", 0.6, 6, 4, filters=0.35, narrow=narrow))
    _, rows = front_rows(Fit("n", "p", 5.0, "hls", "estimate", asdict(Limits()), one, (one,)))
    assert rows[0][0].splitlines() == [
        "7. 35% of filters",
        "then 60% of weights locked",
        "6-bit weights",
        "4-bit activations",
        "(a bit less: input, out's weights)",
    ]


def test_the_answer_says_which_limit_is_broken():
    broken = point(loses_little=False, in_time=False)
    assert not broken.meets_limits
    assert broken.summary().endswith("loses too much and too slow")
    found = Fit("n", "p", 5.0, "hls", "estimate", asdict(Limits()), broken, (broken, point())).to_json()
    assert found["meets_limits"] is False
    assert [each["on_front"] for each in found["points"]] == [True, True]


@pytest.mark.parametrize(
    ("broken", "tones"),
    [
        ({}, ["good", "good", "good"]),
        ({"loses_little": False}, ["bad", "open", "open"]),
        ({"fits": False}, ["open", "bad", "open"]),
        ({"in_time": False, "fits": False}, ["open", "bad", "bad"]),
    ],
)
def test_a_search_begins_with_the_answers_of_a_run_and_none_is_green_where_one_is_red(broken, tones):
    best = structs.replace(point(0.005, 0.625, 900, lost_error=0.002), judged_on="held-out", **broken)
    limits = asdict(Limits("0.5 %", share=0.7, interval_cycles=1000))
    found = Fit("n", "xc7z020", 5.0, "verilog", "estimate", limits, best, (best,))
    said = [one.text for one in found.verdicts()]
    assert [one.tone for one in found.verdicts()] == tones
    replies = ["no" if tone == "bad" else "yes" for tone in tones]
    assert said == [
        f"Accuracy {'kept' if replies[0] == 'yes' else 'not kept'} (lost 0.50 ± 0.20 % on 100 held-out samples; 0.5 % "
        "may be lost)",
        f"Fits xc7z020: {replies[1]} (63% of the LUTs, of at most 70 %; upper end of the estimate)",
        f"Fast enough: {replies[2]} (900 cycles, a sample every 900 cycles)",
    ]
    assert {about: one["reply"] for about, one in found.to_json()["verdicts"].items()} == dict(
        zip(("metric", "fit", "time"), replies, strict=True)
    )
    untimed = Fit("n", "xc7z020", 5.0, "verilog", "estimate", asdict(Limits()), best, (best,), counted_by="synthesis")
    assert [one.about for one in untimed.verdicts()] == ["metric", "fit"]
    assert untimed.verdicts()[1].text.endswith("; upper end of the estimate)")
    counted = structs.replace(untimed, best=structs.replace(best, measured={"lut": 5}))
    assert counted.verdicts()[1].text.endswith("; synthesis)")


@pytest.mark.parametrize(("share", "words"), [(0.8, "80%"), (0.800001, "81%"), (0.07, "7%"), (12.62, "1,262%")])
def test_a_share_beyond_its_limit_never_reads_as_the_limit(share, words):
    assert f", {words} of the LUTs, " in point(share=share).summary()


@pytest.mark.parametrize(
    ("route", "broken", "status", "following"),
    [
        ("hls", {}, 0, "export f --for pynq-z2"),
        ("hls", {"loses_little": False}, 1, "fit {} --part xc7z020 --route verilog --out there-verilog"),
        ("verilog", {"in_time": False}, 1, "estimate f"),
        ("verilog", {"fits": False}, 3, "estimate f"),
        ("hls", {"fits": False, "loses_little": False}, 4, "fit {} --part xc7z020 --route verilog --out there-verilog"),
    ],
)
def test_the_exit_status_says_what_is_broken_and_the_last_line_what_to_try(
    tmp_path, monkeypatch, route, broken, status, following
):
    best = structs.replace(point(), **broken)
    limits = asdict(Limits(interval_cycles=1000))
    found = Fit("n", "xc7z020", 5.0, route, "estimate", limits, best, (best,))
    monkeypatch.setattr(import_module("fpgaprune.fit"), "fit_flow", lambda *_, **__: found)
    monkeypatch.setattr("fpgaprune.flow.counts_of_run", lambda _: [])
    flow = tmp_path / "a.toml"
    flow.write_text('[data]\nsource = "digits"\n')
    done = CliRunner().invoke(app, ["fit", str(flow), "--part", "xc7z020", "--out", "there"])
    assert done.exit_code == status
    assert done.output.splitlines()[-1] == f"next        fpgaprune {following.format(flow)}"


def test_a_search_that_cannot_begin_promises_no_time(tmp_path):
    flow = tmp_path / "a.toml"
    flow.write_text('[data]\nsource = "digits"\n')
    done = CliRunner().invoke(app, ["fit", str(flow), "--part", "xc7z020", "--route", "hdl", "--out", str(tmp_path)])
    assert isinstance(done.exception, ConfigError)
    assert "min" not in done.output


@pytest.mark.parametrize(
    ("lost", "said"),
    [(0.005, "accuracy lost 0.50 ± 0.20 %,"), (-0.2847, "accuracy 28.47 ± 0.20 % better,"), (-0.00004, "lost 0.00 ± ")],
)
def test_a_network_that_became_better_is_called_so(lost, said):
    one = point(lost, lost_error=0.002, metric="accuracy")
    assert said in one.summary()
    found = Fit("n", "p", 5.0, "hls", "estimate", asdict(Limits()), one, (one,))
    assert said.rstrip(",").removeprefix("accuracy ") in found.verdicts()[0].text
    assert one.loss_text() in dict(facts(one, found))["accuracy"]
