"""What goes to the machine with the vendor's tool: golden samples, a test bench that compares, a program of its own."""

import shutil
import subprocess
from dataclasses import replace

import keras
import numpy as np
import pytest
from keras import layers

import fpgaprune as fp
from fpgaprune.errors import HlsError, ToolError
from fpgaprune.hls import accelerator_form

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is not installed")
GOLDEN = "tb_data/tb_output_predictions.dat"
X = np.random.default_rng(5).random((40, 6), dtype=np.float32)


def network():
    keras.utils.set_random_seed(2)
    entry = keras.Input((6,), name="measured")
    hidden = layers.Dense(4, activation="relu", name="hidden")(entry)
    return keras.Model(entry, [layers.Dense(3, name="one")(hidden), layers.Dense(2, name="two")(hidden)], name="net")


def written(folder, backend="Vitis", io_type="io_stream", model=None, **more):
    target = fp.Target.of("xc7z020clg400-1", io_type=io_type, strategy="latency")
    return fp.to_hls(model or network(), replace(target, backend=backend), X, folder, name="net", **more)


def compile_bench(folder, *sources):
    weights = '-DWEIGHTS_DIR="firmware/weights"'
    command = ["g++", "-O0", "-w", "-std=c++11", "-Ifirmware/ap_types", weights, "net_test.cpp", "firmware/net.cpp"]
    subprocess.run([*command, *sources, "-o", "bench"], cwd=folder, check=True)


def run_bench(folder):
    """The test bench's exit status and what it printed."""
    ran = subprocess.run(["./bench"], cwd=folder, capture_output=True, text=True)
    return ran.returncode, ran.stdout


def change_one_number(folder):
    path = folder / GOLDEN
    lines = [line.split() for line in path.read_text().splitlines()]
    lines[3][1] = repr(float(lines[3][1]) + 2.0**-12)
    path.write_text("".join(" ".join(line) + "\n" for line in lines))


def test_the_test_bench_compares_with_the_emulation_in_every_bit(tmp_path):
    project = written(tmp_path / "hls", golden=X[30:])
    inputs, outputs = (
        np.loadtxt(tmp_path / "hls" / name, dtype=kind)
        for name, kind in (("tb_data/tb_input_features.dat", np.float32), (GOLDEN, np.float64))
    )
    assert np.array_equal(inputs, X[30:])
    assert np.array_equal(outputs, np.concatenate(fp.emulate(project.design, X[30:]), axis=1))
    assert "holds 10 samples" in (tmp_path / "hls" / "README.md").read_text()
    compile_bench(tmp_path / "hls")
    status, said = run_bench(tmp_path / "hls")
    assert status == 0
    assert "All 50 outputs are the golden ones" in said
    change_one_number(tmp_path / "hls")
    status, said = run_bench(tmp_path / "hls")
    assert status == 1
    assert "ERROR: 1 of 50 outputs are not the golden ones, the first in sample 3 (output 1)" in said


def test_the_accelerators_bench_compares_too(tmp_path):
    model = network()
    single = keras.Model(model.inputs, model.outputs[0])
    design = written(tmp_path / "hls", "VivadoAccelerator", model=single).design
    form = accelerator_form(design, tmp_path / "hls", {})
    assert form == {"board": "pynq-z2", "in": {"shape": [6], "type": "float"}, "out": {"shape": [3], "type": "float"}}
    compile_bench(tmp_path / "hls", "firmware/net_axi.cpp")
    assert run_bench(tmp_path / "hls")[0] == 0
    change_one_number(tmp_path / "hls")
    assert run_bench(tmp_path / "hls")[0] == 1
    text = (tmp_path / "hls" / "README.md").read_text()
    assert "axi_stream_driver.py" in text
    assert "bitfile=" not in text


def test_golden_samples_are_some_of_the_data_or_none(tmp_path):
    written(tmp_path / "some")
    assert len((tmp_path / "some" / GOLDEN).read_text().splitlines()) == 32
    with pytest.raises(HlsError, match="there is no golden sample"):
        written(tmp_path / "bad", golden=X[:0])
    assert not (tmp_path / "bad").exists()


def test_a_crash_in_the_compiled_network_leaves_python_alone(tmp_path):
    project = written(tmp_path / "hls")
    source = tmp_path / "hls" / "firmware" / "net.cpp"
    text = source.read_text()
    mark = "    // NETWORK INSTANTIATION"
    assert mark in text
    source.write_text("#include <cassert>\n" + text.replace(mark, "static int n = 0; assert(n++ < 2);\n" + mark))
    with pytest.raises(ToolError, match="ended by SIGABRT"):
        project.predict(X)


# The demo of `test_flow.py` compares what is compiled each time, and the bench above is compiled too.
@pytest.mark.slow
def test_what_is_compiled_gives_the_emulators_bits_and_is_compiled_to_run_fast(tmp_path):
    project = written(tmp_path / "hls", io_type="io_parallel")
    ran = project.compile().run(X, seconds=60.0)
    assert ran.samples == ran.asked == 40
    for given, wanted in zip(ran.outputs, fp.emulate(project.design, X), strict=True):
        assert given.tobytes() == wanted.astype(np.float32).tobytes()
    header = (tmp_path / "hls" / "firmware" / "ap_types" / "etc" / "ap_private.h").read_text()
    # Once for volatile objects and once for others, in the class of one word and in that of several.
    assert header.count("INLINE void clearUnusedBits(void) volatile") == 2
    assert header.count("INLINE void clearUnusedBits(void)\n") == 2
    assert "-O1" in (tmp_path / "hls" / "build_lib.sh").read_text()
