"""What a stage found, in the manifest and back."""

import json

import numpy as np
import pytest

from fpgaprune.errors import RunError
from fpgaprune.flow import STAGES
from fpgaprune.flow.run import RunDirectory
from fpgaprune.flow.stages import Agreement, HlsResult, NotCompared, OutcomeLine, stage_named
from fpgaprune.flow.task import Loss

ADVICE = {"recommended": "latency", "layers": [1]}
AGREEMENT = Agreement(
    name="accuracy", value=0.5, error=0.1, samples=16, higher_is_better=True, is_fraction=True, lost=0.0,
    lost_error=0.0, agreement=0.75, of_trained=Loss(0.25, 0.125),
)  # fmt: skip
RESULT = HlsResult(
    advice=ADVICE, notes=(), free_locks={}, precision=None, emulation=AGREEMENT, simulation=NotCompared("no g++"),
    build=None,
)  # fmt: skip
PLAIN = {
    "advice": ADVICE, "notes": [], "free_locks": {}, "precision": None, "build": None, "links": [],
    "emulation": {
        "name": "accuracy", "value": 0.5, "error": 0.1, "samples": 16, "higher_is_better": True, "is_fraction": True,
        "lost": 0.0, "lost_error": 0.0, "agreement": 0.75, "of_trained": {"lost": 0.25, "lost_error": 0.125},
    },
    "simulation": {"left_out": "no g++"},
}  # fmt: skip


def test_a_result_is_written_without_what_is_unknown_and_read_again():
    plain = json.loads(json.dumps(RESULT.to_json()))
    assert plain == {key: value for key, value in PLAIN.items() if key != "links"}
    assert stage_named("hls").result_from(plain, "manifest.json") == RESULT
    assert stage_named("hls").result_from(PLAIN, "manifest.json").links == ()


def test_a_training_that_diverged_has_figures_that_are_no_numbers():
    lost = json.loads(json.dumps(RESULT.to_json()).replace("0.5", "NaN"))
    assert np.isnan(stage_named("hls").result_from(lost, "manifest.json").emulation.value)


@pytest.mark.parametrize("damage", [{"emulation": {"value": 0.5}}, {"notes": "text"}, {"simulation": [1]}])
def test_a_damaged_record_is_named(damage, tmp_path):
    run = RunDirectory(tmp_path)
    run.record("hls", "k", {}, {}, {**PLAIN, **damage}, 1.0)
    with pytest.raises(
        RunError, match=r"manifest.json: the results of stage 'hls' are damaged: .*; run the flow again"
    ):
        stage_named("hls").result_in(run)


def test_a_stage_that_was_not_asked_has_no_result(tmp_path):
    run = RunDirectory(tmp_path)
    run.record("quantise", "k", {}, {}, {}, 1.0)
    assert stage_named("quantise").result_in(run) is None


def test_the_terminal_is_given_lines_without_colours():
    first, second = stage_named("hls").outcome(RESULT)
    assert first == OutcomeLine("hardware    gives the same class as Keras for 75.00 % of 16 samples")
    assert second == OutcomeLine("compiled    left out: no g++")
    assert stage_named("hls").readings(RESULT)["hardware"].lost == 0.25


def test_every_stage_has_a_class_of_results():
    assert all(stage.result.__struct_fields__ for stage in STAGES)
