"""Calibration with a user's own reports."""

from dataclasses import replace

import pytest

from fpgaprune.errors import EstimateError
from fpgaprune.estimate import (
    Calibration,
    ReportedDesign,
    build,
    calibration,
    coefficient_changes,
    design_features,
    errors_of_left_out,
    read_own_calibration,
    recalibrate,
    recalibration_errors,
    stage_figures,
    total_hardware,
    write_calibration,
)

from .designs import cnn, mlp

SHIPPED = calibration()
DESIGNS = {
    **{f"cnn{seed}": cnn(seed=seed, zeros=0.2 * seed) for seed in range(4)},
    **{f"mlp{seed}": mlp(seed=seed, width=12, zeros=0.2 * seed, backend="Vitis") for seed in range(4)},
}


def scaled(**factors):
    """The shipped coefficients, those named changed by a factor."""
    found = {
        name: replace(c, value=c.value * factors.get(name.replace(".", "_"), 1.0))
        for name, c in SHIPPED.coefficients.items()
    }
    return Calibration(found, SHIPPED.intervals)


def measured(truth, layers=True, synth=True):
    """What a tool would report if `truth` were how hardware is."""
    found = []
    for name, design in DESIGNS.items():
        features = replace(design_features(design), name=name)
        parts = build(features)

        def figures(hardware, stage):
            return {k: v for k, v in stage_figures(hardware, truth.rates)[stage].items() if k in ("lut", "ff")}

        whole = total_hardware(parts)
        by_layer = {
            layer.name: figures(hardware, "csynth")
            for layer, hardware in zip(features.layers, parts.layers, strict=True)
        }
        found.append(
            ReportedDesign(
                features, figures(whole, "csynth"), figures(whole, "synth") if synth else {}, by_layer if layers else {}
            )
        )
    return found


def worst(found):
    return {figure: max(by_design.values()) for figure, by_design in found.items()}


def test_reports_that_agree_change_no_estimate():
    fitted = recalibrate(measured(SHIPPED), SHIPPED)
    assert all(error < 1e-4 for error in worst(recalibration_errors(measured(SHIPPED), fitted)).values())


@pytest.mark.parametrize("layers", [True, False])
def test_another_tool_is_learnt_also_for_designs_left_out(layers):
    truth = scaled(lut_add_bit=1.8, lut_shift_add_bit=1.8, ff_adder_bit=1.5, synth_lut_logic=0.6)
    reports = measured(truth, layers)
    before, left = worst(recalibration_errors(reports, SHIPPED)), worst(errors_of_left_out(reports, SHIPPED))
    assert before["csynth.lut"] > 0.15
    assert left["csynth.lut"] < before["csynth.lut"] / 2
    assert left["synth.lut"] < before["synth.lut"]


def test_two_reports_halve_the_error_of_designs_like_them():
    reports = measured(scaled(lut_add_bit=1.8, lut_shift_add_bit=1.8))
    by_name = {one.design.name: one for one in reports}
    fitted = recalibrate([by_name["mlp0"], by_name["mlp3"]], SHIPPED)
    like_them = [by_name["mlp1"], by_name["mlp2"]]
    before, after = worst(recalibration_errors(like_them, SHIPPED)), worst(recalibration_errors(like_them, fitted))
    assert before["csynth.lut"] > 0.15
    assert after["csynth.lut"] < before["csynth.lut"] / 2


def test_rows_of_layers_count_where_the_whole_has_no_figure():
    reports = measured(scaled(lut_add_bit=2.0))
    wrong = {name: {"lut": 1.0, "ff": 1.0} for name in ("fc1", "fc2", "conv1")}
    with_whole = recalibrate([replace(one, layers=wrong) for one in reports], SHIPPED)
    assert with_whole.values == recalibrate(reports, SHIPPED).values
    layers_alone = recalibrate([replace(one, csynth={}) for one in reports], SHIPPED)
    assert layers_alone.values["lut.add_bit"] > 1.5 * SHIPPED.values["lut.add_bit"]


def test_what_no_report_shows_stays():
    only_mlps = [one for one in measured(scaled(lut_add_bit=2.0)) if one.design.name.startswith("mlp")]
    fitted = recalibrate(only_mlps, SHIPPED)
    moved = {c.name for c in coefficient_changes(SHIPPED.coefficients, fitted.coefficients)}
    assert moved
    assert not any("fifo" in name or "line" in name for name in moved)
    assert fitted.intervals == SHIPPED.intervals


def test_logic_synthesis_is_learnt_from_its_own_reports_only():
    without = recalibrate(measured(scaled(synth_lut_logic=0.3), synth=False), SHIPPED)
    with_them = recalibrate(measured(scaled(synth_lut_logic=0.3)), SHIPPED)
    name = "synth.lut_logic"
    assert without.values[name] == SHIPPED.values[name]
    assert with_them.values[name] < 0.7 * SHIPPED.values[name]


def test_one_design_cannot_be_left_out():
    assert errors_of_left_out(measured(SHIPPED)[:1], SHIPPED) == {}


def test_designs_without_figures_are_refused():
    empty = [replace(one, csynth={}, synth={}, layers={}) for one in measured(SHIPPED)]
    with pytest.raises(EstimateError, match="no design has a vendor report"):
        recalibrate(empty, SHIPPED)


def test_a_calibration_that_lacks_a_coefficient_is_refused(tmp_path):
    whole = write_calibration(tmp_path / "whole.toml", SHIPPED, "A test.")
    assert read_own_calibration(whole).values == pytest.approx(SHIPPED.values, rel=1e-4)
    lacking = Calibration({k: c for k, c in SHIPPED.coefficients.items() if k != "lut.add_bit"}, {})
    path = write_calibration(tmp_path / "lacking.toml", lacking, "A test.")
    with pytest.raises(EstimateError, match=r"lacks lut.add_bit; write it anew"):
        read_own_calibration(path)
    path = write_calibration(tmp_path / "negative.toml", scaled(lut_add_bit=-1.0), "A test.")
    with pytest.raises(EstimateError, match=r"has lut.add_bit = -.*wanted a number from 0 on"):
        read_own_calibration(path)
