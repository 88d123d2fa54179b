"""The flow as a user runs it: from the command line, in a process of its own; the demo in one that is started anew."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import keras
import numpy as np
import onnx
import pytest

from fpgaprune.network import read_keras_weights
from fpgaprune.values import MaskSet

from ..unit.fabric.fake_tools import fake_yosys
from ..unit.programs import write_program
from .warm_commands import command

pytestmark = pytest.mark.flow
COMMAND = [sys.executable, "-c", "from fpgaprune.cli import main; main()"]
# Every stage at its smallest.
TINY = """
name = "tiny"
seed = 3
[train]
epochs = 1
[select]
locks = ["conv2/kernel[:, :, 29, 13]", "conv3/kernel[:, :, :, 5]"]
sparsity = {sparsity}
[finetune]
epochs = 1
[export]
batch = 1
[hls]
simulate = 4
[verdict]
max_loss = "100 %"
[target]
part = "{part}"
"""


def tiny(folder, sparsity=0.8, part="xc7z020"):
    path = folder / "tiny.toml"
    path.write_text(TINY.format(sparsity=sparsity, part=part))
    return path


def fpgaprune(*arguments, folder, compiler=True):
    environment = dict(os.environ)
    if not compiler:
        environment["PATH"] = str(folder / "nothing")
    return command([*map(str, arguments)], folder, environment)


def succeed(*arguments, **options):
    done = fpgaprune(*arguments, **options)
    # 3: the network does not fit its part, which these tests do not ask for.
    assert done.returncode in (0, 3), done.stderr
    return done


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """The run that `make demo` makes."""
    folder = tmp_path_factory.mktemp("demo")
    done = subprocess.run([*COMMAND, "run", "--quiet"], cwd=folder, capture_output=True, text=True, timeout=600)
    assert done.returncode in (0, 3), done.stderr
    return folder / "runs" / "digits"


@pytest.fixture(scope="module")
def narrow(tmp_path_factory):
    """An undisturbed run, without a compiler, of a trained network of a few channels, and its folder."""
    folder = tmp_path_factory.mktemp("narrow")
    keras.utils.set_random_seed(2)
    stack = [
        keras.Input((8, 8, 1)),
        keras.layers.Conv2D(6, 3, strides=2, activation="relu", name="conv1"),
        keras.layers.Conv2D(6, 2, activation="relu", name="conv2"),
        keras.layers.Flatten(),
        keras.layers.Dense(10, name="dense"),
    ]
    keras.Sequential(stack).save(folder / "narrow.keras")
    succeed("run", "narrow.keras", *options_of("xc7z010"), "--out", "run", folder=folder, compiler=False)
    return folder


def options_of(part):
    """How the narrow network is run for `part`."""
    return ["--data", "digits", "--part", part, "--sparsity", "0.5", "--epochs", "1", "--max-loss", "100%"]


def results(run, stage):
    return json.loads((run / "manifest.json").read_text())["stages"][stage]["results"]


def test_the_demo_keeps_its_promises(demo):
    report = json.loads((demo / "report.json").read_text())
    assert report["metric"]["before"] >= 0.97
    assert report["metric"]["before"] - report["metric"]["after"] <= 0.01
    weights = read_keras_weights(demo / "finetuned.keras")
    kernels = [
        np.abs(w).sum(axis=(0, 1)).ravel() for path, w in weights.items() if path.startswith("conv") and w.ndim == 4
    ]
    assert (np.concatenate(kernels) == 0).mean() >= 0.5
    before, after = results(demo, "remove")["channels"]
    assert after < before
    assert results(demo, "export")["max_abs_error"] <= 1e-5
    simulation = results(demo, "hls")["simulation"]
    assert simulation["samples"] == 360
    assert simulation["agreement"] >= 0.99
    assert simulation["outputs_unlike_emulation"] == 0
    assert results(demo, "hls")["emulation"]["samples"] == 364
    assert all(check["holds"] is not False for check in report["checks"])
    assert not report["before"]["fits"]
    assert report["after"]["fits"]


def test_the_demo_leaves_every_artefact(demo):
    names = {entry.name for entry in demo.iterdir()}
    assert names >= {
        *("trained.keras", "masks.npz", "finetuned.keras", "removed.keras", "removed_masks.npz", "certificate.json"),
        *("model.onnx", "hls", "design.json", "design.npz", "estimate.json", "manifest.json"),
        *("report.html", "report.json"),
    }
    assert not [name for name in names if name.endswith(".partial")]
    assert json.loads((demo / "certificate.json").read_text())["ok"]
    page = (demo / "report.html").read_text()
    assert "http" not in page.replace("http-equiv", "")


def test_an_unchanged_demo_runs_nothing_and_loads_no_tensorflow(demo):
    before = (demo / "manifest.json").read_bytes()
    code = (
        "import sys; sys.argv = ['fpgaprune', 'run', '--quiet']\n"
        "from fpgaprune.cli import main\n"
        "try:\n    main()\nexcept SystemExit as stop:\n    print(stop.code, 'tensorflow' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=demo.parents[1], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "0 False"
    assert (demo / "manifest.json").read_bytes() == before


def test_verify_repeats_the_whole_check_without_tensorflow(demo):
    done = succeed("verify", demo, "--json", folder=demo)
    said = json.loads(done.stdout)
    assert said["ok"]
    assert {link["link"] for link in said["links"]} == {
        *("finetuned.keras", "removed.keras", "model.onnx", "hls/firmware"),
    }
    assert all(link["locked"] > 0 for link in said["links"])


def flip_keras(run, name="finetuned.keras"):
    """One locked element of a saved model becomes -0.0; everything else keeps its bytes."""
    import io

    import h5py

    path = run / name
    with zipfile.ZipFile(path) as archive:
        members = {member: archive.read(member) for member in archive.namelist()}
    buffer = io.BytesIO(members["model.weights.h5"])
    with h5py.File(buffer, "r+") as file:
        group = next(g for g in file["layers"].values() if g["vars"].attrs["name"] == "conv2")
        kernel = group["vars/0"][...]
        at = np.argwhere(kernel == 0)[0]
        kernel[tuple(at)] = -0.0
        group["vars/0"][...] = kernel
    members["model.weights.h5"] = buffer.getvalue()
    with zipfile.ZipFile(path, "w") as archive:
        for member, data in members.items():
            archive.writestr(member, data)


def flip_onnx(run):
    model = onnx.load(str(run / "model.onnx"))
    tensor = next(t for t in model.graph.initializer if t.name == "conv2/kernel")
    array = onnx.numpy_helper.to_array(tensor).copy()
    array[tuple(np.argwhere(array == 0)[0])] = 1e-30
    tensor.CopyFrom(onnx.numpy_helper.from_array(array, "conv2/kernel"))
    onnx.save(model, str(run / "model.onnx"))


def flip_firmware(run):
    """A locked weight of conv2 becomes another number, in what is simulated and in what is synthesised."""
    weights = run / "hls" / "firmware" / "weights"
    header = next(path for path in sorted(weights.glob("*.h")) if "conv2_weight_t" in path.read_text())
    for path in (header, header.with_suffix(".txt")):
        text = path.read_text()
        assert ", 0.0" in text
        path.write_text(text.replace(", 0.0", ", 0.5", 1))


def flip_masks(run, name="removed_masks.npz"):
    masks = MaskSet.load(run / name)
    changed = {path: mask.copy() for path, mask in masks.items()}
    changed["conv2/kernel"][:, :, 0, 0] = True
    changed["conv3/kernel"][0, 0, 0, 0] ^= True
    MaskSet(changed).save(run / name)


def flip_certificate(run):
    path = run / "certificate.json"
    certificate = json.loads(path.read_text())
    certificate["links"][0]["weights"][0]["sha256"] = "0" * 64
    certificate["links"][1]["weights"][0]["sha256"] = "0" * 64
    path.write_text(json.dumps(certificate))


@pytest.mark.parametrize(
    ("tamper", "message"),
    [
        (flip_keras, "finetuned.keras: 1 of"),
        (lambda run: flip_keras(run, "removed.keras"), "removed.keras: 1 of"),
        (flip_onnx, "model.onnx: 1 of"),
        (flip_firmware, ".h and the design have different integers"),
        (flip_masks, "removed_masks.npz"),
        (lambda run: flip_masks(run, "masks.npz"), "masks.npz"),
        (flip_certificate, "SHA-256 differs"),
        (lambda run: (run / "model.onnx").unlink(), "does not exist"),
        (lambda run: shutil.rmtree(run / "hls"), "does not exist"),
    ],
)
def test_verify_finds_what_was_changed(demo, tmp_path, tamper, message):
    run = tmp_path / "copy"
    shutil.copytree(demo, run)
    tamper(run)
    done = fpgaprune("verify", run, folder=tmp_path)
    assert done.returncode == 1
    assert message in done.stderr


def test_without_a_compiler_the_run_ends_and_says_what_it_left_out(narrow):
    run = narrow / "run"
    assert "g++ was not found" in results(run, "hls")["simulation"]["left_out"]
    assert "g++ was not found" in (run / "report.html").read_text().replace("\n", " ")
    succeed("verify", run, folder=narrow)


def artefacts(run):
    """What must be the same however the run went: everything but timings, which the report shows too."""
    manifest = json.loads((run / "manifest.json").read_text())
    report = {**json.loads((run / "report.json").read_text()), "stages": None}
    stages = {name: {**record, "seconds": None} for name, record in manifest["stages"].items()}
    # The manifest's digest of itself is one over the timings, too.
    return {**manifest, "digest": None, "stages": {**stages, "report": {**stages["report"], "outputs": report}}}


# Every day `tests/drill/test_killed_runs.py` kills runs, and `tests/unit/flow/test_resume.py` trainings.
@pytest.mark.slow
@pytest.mark.parametrize("stage", ["finetune", "hls"])
def test_a_kill_and_a_rerun_give_the_same_result(tmp_path, stage):
    """Each run in a process of its own: a process that was forked trains in other threads, so to other bits."""
    run = tmp_path / "run"

    def started(out):
        return subprocess.Popen(
            [*COMMAND, "run", str(tiny(tmp_path)), "--out", str(out), "--quiet"],
            env={**os.environ, "PATH": str(tmp_path / "nothing")},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    assert started(tmp_path / "undisturbed").wait() in (0, 3)
    process = started(run)
    order = ["train", "select", "finetune", "certify", "remove", "export", "hls"]
    earlier = order[: order.index(stage)]
    deadline = time.monotonic() + 300
    while process.poll() is None and time.monotonic() < deadline:
        manifest = run / "manifest.json"
        if not earlier or (manifest.exists() and earlier[-1] in json.loads(manifest.read_text())["stages"]):
            break
        time.sleep(0.02)
    time.sleep({"train": 3.0, "finetune": 1.5}.get(stage, 0.4))
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert started(run).wait() in (0, 3)
    assert artefacts(run) == artefacts(tmp_path / "undisturbed")


def test_a_changed_setting_reruns_only_what_depends_on_it(narrow, tmp_path):
    shutil.copytree(narrow / "run", tmp_path / "run")
    options = [*options_of("xczu9eg"), "--out", "run"]
    done = succeed("run", narrow / "narrow.keras", *options, folder=tmp_path, compiler=False)
    told = (line.split()[:2] for line in done.stderr.splitlines())
    states = {name: state for name, state in told if state != "..."}
    assert states == {
        **dict.fromkeys(("train", "select", "finetune", "certify", "remove", "export"), "unchanged"),
        **dict.fromkeys(("hls", "estimate", "report"), "done"),
    }
    times = {time["name"]: time for time in json.loads((tmp_path / "run" / "report.json").read_text())["stages"]}
    assert list(times)[-3:] == ["hls", "measure", "estimate"]
    assert times["train"]["seconds"] > 0
    assert times["train"]["note"].startswith("unchanged")
    assert times["hls"]["note"] == ""
    *_, last, following = done.stdout.splitlines()
    assert last.startswith("time        ")
    assert "making and emulating the hardware" in last
    assert following.startswith("next        fpgaprune ")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("[select]\nlocks = ['conv2/kernel[:, :, 29, 99]']", "index 99 on axis 3"),
        ("[select]\nsparsity = 2", "select.sparsity is 2"),
        ("[target]\npart = 'xc7z02'", "part 'xc7z02' is unknown"),
        ("[data]\nsource = 'gone.npz'", "gone.npz does not exist"),
        ("sparsity = 1", "sparsity is not a known key"),
    ],
)
def test_bad_input_is_one_line_exit_status_2_and_nothing_written(tmp_path, change, message):
    (tmp_path / "bad.toml").write_text(change)
    done = fpgaprune("run", "bad.toml", "--out", "run", folder=tmp_path)
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert [entry.name for entry in tmp_path.iterdir()] == ["bad.toml"]


def test_inspect_lists_layers_and_draws_kernels(demo, tmp_path):
    done = succeed("inspect", demo / "finetuned.keras", "--out", tmp_path / "maps", "--json", folder=tmp_path)
    found = json.loads(done.stdout)
    conv2 = next(layer for layer in found["layers"] if layer["name"] == "conv2")
    assert (conv2["class"], conv2["output_shape"], conv2["kernels"]["total"]) == ("Conv2D", [8, 8, 32], 1024)
    assert conv2["kernels"]["zero"] >= 512
    assert len(found["heat_maps"]) == 3
    assert all(Path(path).read_bytes().startswith(b"\x89PNG") for path in found["heat_maps"])


def test_estimate_reads_a_run_and_a_design(demo):
    both = json.loads(succeed("estimate", demo, "--json", folder=demo).stdout)
    assert both == json.loads((demo / "estimate.json").read_text())
    one = json.loads(succeed("estimate", demo / "design.json", "--part", "xcu250", "--json", folder=demo).stdout)
    assert one["digits"]["fits"]
    assert one["digits"]["target"]["part"] == "xcu250"


@pytest.mark.skipif(os.name != "posix", reason="fake tools are scripts with a first line")
def test_a_finished_run_is_measured_and_its_report_shows_it(narrow, tmp_path):
    shutil.copytree(narrow / "run", tmp_path / "run")
    calls = fake_yosys(tmp_path)
    environment = {**os.environ, "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"}

    def measure(*more, samples=24):
        return command(
            ["measure", "run", "--family", "ecp5", "--simulate", str(samples), "--json", *more], tmp_path, environment
        )

    done = measure()
    # A count of cells of an ECP5 says nothing of a Zynq.
    assert done.returncode == 0, done.stderr
    answers = json.loads((tmp_path / "run" / "report.json").read_text())["verdicts"]
    assert (answers["fit"]["reply"], answers["measured"]["reply"]) == ("probably", "unknown")
    found = json.loads(done.stdout)
    layers = {layer["layer"]: layer["cells"] for layer in found["synth(open)"]["ecp5"]["layers"]}
    assert layers["conv2"]["lut"] > 0
    simulated = found["simulation"]
    assert (simulated["samples"], simulated["outputs_unlike_emulation"]) == (24, 0)
    assert simulated["latency_cycles"] > simulated["interval_cycles"] >= 64
    report = json.loads((tmp_path / "run" / "report.json").read_text())
    (bits,) = [check for check in report["checks"] if check["name"] == "Verilog simulation against emulation"]
    assert bits["holds"] is True
    assert len(calls.read_text().split()) == len(layers) + 1
    assert report["measured"] == found
    assert "Measured with open tools" in (tmp_path / "run" / "report.html").read_text()
    last = json.loads((tmp_path / "run" / "certificate.json").read_text())["links"][-1]
    assert (last["link"], last["violations"]) == ("rtl/verilog", 0)
    assert last["locked"] == json.loads((narrow / "run" / "certificate.json").read_text())["links"][-1]["locked"] > 0
    assert "rtl/verilog" in (tmp_path / "run" / "report.html").read_text()
    again = measure()
    assert json.loads(again.stdout) == found
    assert len(calls.read_text().split()) == len(layers) + 1
    compared = succeed("compare", "run", "--json", folder=tmp_path)
    rows = json.loads(compared.stdout)["rows"]
    # The run is for a Zynq: figures of an ECP5 stand in no column beside its estimates.
    assert {row["synth(open)"] for row in rows} == {None}
    verified = json.loads(succeed("verify", "run", "--json", folder=tmp_path).stdout)
    assert verified["links"][-1] == last
    # The layer's additions are spread over files, so that none is too long.
    addition = re.compile(r"= (v\w+) \+ (v\w+)")
    parts = sorted((tmp_path / "run" / "rtl" / "rtl").glob("conv2_sums*.v"))
    sums = next(path for path in parts if addition.search(path.read_text()))
    written = sums.read_text()
    # One more input in one sum: a product that the masks may have locked, or another weight than was certified.
    sums.write_text(addition.sub(r"= \1 - \2", written, count=1))
    tampered = fpgaprune("verify", "run", folder=tmp_path)
    assert tampered.returncode == 1
    assert "rtl/verilog: 'conv2/kernel' has other bits than were certified" in tampered.stderr
    sums.unlink()
    gone = fpgaprune("verify", "run", folder=tmp_path)
    assert gone.returncode == 1
    assert f"{sums.name} is gone" in gone.stderr
    # With more time for an image its sums are computed bit by bit, and certified as well.
    assert measure("--interval", "20000", samples=0).returncode == 0
    notes = [layer["note"] for layer in json.loads((tmp_path / "run" / "rtl" / "project.json").read_text())["layers"]]
    assert sum(note.startswith("bit by bit") for note in notes) >= 2
    link = json.loads(succeed("verify", "run", "--json", folder=tmp_path).stdout)["links"][-1]
    assert (link["link"], link["locked"], link["violations"]) == ("rtl/verilog", last["locked"], 0)


def test_a_run_that_cannot_be_measured_says_why_and_keeps_its_report(narrow, tmp_path):
    shutil.copytree(narrow / "run", tmp_path / "run")
    write_program(tmp_path / "bin" / "yosys", "#!/bin/sh\necho 'ERROR: no luck'\nexit 1\n")
    environment = {**os.environ, "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"}
    done = command(["measure", "run", "--simulate", "0"], tmp_path, environment)
    assert done.returncode == 1
    assert "nothing was measured: yosys ended with code 1" in done.stderr
    assert "yosys ended with code 1" in (tmp_path / "run" / "report.html").read_text()
