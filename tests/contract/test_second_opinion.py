"""The ONNX route and the direct route make one design, for every network, io type, strategy and backend."""

import shutil
from importlib.util import find_spec

import pytest

import fpgaprune as fp
from fpgaprune.errors import UnsupportedLayerError

from .hls_contract import CASES, NETWORKS, Case, build

pytestmark = pytest.mark.skipif(
    find_spec("qonnx") is None, reason="qonnx, which cleans ONNX files for hls4ml, is not installed"
)
MADE = [case for case in CASES if case.refusal is None]
QUICK = [
    *(Case("Vitis", "io_parallel", "latency", network) for network in NETWORKS),
    Case("Vivado", "io_stream", "resource_unrolled", "residual"),
    Case("VivadoAccelerator", "io_parallel", "resource", "conv1d"),
    Case("Quartus", "io_stream", "resource", "mlp"),
    Case("oneAPI", "io_stream", "resource", "cnn"),
    Case("Catapult", "io_parallel", "latency", "depthwise"),
    Case("Libero", "io_parallel", "resource", "mlp"),
]
# Backends whose arithmetic is emulated.
EMULATED = {"Vitis", "Vivado", "VivadoAccelerator", "Quartus", "Catapult"}


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """The ONNX file of each network, with a free batch axis."""
    folder = tmp_path_factory.mktemp("onnx")
    found = {}

    def export(network, model):
        if network not in found:
            found[network] = fp.export_onnx(model, folder / f"{network}.onnx")
        return found[network]

    return export


def check(case, exported):
    if case.strategy == "distributed_arithmetic":
        pytest.importorskip("da4ml", reason="da4ml, which makes the adders, is not installed")
    model, _, target, x = build(case)
    path = exported(case.network, model)
    design = fp.make_design(model, target, x)
    if case.network == "depthwise" and case.strategy == "resource":
        with pytest.raises(
            UnsupportedLayerError, match=r"'second' of depthwise\.onnx is a DepthwiseConv2D with strategy"
        ):
            fp.second_opinion(path, design)
        return
    opinion = fp.second_opinion(path, design).require()
    assert opinion.samples == (32 if case.backend in EMULATED else 0)
    second = opinion.design
    assert [layer.kind for layer in second.layers] == [layer.kind for layer in design.layers]
    for layer in design.layers:
        other = second[layer.name]
        assert {role: str(kind) for role, kind in layer.types.items()} == {
            role: str(kind) for role, kind in other.types.items()
        }
        assert layer.weights.keys() == other.weights.keys()
        for role, raw in layer.weights.items():
            assert raw.tobytes() == other.weights[role].tobytes()
    if case.backend in EMULATED:
        assert fp.emulate(design, x).tobytes() == fp.emulate(second, x).tobytes()


@pytest.mark.parametrize("case", QUICK, ids=str)
def test_both_routes_make_one_design(case, exported):
    check(case, exported)


@pytest.mark.slow
@pytest.mark.parametrize("case", MADE, ids=str)
def test_both_routes_make_one_design_in_the_whole_table(case, exported):
    check(case, exported)


def test_the_quick_cases_meet_every_backend_io_type_strategy_and_network():
    for place in range(4):
        values = [(c.backend, c.io_type, c.strategy, c.network)[place] for c in QUICK]
        # The adders of 'distributed_arithmetic' take longer than all others together: they are in the whole table.
        wanted = {(c.backend, c.io_type, c.strategy, c.network)[place] for c in CASES} - {"distributed_arithmetic"}
        assert set(values) == wanted


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is not on PATH: the C simulation cannot be compiled")
def test_the_second_design_has_the_bits_of_the_compiled_project(exported, tmp_path):
    case = Case("Vitis", "io_parallel", "latency", "mlp")
    model, _, target, x = build(case)
    project = fp.to_hls(model, target, x, tmp_path / "hls")
    second = fp.design_from_onnx(exported("mlp", model), project.design)
    assert project.compile(600).predict(x).tobytes() == fp.emulate(second, x).tobytes()
