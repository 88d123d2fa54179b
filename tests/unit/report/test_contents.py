"""What a RunReport accepts, and what it writes as JSON."""

import json

import numpy as np
import pytest

from fpgaprune.errors import ReportError
from fpgaprune.report import Check, LayerReport, LinkSummary, Metric, give_answers, kernels_table

from .samples import conv, run_report


def test_json_carries_everything():
    report = run_report()
    document = json.loads(json.dumps(report.to_json(), allow_nan=False))
    assert document["before"] == report.before.to_json()
    assert document["layers"][1]["removed_outputs"] == [3, 5]
    mask = np.array([[bit == "1" for bit in row] for row in document["layers"][1]["mask"]])
    assert np.array_equal(mask, report.layers[1].mask)
    assert [check["holds"] for check in document["checks"]] == [True, None]
    assert document["target"]["part"]["name"] == "xc7z020"


def test_json_takes_numpy_scalars_and_names_what_it_cannot():
    assert run_report(seed=np.int64(3)).to_json()["seed"] == 3
    with pytest.raises(ReportError, match=r"^report\.versions\.keras is a set; wanted plain data"):
        run_report(versions={"keras": {1}}).to_json()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Metric("accuracy", 97.5, 0.9, 10, "d"), r"accuracy before is 97\.5; wanted a fraction of at most 1"),
        (lambda: Metric("accuracy", 0.5, float("nan"), 10, "d"), r"accuracy after is nan"),
        (lambda: Metric("accuracy", 0.5, 0.5, 0, "d"), r"measured on 0 samples"),
        (lambda: LinkSummary("onnx"), r"'onnx' has neither a figure nor a reason"),
        (lambda: Check("x", "y", 1.0, left_out="why"), r"'x' has both a figure and a reason"),
        (
            lambda: LayerReport("c", "Conv2D", 3, 1, (2, 2), (2, 2), 4, 4, np.ones((2, 2), bool)),
            r"layer 'c' says 3 kernels kept, 1 locked and 0 removed; its mask and its removed channels have 4, 0 and 0",
        ),
        (
            lambda: LayerReport("c", "Conv2D", 4, 0, (2, 3), (2, 2), 4, 4, np.ones((2, 2), bool)),
            r"mask of layer 'c' is bool \(2, 2\); wanted bool \(2, 3\)",
        ),
        (
            lambda: LayerReport("c", "Conv2D", 4, 0, (2, 2), (2, 2), 4, 4, np.ones((2, 2))),
            r"mask of layer 'c' is float64",
        ),
        (
            lambda: LayerReport("c", "Conv2D", 4, 0, (2, 2), (2, 1), 4, 4, None, (), (2,)),
            r"layer 'c' lost output channel 2; it has 2",
        ),
    ],
)
def test_contradictions_are_refused(make, message):
    with pytest.raises(ReportError, match=message):
        make()


def test_kernels_of_convolutions_are_not_added_to_weights_of_dense_layers():
    dense = LayerReport("d", "Dense", 1000, 0, (100, 10), (100, 10), 1010, 1010)
    mixed = run_report(layers=[conv("c", (4, 4), kept=0.0), dense])
    assert [layer.name for layer in mixed.kernel_layers] == ["c"]
    assert kernels_table(mixed).rows[-1][1:5] == ("0", "16", "0", "1.00")
    assert "16 of 16 kernels locked, sparsity 1.00" in give_answers(mixed)[2].lines
    assert kernels_table(run_report(layers=[dense])).rows[-1][1:5] == ("1,000", "0", "0", "0.00")


def test_a_layer_keeps_its_own_mask():
    mask = np.ones((2, 2), bool)
    layer = LayerReport("c", "Conv2D", 4, 0, (2, 2), (2, 2), 4, 4, mask)
    mask[0, 0] = False
    assert layer.mask is not None
    assert layer.mask.all()
    assert conv("c", (2, 2)).kernels_total == 4


@pytest.mark.parametrize(
    ("check", "holds"),
    [
        (Check("c", "q", 1e-6, 1e-5), True),
        (Check("c", "q", 1e-5, 1e-5), True),
        (Check("c", "q", 2e-5, 1e-5), False),
        (Check("c", "q", float("nan"), 1e-5), False),
        (Check("c", "q", float("nan")), False),
        (Check("c", "q", 0.99, 0.99, at_least=True), True),
        (Check("c", "q", 0.98, 0.99, at_least=True), False),
        (Check("c", "q", 0.98), None),
        (Check("c", "q", left_out="why"), None),
    ],
)
def test_whether_a_check_holds(check, holds):
    assert check.holds is holds
