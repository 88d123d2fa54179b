"""A whole search on a small network: its answer, its second start, its exit status."""

import json
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import keras
import numpy as np
import pytest
from typer.testing import CliRunner

import fpgaprune as fp
from fpgaprune.cli import app
from fpgaprune.errors import ConfigError, HlsError, RunError, ToolError
from fpgaprune.fit import Limits, Training, few_networks
from fpgaprune.flow import FinetuneConfig, RunDirectory, SelectConfig, verify_run
from fpgaprune.hls import can_count
from tests.unit.vendor.texts import utilization

pytestmark = pytest.mark.flow


@pytest.fixture(scope="module", autouse=True)
def no_vendor_tool():
    """No vendor's tool of this machine counts: that would take many minutes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(import_module("fpgaprune.fit.route"), "can_count", lambda design: False)
        yield


@pytest.fixture(scope="module")
def searched(tmp_path_factory):
    """The model, its data and the answer of a search that has time for one trial."""
    folder = tmp_path_factory.mktemp("fit")
    rng = np.random.default_rng(0)
    x = rng.random((400, 8), dtype=np.float32)
    y = (x @ np.array([1, -1, 2, 0.5, 0, 0, 1, -2], np.float32) > 0.8).astype(np.int64)
    data = {"x_train": x[:300], "y_train": y[:300], "x_test": x[300:], "y_test": y[300:]}
    # Validation samples spare the trial that finds out what training without some samples forgets.
    data |= {"x_valid": x[300:], "y_valid": y[300:]}
    np.savez(folder / "mine.npz", **data)
    keras.utils.set_random_seed(1)
    model = keras.Sequential(
        [
            keras.Input((8,)),
            keras.layers.Dense(12, activation="relu", name="hidden"),
            keras.layers.Dense(2, name="classes"),
        ],
        name="mine",
    )
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
    model.fit(x[:300], y[:300], epochs=40, batch_size=20, verbose=0)
    model.save(folder / "mine.keras")
    # Without rounding a training is traced in half of the time; the search on two workers rounds.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fpgaprune.lowering.require_roundable", cannot_round)
        found = fp.fit(model, data, fp.Target.of("pynq-z2"), max_loss="5 %", out=folder / "out", minutes=0.01, epochs=1)
    return folder, data, found


def cannot_round(_):
    raise HlsError("layer 'mine' has no counterpart")


def test_the_answer_is_a_whole_run_that_verifies(searched):
    folder, data, found = searched
    assert found.meets_limits
    assert found.best.judged_on == "held-out"
    assert found.best.samples == len(data["x_test"])
    assert found.points[0].judged_on == "validation"
    assert verify_run(folder / "out" / "best")[1] == []
    # It is trained on from the network of the search, under the locks that this had.
    asked = RunDirectory.existing(folder / "out" / "best").manifest["config"]["finetune"]
    assert asked["start"] == f"{found.points[0].folder}/finetuned.keras"
    unrounded = "the network is fine-tuned without rounding: layer 'mine' has no counterpart"
    assert sorted(found.notes) == [few_networks(len(found.points), Limits(minutes=0.01)), unrounded]
    report = json.loads((folder / "out" / "best" / "report.json").read_text())
    assert report["metric"]["lost"] == found.best.lost
    written = json.loads((folder / "out" / "front.json").read_text())
    assert written["best"]["folder"] == str(folder / "out" / "best")
    assert written["best"]["lost"] == found.best.lost
    page = (folder / "out" / "report.html").read_text()
    assert "Fits xc7z020: yes" in page
    assert 'href="best/report.html"' in page
    assert "What each layer lost" in page
    assert [row for row in ("hidden", "classes") if f"<span>{row}</span>" not in page] == []
    assert "8 → 12" in page
    assert written["rates"] == found.rates


def test_without_time_the_network_of_a_trial_that_had_all_samples_is_the_answer_bit_by_bit(searched, tmp_path):
    folder, data, _ = searched
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fpgaprune.lowering.require_roundable", cannot_round)
        found = fp.fit(
            folder / "mine.keras", data, fp.Target.of("pynq-z2"), max_loss="50 %", out=tmp_path, minutes=0.01
        )
    (tried,) = (Path(point.folder) for point in found.points if point.knobs == found.best.knobs)
    assert found.best.knobs.sparsity > 0
    best = tmp_path / "best"
    assert RunDirectory.existing(best).manifest["config"]["finetune"]["epochs"] == 0
    assert found.best.epochs == found.points[0].epochs > 0
    masks = [fp.MaskSet.load(run / "masks.npz") for run in (tried, best)]
    assert masks[0] == masks[1]
    assert masks[0].locked_count > 0
    for name in ("finetuned.keras", "quantised.keras"):
        if (tried / name).exists():
            weights = [keras.models.load_model(run / name).get_weights() for run in (tried, best)]
            assert all(np.array_equal(one, other) for one, other in zip(*weights, strict=True))


def test_a_second_start_trains_nothing(searched, monkeypatch):
    folder, data, found = searched
    monkeypatch.setattr(
        import_module("fpgaprune.fit.trial"),
        "run_flow",
        lambda *_: pytest.fail("a trial was run again"),
    )
    monkeypatch.setattr("fpgaprune.lowering.require_roundable", cannot_round)
    again = fp.fit(
        folder / "out" / "model.keras", data, fp.Target.of("pynq-z2"), max_loss="5 %", out=folder / "out",
        minutes=0.01, epochs=1,
    )  # fmt: skip
    assert again == found


def test_a_wish_that_cannot_be_met_ends_with_the_nearest_network(searched, tmp_path, monkeypatch):
    folder, _, _ = searched
    out = tmp_path / "out"

    def same_again(config, run, progress):
        """Every network comes out as the best one of the other search did, so that nothing is trained."""
        shutil.copytree(folder / "out" / "best", run)
        return RunDirectory.existing(run)

    monkeypatch.setattr("fpgaprune.lowering.require_roundable", cannot_round)
    monkeypatch.setattr(import_module("fpgaprune.fit.trial"), "run_flow", same_again)
    command = ["fit", str(folder / "mine.keras"), "--data", str(folder / "mine.npz"), "--part", "pynq-z2"]
    options = [
        "--share",
        "0.0001",
        "--minutes",
        "0.01",
        "--epochs",
        "1",
        "--max-loss",
        "5%",
        "--out",
        str(out),
        "--json",
    ]
    done = CliRunner().invoke(app, command + options)
    assert done.exit_code == 3, "it does not fit, and loses nothing"
    found = json.loads(done.stdout)
    heard = [json.loads(line) for line in done.stderr.splitlines() if line.startswith("{")]
    assert [one["trial"] for one in heard] == list(range(1, len(found["points"]) + 1))
    assert heard[-1]["best"]["share"] == min(one["share"] for one in found["points"])
    assert heard[-1]["seconds_left"] >= 0
    assert found["meets_limits"] is False
    assert found["best"]["fits"] is False
    assert any("listed part of the same family" in note for note in found["notes"])
    assert "No network that was tried keeps every limit" in (out / "report.html").read_text()


# Each time unit tests say when a tool counts and what its count decides (test_route.py, test_finalists.py).
@pytest.mark.slow
def test_a_vendors_tool_builds_the_answer_and_its_count_decides(searched, tmp_path, monkeypatch):
    """A script plays Vitis: it counts more LUTs than the part has, so the network does not fit whatever its price."""
    folder, data, found = searched
    rows = [["CLB LUTs", "60000", "0", "0", "53200", "112"], ["CLB Registers", "70", "0", "0", "106400", "0.1"]]
    header = ("Site Type", "Used", "Fixed", "Prohibited", "Available", "Util%")
    (tmp_path / "counted.rpt").write_text(utilization(rows, header=header))
    tool = tmp_path / "vitis-run"
    tool.write_text(f'#!/bin/sh\npwd >> "{tmp_path}/called.txt"\ncp "{tmp_path}/counted.rpt" vivado_synth.rpt\n')
    tool.chmod(0o755)
    monkeypatch.setenv("FPGAPRUNE_VITIS_RUN", str(tool))
    monkeypatch.setattr(import_module("fpgaprune.fit.route"), "can_count", can_count)
    monkeypatch.setattr("fpgaprune.lowering.require_roundable", cannot_round)
    out = tmp_path / "out"
    built = fp.fit(
        folder / "mine.keras", data, fp.Target.of("pynq-z2"), max_loss="5 %", out=out, minutes=0.01, epochs=1
    )
    called = (tmp_path / "called.txt").read_text().split()
    assert found.best.measured is None
    assert found.best.fits
    assert built.best.measured["lut"] == 60000
    assert not built.best.fits
    assert not built.meets_limits
    # The trials are priced; only what is trained whole is built.
    assert len(called) == len(set(called)) <= 3
    assert {Path(place).parent.name for place in called}.isdisjoint(Path(one.folder).name for one in built.points)
    assert "60,000 LUT, 70 FF (the vendor&#39;s tool)" in (out / "report.html").read_text().replace("<wbr>", "")


def test_a_wrong_path_of_a_tool_is_an_error_before_anything_is_trained(searched, tmp_path, monkeypatch):
    folder, data, _ = searched
    monkeypatch.setenv("FPGAPRUNE_VITIS_RUN", str(tmp_path / "nowhere"))
    monkeypatch.setattr(import_module("fpgaprune.fit.route"), "can_count", can_count)
    monkeypatch.setattr(import_module("fpgaprune.fit.trial"), "run_flow", lambda *_: pytest.fail("a trial began"))
    with pytest.raises(ToolError, match=r"FPGAPRUNE_VITIS_RUN is .*nowhere', which is not an executable file"):
        fp.fit(folder / "mine.keras", data, fp.Target.of("pynq-z2"), out=tmp_path / "out", minutes=0.01)


@pytest.mark.parametrize(("lost", "rate"), [(0.5, None), (0.0, 0.02)])
def test_a_higher_rate_that_loses_the_network_is_given_up(searched, tmp_path, monkeypatch, lost, rate):
    folder, data, _ = searched
    asked = []

    def run(config, run, progress):
        """Nothing is trained: at the higher rate the network comes out with `lost`, else as another search left it."""
        shutil.copytree(folder / "out" / "best", run)
        asked.append(config[FinetuneConfig].learning_rate)
        report = json.loads((run / "report.json").read_text())
        report["metric"]["lost"] = 0.0 if asked[-1] is None else lost
        (run / "report.json").write_text(json.dumps(report))
        return RunDirectory.existing(run)

    bolder = Training(2, 8, 8, {"finetune": {"learning_rate": 0.02}})
    # As a search with time for many trials.
    monkeypatch.setattr(import_module("fpgaprune.fit.search"), "is_short", lambda *_: False)
    monkeypatch.setattr(Training, "at_higher_rate", classmethod(lambda *_: bolder))
    monkeypatch.setattr("fpgaprune.lowering.require_roundable", cannot_round)
    monkeypatch.setattr(import_module("fpgaprune.fit.trial"), "run_flow", run)
    fp.fit(folder / "mine.keras", data, fp.Target.of("pynq-z2"), max_loss="5 %", out=tmp_path / "out", minutes=0.01)
    assert asked[0] == 0.02
    assert set(asked[1:]) == {rate}


def test_a_large_network_loses_filters_first_and_is_then_trained_for_longer(searched, tmp_path, monkeypatch):
    folder, data, _ = searched
    asked = []

    def run(config, run, progress):
        """Nothing is trained: every network comes out as another search left it, each a little better than before."""
        shutil.copytree(folder / "out" / "best", run)
        select, tune = config[SelectConfig], config[FinetuneConfig]
        asked.append((select.filters, select.sparsity, tune.epochs, tune.learning_rate))
        report = json.loads((run / "report.json").read_text())
        report["metric"]["lost"] = -0.001 * len(asked)
        (run / "report.json").write_text(json.dumps(report))
        return RunDirectory.existing(run)

    own, bolder = (
        Training(2, 4, 4, wanted_epochs=32),
        Training(2, 4, 4, {"finetune": {"learning_rate": 0.02}}, wanted_epochs=32),
    )
    monkeypatch.setattr(Training, "from_flow", classmethod(lambda *_: own))
    monkeypatch.setattr(Training, "at_higher_rate", classmethod(lambda *_: bolder))
    monkeypatch.setattr(import_module("fpgaprune.fit.search"), "is_short", lambda *_: False)
    # However slow the machine is, a third of the time is left for what comes behind.
    monkeypatch.setattr(import_module("fpgaprune.fit.phases"), "NARROW", 0.7)
    monkeypatch.setattr(import_module("fpgaprune.fit.phases"), "SHORT_TRIALS", 1.0)
    monkeypatch.setattr("fpgaprune.lowering.require_roundable", cannot_round)
    monkeypatch.setattr(import_module("fpgaprune.fit.trial"), "run_flow", run)
    fp.fit(folder / "mine.keras", data, fp.Target.of("pynq-z2"), max_loss="20 %", out=tmp_path / "out", minutes=0.25)
    narrowing = [one for one in asked if one[2] == 2]
    filters = [one[0] for one in narrowing]
    assert narrowing[0] == (0.0, 0.0, 2, None)
    assert filters == sorted(set(filters))
    assert filters[-1] > 0
    assert {one[3] for one in narrowing} == {None}
    # The narrow network is small enough for all epochs that were wanted, or a fourth of them, at a higher rate.
    # Without time the answer is that of a trial, trained for 0 epochs more.
    behind = asked[len(narrowing) :]
    assert {epochs for _, _, epochs, _ in behind} <= {0, 8, 32}
    assert behind[0] == (filters[-1], 0.0, 8, 0.02)


def test_a_model_without_data_is_told_how_to_be_fitted(searched):
    folder, _, _ = searched
    done = CliRunner().invoke(app, ["fit", str(folder / "mine.keras"), "--part", "pynq-z2"])
    assert isinstance(done.exception, ConfigError)
    assert "--data is missing; use 'fpgaprune fit " in str(done.exception)


def test_samples_of_a_start_that_failed_do_not_stay(searched, tmp_path, monkeypatch):
    """Samples of a wrong shape end the first start; those of the second are right, and are the ones that count."""
    folder, data, _ = searched
    np.savez(tmp_path / "wrong.npz", **{key: value[:, :4] if key[0] == "x" else value for key, value in data.items()})
    options = ["fit", str(folder / "mine.keras"), "--part", "pynq-z2", "--out", str(tmp_path / "out"), "--data"]
    with pytest.raises(ConfigError, match="takes samples of shape"):
        CliRunner().invoke(app, [*options, str(tmp_path / "wrong.npz")], catch_exceptions=False)
    monkeypatch.setattr(import_module("fpgaprune.fit.trial"), "run_flow", lambda *_: pytest.fail("so far it comes"))
    with pytest.raises(pytest.fail.Exception, match="so far it comes"):
        CliRunner().invoke(app, [*options, str(folder / "mine.npz")], catch_exceptions=False)


def test_another_network_or_other_samples_under_the_old_names_are_tried_anew(searched, tmp_path, monkeypatch):
    folder, data, _ = searched
    for name in ("out", "mine.npz", "mine.keras"):
        (shutil.copytree if name == "out" else shutil.copy)(folder / name, tmp_path / name)
    monkeypatch.chdir(tmp_path)

    def start():
        monkeypatch.setattr("fpgaprune.lowering.require_roundable", cannot_round)
        target = fp.Target.of("pynq-z2")
        return fp.fit(
            "mine.keras", "mine.npz", target, max_loss="5 %", out="again", minutes=0.01, epochs=1, replace=True
        )

    def same_again(config, run, progress):
        """Every network comes out as the best one of the other search did, so that nothing is trained."""
        began.append(run)
        shutil.copytree(folder / "out" / "best", run, dirs_exist_ok=True)
        return RunDirectory.existing(run)

    began = []
    monkeypatch.setattr(import_module("fpgaprune.fit.trial"), "run_flow", same_again)
    start()
    first, began = began, []
    assert first
    start()
    assert began == []
    model = keras.saving.load_model("mine.keras")
    model.layers[0].set_weights([2 * array for array in model.layers[0].get_weights()])
    model.save("mine.keras")
    start()
    second, began = began, []
    np.savez("mine.npz", **{**data, "y_test": 1 - data["y_test"]})
    start()
    assert len(began) == len(second) == len(first)
    assert len({*first, *second, *began}) == 3 * len(first)


@pytest.mark.parametrize("loss", ["-1", "nan"])
def test_a_loss_below_nothing_is_refused_in_the_unit_of_the_option(searched, loss):
    folder, _, _ = searched
    done = CliRunner().invoke(app, ["fit", str(folder / "mine.keras"), f"--max-loss={loss}"])
    assert f"--max-loss: '{loss}' is no loss; wanted a text in per cent" in str(done.exception)


def test_wrong_limits_and_folders_are_refused_before_anything_is_trained(searched, tmp_path):
    folder, data, _ = searched
    target = fp.Target.of("pynq-z2")
    with pytest.raises(ConfigError, match="share is 2"):
        fp.fit(folder / "mine.keras", data, target, out=tmp_path / "a", share=2)
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "thesis.tex").write_text("mine")
    with pytest.raises(RunError, match=r"holds 'thesis.tex', which is of no search"):
        fp.fit(folder / "mine.keras", str(folder / "mine.npz"), target, out=tmp_path / "b")
    with pytest.raises(ConfigError, match="data is a int; wanted"):
        fp.fit(folder / "mine.keras", 3, target, out=tmp_path / "c")


@pytest.mark.slow
def test_a_second_search_on_two_workers_runs_no_trial_again(searched, tmp_path):
    """It may take another way: it has time of its own, and what has ended leaves workers free for other trials."""
    pytest.importorskip("distributed")
    folder, data, _ = searched
    given = {"max_loss": "5 %", "out": tmp_path / "out", "minutes": 1, "epochs": 4, "workers": 2}
    found = fp.fit(folder / "mine.keras", data, fp.Target.of("pynq-z2"), **given)
    assert found.meets_limits
    assert verify_run(tmp_path / "out" / "best")[1] == []
    kept = {path: path.stat().st_mtime_ns for path in (tmp_path / "out" / "trials").glob("*.json")}
    assert len(kept) > len(found.points)
    again = fp.fit(folder / "mine.keras", data, fp.Target.of("pynq-z2"), **given)
    assert again.meets_limits
    assert found.points[0] == again.points[0]
    assert {path: path.stat().st_mtime_ns for path in kept} == kept


@pytest.mark.slow
def test_the_benchmark_beside_exhaustive_search_runs():
    script = Path(__file__).parents[1] / "benchmarks" / "bench_fit_exhaustive.py"
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "| 1 % |" in done.stdout
