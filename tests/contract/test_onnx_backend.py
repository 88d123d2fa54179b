"""onnx's own back-end tests: each case passes, or is refused by the name of its node; none gives other numbers."""

from collections import Counter, defaultdict

import numpy as np
import pytest

from tests.contract.onnx_backend import cases, outcome
from tests.teeth.changed_code import change

# Operators, with the least number of cases that must pass; the counts of onnx 1.23.
PASSED = {
    "Conv": 25,
    "Gemm": 9,
    "MatMul": 2,
    "Add": 3,
    "Sub": 3,
    "Mul": 3,
    "Div": 2,
    "Relu": 2,
    "LeakyRelu": 4,
    "PRelu": 4,
    "Clip": 4,
    "Sigmoid": 2,
    "Tanh": 2,
    "HardSigmoid": 3,
    "HardSwish": 1,
    "Gelu": 1,
    "Softmax": 10,
    "BatchNormalization": 7,
    "MaxPool": 13,
    "AveragePool": 13,
    "GlobalAveragePool": 2,
    "GlobalMaxPool": 2,
    "ReduceMean": 6,
    "Flatten": 4,
    "Reshape": 7,
    "Squeeze": 3,
    "Unsqueeze": 8,
    "Transpose": 5,
    "Concat": 8,
    "Pad": 2,
    "Slice": 3,
    "Split": 8,
    "Resize": 4,
    "Identity": 1,
    "Dropout": 3,
}


def test_small_cases_of_pytorch_pass_or_are_refused(tmp_path):
    """One for each set of operators and rank of its first input."""
    small = [case for case in cases() if case.kind != "node"]
    chosen = {(case.operators, np.ndim(case.samples[0][0][0])): case for case in reversed(small)}
    assert len(chosen) > 50
    _require_none_wrong(chosen.values(), tmp_path)


@pytest.mark.slow
def test_every_case_passes_or_is_refused(tmp_path):
    found = _require_none_wrong(cases(), tmp_path)
    fewer = {operator: found[operator]["passed"] for operator in PASSED}
    assert {operator: count for operator, count in fewer.items() if count < PASSED[operator]} == {}


def _require_none_wrong(chosen, folder):
    counts = defaultdict(Counter)
    for case in chosen:
        verdict, reason = outcome(case, folder)
        assert verdict in ("passed", "refused"), (case.name, verdict, reason)
        if verdict == "refused":
            assert "case.onnx" in reason
            assert "\n" not in reason
        for operator in case.operators:
            counts[operator][verdict] += 1
    return counts


def test_a_wrong_result_is_seen(tmp_path, monkeypatch):
    """The comparison has teeth: with rows for columns, convolutions of PyTorch's cases give other numbers."""
    from fpgaprune.frontends.onnx.operators import convolution

    change(monkeypatch, convolution, "(*range(2, weight.ndim), 1, 0)", "(3, 2, 1, 0)")
    case = next(case for case in cases() if case.name == "test_Conv2d_padding")
    verdict, _ = outcome(case, tmp_path)
    assert verdict == "judged"
