"""Known-bad models and files that the checks of the estimator must catch."""

import numpy as np
import pytest

from fpgaprune.errors import EstimateError
from fpgaprune.estimate import (
    Equation,
    calibration,
    estimate,
    multiplications,
    predict_row,
    read_calibration,
    write_calibration,
)
from fpgaprune.estimate.fit import fit
from fpgaprune.target import Target
from tests.benchmarks.leave_out import covered, covered_by_others, interval_factors, predict_left_out, ratios
from tests.property.test_estimate_monotone import figures, more_zeros
from tests.unit.estimate.designs import mlp
from tests.unit.estimate.test_rows import dense, row

from .changed_code import change

TARGET = Target.of("xc7z020clg400-1")


def is_monotone(seeds=range(5)):
    for seed in seeds:
        design = mlp(seed=seed, width=12, zeros=0.1)
        pruned = more_zeros(design, np.random.default_rng(seed), 0.5)
        for before, after in zip(figures(design, TARGET), figures(pruned, TARGET), strict=True):
            if any(after[name] > before[name] + 1e-9 for name in before):
                return False
    return True


def test_a_model_that_charges_for_zeros_is_caught(monkeypatch):
    assert is_monotone()
    honest = "adds * (width + _CARRY)"
    change(monkeypatch, multiplications, honest, f"{honest} + 100 * products.zero")
    assert not is_monotone()


def test_a_model_blind_to_zeros_is_caught(monkeypatch):
    full, pruned = mlp(zeros=0.0, width=12), mlp(zeros=0.9, width=12)

    def saves():
        return estimate(pruned, TARGET).total["synth"].dsp.value < estimate(full, TARGET).total["synth"].dsp.value

    assert saves()
    blind = "replace(layer, products=replace(layer.products, zero=0, distinct_many=float(layer.products.total)))"
    change(monkeypatch, multiplications, "return _unrolled(layer, design)", f"return _unrolled({blind}, design)")
    assert not saves()


def rows_of(repos, scale=1.0):
    """Rows whose truth is the model's own answer times `scale`, and nothing else."""
    made = []
    for repo in repos:
        for size in (8, 16, 24, 32):
            one = row(dense(size, 8), id=f"{repo}{size}", repo=repo, standard_templates=True, clean=True, commit="0")
            figures = predict_row(one)["csynth"]
            truth = {"LUT": figures["LUT"] * scale, "FF": figures["FF"], "DSP": figures["DSP"], "BRAM18": 0,
                     "latency_max": figures["latency_cycles"], "II": figures["interval_cycles"]}  # fmt: skip
            one["layers"][0]["truth"] = {"LUT": truth["LUT"], "FF": truth["FF"], "module": "m"}
            made.append(one | {"truth": {"csynth": truth}})
    return made


def test_the_left_out_repository_has_no_part_in_its_prediction():
    start = calibration().coefficients
    rows = rows_of("ABC")
    spoiled = [r if r["repo"] != "A" else rows_of("A", 50.0)[i] for i, r in enumerate(rows)]

    def of(repo, predictions):
        return [p for p in predictions if p["id"].startswith(repo)]

    honest, after = predict_left_out(rows, start), predict_left_out(spoiled, start)
    assert of("A", honest) == of("A", after)
    assert of("B", honest) != of("B", after)


def test_intervals_that_are_too_narrow_are_caught():
    start = calibration().coefficients
    rng = np.random.default_rng(0)
    rows = rows_of("ABCDE")
    for one in rows:
        one["truth"]["csynth"]["LUT"] *= float(np.exp(rng.normal(0, 0.4)))
    predictions = predict_left_out(rows, start)
    found = ratios(rows, predictions)
    factors = interval_factors(found)
    assert 0.7 <= covered(rows, predictions, factors)["csynth.lut"] <= 0.9
    narrow = dict.fromkeys(factors, (0.99, 1.01))
    assert covered(rows, predictions, narrow)["csynth.lut"] < 0.7


def test_factors_hold_designs_of_a_repository_that_errs_as_a_whole():
    rng = np.random.default_rng(0)
    found = {
        "csynth.lut": [(repo, float(np.exp(away))) for repo in "ABCDEFGHIJKL" for away in [rng.normal(0, 0.4)] * 6]
    }
    low, high = interval_factors(found)["csynth.lut"]
    shares = covered_by_others(found)
    assert shares["csynth.lut"] is not None
    assert shares["csynth.lut"] >= 0.8
    truths = [ratio for _, ratio in found["csynth.lut"]]
    # The middle 80 % of the designs would leave out more than one repository at an end.
    assert low <= sorted(set(truths))[1]
    assert high >= sorted(set(truths))[-2]


def test_the_fit_finds_the_coefficients_that_made_the_equations():
    start = calibration().coefficients
    rng = np.random.default_rng(1)
    truth = {"add_bit": 1.7, "multiply_dsp": 3.0, "process": 120.0}
    found = []
    for index in range(60):
        quantities = {"add_bit": rng.uniform(100, 9000), "multiply_dsp": rng.uniform(10, 500), "process": 1.0}
        actual = sum(truth[k] * v for k, v in quantities.items())
        found.append(Equation("ABC"[index % 3], "layer", quantities, actual * (50 if index == 7 else 1)))
    fitted = fit(found, start, "lut")
    assert fitted["lut.add_bit"] == pytest.approx(1.7, rel=0.03)
    assert fitted["lut.multiply_dsp"] == pytest.approx(3.0, rel=0.2)
    # What no equation shows stays at its prior.
    assert fitted["lut.pad_bit"] == pytest.approx(start["lut.pad_bit"].prior, rel=1e-3)


def test_calibration_files_come_back_whole(tmp_path):
    path = write_calibration(tmp_path / "c.toml", calibration(), "A test.")
    again = read_calibration(path)
    assert list(again.intervals) == list(calibration().intervals)
    for figure, factors in calibration().intervals.items():
        assert again.intervals[figure] == pytest.approx(factors, rel=1e-3)
    assert list(again.coefficients) == list(calibration().coefficients)
    assert again.values == pytest.approx(calibration().values, rel=1e-4)


@pytest.mark.parametrize(
    "text", ["", "not toml [", "[[coefficient]]\nname = 'x'\n", "[[coefficient]]\nname = 'x'\nvalue = 1\nodd = 2\n"]
)
def test_a_damaged_calibration_is_refused(tmp_path, text):
    path = tmp_path / "c.toml"
    path.write_text(text)
    with pytest.raises(EstimateError, match=r"is malformed|is not TOML"):
        read_calibration(path)
    with pytest.raises(EstimateError, match="does not exist"):
        read_calibration(tmp_path / "none.toml")


def test_every_coefficient_has_meaning_unit_and_sense():
    for c in calibration().coefficients.values():
        assert c.value >= 0
        assert c.prior > 0
        assert len(c.meaning) > 10
        assert c.unit
        assert "per" in c.unit
