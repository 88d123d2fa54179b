"""An estimate is read back as it was written, and nothing else is taken for one."""

import json
import math

import pytest

import fpgaprune as fp
from fpgaprune.errors import ReportError
from fpgaprune.layout import Advice
from fpgaprune.measure import PRICED, Estimate

from ..estimate.designs import cnn

TARGET = fp.Target.of("xc7z020clg400-1")


@pytest.fixture
def written():
    return json.loads(json.dumps(fp.estimate(cnn(), TARGET).to_json()))


def test_an_estimate_is_read_back(written):
    made = fp.estimate(cnn(), TARGET)
    assert Estimate.from_json(written, TARGET) == made
    assert Estimate.from_json(written, TARGET).to_json() == written


def test_advice_is_read_back():
    advice = fp.advise(cnn(), fp.Target.of("xc7s6"))
    assert advice.needed
    assert Advice.from_json(json.loads(json.dumps(advice.to_json()))) == advice


def test_a_stored_verdict_is_not_believed(written):
    """It follows from the figures and the part."""
    changed = {"fits": not written["fits"], "fits_upper": None, "binding": None}
    assert Estimate.from_json({**written, **changed}, TARGET).to_json() == written
    assert written["binding"]["layer"] == fp.estimate(cnn(), TARGET).largest(written["binding"]["resource"])


def test_every_figure_has_its_stage():
    made = fp.estimate(cnn(), TARGET)
    for stage in PRICED:
        assert made.at(stage).stage == made.layers[0].at(stage).stage == stage
        assert made.at(stage).resources == made.total[stage.step]
    assert [made.at(stage).cycles.latency_max for stage in PRICED] == [made.latency_cycles, None]


@pytest.mark.parametrize("value", [math.nan, math.inf, True, "3", 1.5])
def test_a_figure_that_is_no_number_is_refused(written, value):
    written["total"]["synth"]["lut"]["value"] = value
    with pytest.raises(ReportError, match=r"an estimate is not what fpgaprune wrote: Expected `int`, got .*lut.value"):
        Estimate.from_json(written, TARGET)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"total": 3}, "Expected `object`, got `int` - at `$.total`"),
        ({"total": {"synth": {"lut": {"value": 1, "low": 1, "high": 1, "stage": "route"}}}}, "unknown field `stage`"),
        ({"layers": None}, "Expected `array`, got `null`"),
        ({"latency_cycles": True}, "Expected `int`, got `bool`"),
    ],
)
def test_malformed_estimates_are_refused(written, change, message):
    with pytest.raises(ReportError) as caught:
        Estimate.from_json({**written, **change}, TARGET)
    assert message in str(caught.value)
