"""`fp.estimate` on synthetic designs."""

import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

import fpgaprune as fp
from fpgaprune.design import Unknown
from fpgaprune.errors import EstimateError
from fpgaprune.measure import Estimate, Resources
from fpgaprune.target import Part, Target

from .designs import cnn, mlp

TARGET = Target.of("xc7z020clg400-1")


@pytest.mark.parametrize("io_type", ["io_stream", "io_parallel"])
@pytest.mark.parametrize(("strategy", "reuse"), [("latency", 1), ("latency", 2), ("resource", 1), ("resource", 2)])
@pytest.mark.parametrize("backend", ["Vivado", "Vitis"])
def test_every_layer_is_priced(io_type, strategy, reuse, backend):
    design = cnn(io_type, strategy, reuse, backend=backend)
    made = fp.estimate(design, TARGET)
    assert [layer.name for layer in made.layers] == [layer.name for layer in design.layers]
    for stage in ("csynth", "synth"):
        for resource in ("lut", "ff", "dsp", "bram18"):
            figure = getattr(made.total[stage], resource)
            assert 0 <= figure.low <= figure.value <= figure.high
    assert made.total["csynth"].lut.value > 500
    assert made.total["synth"].lut.value < made.total["csynth"].lut.value
    assert made.latency_cycles >= made.interval_cycles >= 1


def test_json_has_the_agreed_names():
    document = fp.estimate(cnn(), TARGET).to_json()
    assert json.loads(json.dumps(document)) == document
    assert sorted(document) == sorted(
        [
            "design",
            "target",
            "total",
            "latency_cycles",
            "interval_cycles",
            "latency_us",
            "fits",
            "fits_upper",
            "binding",
            "notes",
            "layers",
        ]
    )
    assert sorted(document["target"]) == sorted(
        ["part", "order_number", "clock_ns", "io_type", "strategy", "reuse_factor", "backend", "board"]
    )
    assert sorted(document["total"]) == ["csynth", "synth"]
    assert sorted(document["total"]["synth"]) == ["bram18", "dsp", "ff", "lut"]
    assert sorted(document["total"]["synth"]["lut"]) == ["high", "low", "value"]
    assert sorted(document["binding"]) == ["capacity", "layer", "resource", "stage", "used"]
    layers = {layer["name"]: layer for layer in document["layers"]}
    assert layers["relu"]["multiplications"] is None
    counted = layers["conv"]["multiplications"]
    assert counted["total"] == 72 == sum(counted[k] for k in ("zero", "power_of_two", "few_digits", "many_digits"))
    assert document["latency_us"] == pytest.approx(document["latency_cycles"] * TARGET.clock_ns / 1000)


def test_the_function_and_the_package_of_one_name():
    code = (
        "import fpgaprune as fp; before = fp.estimate; import fpgaprune.estimate; "
        "from fpgaprune.estimate.pricing import estimate; from fpgaprune import estimate as third; "
        "import sys; assert before is fp.estimate is estimate is third, fp.estimate; "
        "assert sys.modules['fpgaprune.estimate'].estimate is fp.estimate; "
        "assert not {'tensorflow', 'keras', 'hls4ml', 'scipy'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)


def test_fits_is_judged_on_the_synth_stage():
    made = fp.estimate(cnn(), TARGET)
    used = made.total["synth"].lut.value
    assert used < made.total["csynth"].lut.value

    def on(lut):
        part = Part("p", "f", "v", lut, None, None, None, None, "s", "2020-01-01")
        return fp.estimate(cnn(), Target(part, "xc7z020"))

    assert on(used).fits is True
    assert on(used - 1).fits is False
    assert on(used).binding.resource == "lut"
    assert on(used).binding.used == used
    nothing = on(None)
    assert nothing.fits is None
    assert nothing.binding is None
    assert any("not judged" in note for note in nothing.notes)


def test_an_unknown_layer_is_left_out_and_named():
    design = mlp()
    odd = replace(design.layers[2], operation=Unknown("Wavelet"))
    whole = fp.estimate(design, TARGET)
    made = fp.estimate(replace(design, layers=(*design.layers[:2], odd, *design.layers[3:])), TARGET)
    assert made.notes[0].startswith("layer 'relu' is a 'Wavelet', which no hardware model prices; known classes: ")
    assert made.layers[2].synth == made.layers[2].csynth == Resources()
    assert 0 < made.total["synth"].lut.value < whole.total["synth"].lut.value
    assert (whole.fits, made.fits, made.fits_upper) == (True, None, None)
    full = replace(TARGET, part=replace(TARGET.part, lut=1))
    assert fp.estimate(replace(design, layers=(*design.layers[:2], odd, *design.layers[3:])), full).fits is False


def test_a_design_of_unknown_layers_alone_is_refused():
    design = mlp()
    odd = replace(design.layers[1], operation=Unknown("Wavelet"))
    with pytest.raises(EstimateError, match="is a 'Wavelet', which no hardware model prices"):
        fp.estimate(replace(design, layers=(design.layers[0], odd), outputs=(odd.name,)), TARGET)


def test_a_backend_without_reports_is_refused():
    with pytest.raises(EstimateError, match="'oneAPI', for which no reports were calibrated"):
        fp.estimate(replace(mlp(), backend="oneAPI"), TARGET)


def test_what_only_our_verilog_can_be_names_the_function_that_estimates_it():
    verilog = replace(mlp(), backend="Verilog")
    with pytest.raises(
        EstimateError,
        match=r"was made for our Verilog, .*: estimate it with fp\.verilog_price\(design, family\) of ecp5, gowin, ",
    ):
        fp.estimate(verilog, TARGET)
    with pytest.raises(EstimateError, match=r"no tool of Lattice builds an hls4ml .* with fp\.verilog_price\(design"):
        fp.estimate(mlp(), Target.of("lfe5u-25f"))


def test_a_reuse_factor_that_does_not_divide_is_moved_and_said():
    moved, legal = (fp.estimate(mlp(reuse=reuse, strategy="resource"), TARGET) for reuse in (7, 8))
    assert moved.layers[1] == legal.layers[1]
    assert moved.notes[0] == (
        "layer 'fc1' (16 inputs, 12 outputs) has reuse factor 8, the nearest to 7 that strategy 'resource' can build"
    )
    assert moved.fits is not None


def test_without_target_the_part_of_the_design_counts():
    assert fp.estimate(mlp()).target.part.name == "xc7z020"
    with pytest.raises(EstimateError, match="names no part"):
        fp.estimate(replace(mlp(), part=None))


def test_zeros_in_the_resource_strategy_save_nothing_and_it_says_so():
    dense, sparse = mlp(4, "resource", zeros=0.0), mlp(4, "resource", zeros=0.9)
    a, b = fp.estimate(dense, TARGET), fp.estimate(sparse, TARGET)
    assert a.total == b.total
    assert any("save 0" in note and "fc1" in note for note in b.notes)


def test_zeros_in_the_latency_strategy_leave_no_hardware():
    a, b = (fp.estimate(mlp(zeros=z, width=12), TARGET) for z in (0.0, 0.9))
    for resource in ("lut", "ff", "dsp"):
        assert getattr(b.total["synth"], resource).value < 0.5 * getattr(a.total["synth"], resource).value


def test_a_layer_of_zeros_has_no_multipliers():
    design = mlp(width=12)
    zeroed = replace(design.layers[1], weights={k: np.zeros_like(v) for k, v in design.layers[1].weights.items()})
    made = fp.estimate(replace(design, layers=(design.layers[0], zeroed, *design.layers[2:])), TARGET)
    assert made.layers[1].csynth.dsp.value == 0
    assert made.layers[1].csynth.lut.value == 0


def test_an_estimate_is_plain_data():
    made = fp.estimate(mlp(), TARGET)
    assert isinstance(made, Estimate)
    assert made == fp.estimate(mlp(), TARGET)
