"""The stage `opinion` where nobody asks for it, or where it cannot be done."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest

from fpgaprune.design import Design
from fpgaprune.fixed import FixedType
from fpgaprune.flow.config import parse_config
from fpgaprune.flow.stages.opinion import opinion, opinion_checks
from fpgaprune.hls import layer_of


def context(folder, **export):
    kind = FixedType(8, 3)
    entry = layer_of("x", "Input", (), (4,), {"result": kind})
    dense = layer_of(
        "d", "Dense", ("x",), (1,), {"result": kind, "weight": kind}, {"weight": np.ones((4, 1), np.int64)}
    )
    Design("network", (entry, dense), ("d",)).save(folder / "design.json")
    config = parse_config({"export": export}, "test")
    return SimpleNamespace(config=config, run=SimpleNamespace(file=lambda name: folder / name))


def test_nothing_is_done_where_nobody_asks(tmp_path):
    assert opinion(context(tmp_path)) == {}
    assert opinion_checks({}) == []


def test_a_file_for_several_samples_is_left_out(tmp_path):
    said = opinion(context(tmp_path, second_opinion=True, batch=3))
    assert said == {"left_out": "model.onnx takes 3 samples at a time; hardware takes one"}
    (check,) = opinion_checks(said)
    assert check.left_out == said["left_out"]
    assert check.holds is None


def test_without_qonnx_it_is_left_out_and_said(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "qonnx", None)
    monkeypatch.setitem(sys.modules, "qonnx.core.modelwrapper", None)
    said = opinion(context(tmp_path, second_opinion=True))
    assert "pip install 'fpgaprune[second-opinion]'" in said["left_out"]


@pytest.mark.parametrize(("differences", "unlike", "holds"), [(0, 0, True), (2, 0, False), (0, 3, False)])
def test_the_report_says_what_was_found(differences, unlike, holds):
    checks = opinion_checks({"differences": differences, "samples": 32, "unlike": unlike})
    assert all(check.holds for check in checks) == holds
