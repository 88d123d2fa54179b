"""Sensitivity: what is measured, that the model is as before, and that it goes on where it stopped."""

import json
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from fpgaprune.errors import MaskError
from fpgaprune.select import Block, Point, Sensitivity, select, sensitivity
from fpgaprune.values import named_weights

from .fakes import fake_model, random_arrays


def mass(model):
    """A figure that every locked element lowers."""
    return float(sum(np.abs(v.numpy()).sum() for v in named_weights(model).values()))


@pytest.fixture
def model():
    return fake_model(random_arrays(0, (3, 4, 5)))


def bits(model):
    return {path: variable.numpy().tobytes() for path, variable in named_weights(model).items()}


def test_each_point_is_the_model_with_one_weight_pruned(model):
    before = bits(model)
    found = sensitivity(model, mass, (0.75, 0.25), criterion="l2")
    assert bits(model) == before
    assert found.baseline == mass(model)
    assert [(p.path, p.sparsity) for p in found.points] == [
        (path, sparsity) for path in ("conv1/kernel", "conv2/kernel") for sparsity in (0.25, 0.75)
    ]
    for point in found.points:
        mask = select(model, point.sparsity, criterion="l2", paths=[point.path])[point.path]
        weight = named_weights(model)[point.path].numpy()
        assert point.accuracy == pytest.approx(found.baseline - np.abs(weight[~mask]).sum())
        assert point.zeros == (~mask).mean()


def test_the_bits_are_back_after_a_failure_too(model):
    before = bits(model)
    calls = []

    def fails(network):
        calls.append(bits(network))
        if len(calls) == 3:
            raise RuntimeError("no more power")
        return 1.0

    with pytest.raises(RuntimeError, match="no more power"):
        sensitivity(model, fails, (0.5,))
    assert calls[2] != before
    assert bits(model) == before


def test_an_interrupted_run_goes_on_where_it_stopped(model, tmp_path):
    file = tmp_path / "sensitivity.json"
    calls = []

    def evaluate(network, stop_at=None):
        calls.append(bits(network))
        if len(calls) == stop_at:
            raise KeyboardInterrupt
        return mass(network)

    with pytest.raises(KeyboardInterrupt):
        sensitivity(model, lambda network: evaluate(network, 3), (0.25, 0.5), results=file)
    assert len(json.loads(file.read_text())["points"]) == 1
    told = []
    found = sensitivity(model, evaluate, (0.25, 0.5), results=file, progress=lambda *step: told.append(step))
    assert len(calls) == 3 + 3, "the baseline and the first point are not measured again"
    assert found == sensitivity(model, mass, (0.25, 0.5))
    assert told[-1] == (4, 4, "conv2/kernel at 0.5")
    # More sparsities later only add to it.
    sensitivity(model, evaluate, (0.25, 0.5, 0.75), results=file)
    assert len(calls) == 3 + 3 + 2


def test_results_of_another_question_are_refused(model, tmp_path):
    file = tmp_path / "sensitivity.json"
    sensitivity(model, mass, (0.5,), results=file)
    kept = file.read_bytes()
    for other, options in (
        (model, {"criterion": "l2"}),
        (model, {"granularity": Block((-1, -1, 2, 2))}),
        (fake_model(random_arrays(1, (3, 4, 5))), {}),
    ):
        with pytest.raises(MaskError, match="holds measurements of another model or with other options"):
            sensitivity(other, mass, (0.5,), results=file, **options)
    assert file.read_bytes() == kept
    for content in ("{", "[]", '{"format": 99}'):
        file.write_text(content)
        with pytest.raises(MaskError, match=r"is (no|not a) sensitivity file"):
            sensitivity(model, mass, (0.5,), results=file)


def test_what_cannot_be_reached_is_left_out(model):
    found = sensitivity(model, mass, (0.5, 1.0))
    assert {point.sparsity for point in found.points} == {0.5}


def test_reports(tmp_path):
    points = (Point("a/kernel", 0.5, 0.5, 0.9), Point("a/kernel", 0.75, 0.75, 0.5), Point("b/kernel", 0.5, 0.5, 0.95))
    found = Sensitivity(0.96, points, "accuracy on 360 held-out samples")
    assert found.to_json()["measure"] == "accuracy on 360 held-out samples"
    assert found.to_markdown() == (
        "Accuracy on 360 held-out samples, by the sparsity of one weight alone:\n\n"
        "| weight | 0 | 0.5 | 0.75 |\n|---|---:|---:|---:|\n"
        "| a/kernel | 0.9600 | 0.9000 | 0.5000 |\n| b/kernel | 0.9600 | 0.9500 |  |\n"
    )
    assert found.to_json()["points"][2] == {"path": "b/kernel", "sparsity": 0.5, "zeros": 0.5, "accuracy": 0.95}
    assert found.largest_sparsity("a/kernel", 0.1) == 0.5
    assert found.largest_sparsity("a/kernel", 0.01) is None
    ElementTree.parse(found.save_plot(tmp_path / "plot.svg"))  # noqa: S314 - our own file
    once = (tmp_path / "plot.svg").read_bytes()
    assert found.save_plot(tmp_path / "plot.svg").read_bytes() == once
    with pytest.raises(MaskError, match=r"wanted \.svg, \.png or \.pdf"):
        found.save_plot(tmp_path / "plot.gif")
    assert not (tmp_path / "plot.gif").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sparsities": (50,)}, r"sparsities are \[50\]; wanted fractions"),
        ({"sparsities": ()}, r"sparsities are \[\]"),
        ({"scope": "layer"}, "'scope' is no option here"),
        ({"criterion": "l9"}, "criterion 'l9' is unknown"),
    ],
)
def test_bad_options_are_named(model, options, message):
    before = bits(model)
    with pytest.raises(MaskError, match=message):
        sensitivity(model, mass, **options)
    assert bits(model) == before


def test_an_evaluation_without_a_number_is_refused(model):
    with pytest.raises(MaskError, match="the evaluation gave nan; wanted a finite number"):
        sensitivity(model, lambda network: float("nan"))
