"""Figures and verdicts that name what they count, units, folders of other networks, and names of parts and boards."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from fpgaprune.flow import RunDirectory, parse_config, run_flow, verify_run
from fpgaprune.flow.engine import Origin

from ._asking import refused


def _model(path: Path, units: int = 4) -> Path:
    import keras

    layers = [keras.Input((6,)), keras.layers.Dense(units, activation="relu"), keras.layers.Dense(2)]
    keras.Sequential(layers).save(path)
    return path


def _samples(path: Path) -> Path:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(40, 6)).astype(np.float32)
    arrays = {
        f"{key}_{part}": value for part in ("train", "test") for key, value in (("x", x), ("y", np.arange(40) % 2))
    }
    np.savez(path, **arrays)
    return path


def _flow(folder: Path, model: str, **sections):
    document = {
        "name": "mine",
        "data": {"source": str(_samples(folder / "mine.npz"))},
        "train": {"model": str(_model(folder / model, 4 if model < "b" else 5))},
        **sections,
    }
    return parse_config(document, "mine")


def _begun_run(folder: Path, model: str) -> RunDirectory:
    """A run of `model` whose first stage has ended."""
    from fpgaprune.flow import check_flow

    config = _flow(folder, model)
    run = RunDirectory(folder / "run")
    with run.locked():
        Origin.of(config, check_flow(config)).record(run)
        run.file("trained.keras").write_bytes(b"measured for hours")
        run.record("train", "key", {}, run.digests(["trained.keras"]), {}, 1.0)
    return run


def run_into_the_folder_of_another_network(folder):
    """A run of another model into a folder is refused with both names, and the first run's files stay."""
    run = _begun_run(folder, "a.keras")
    refused(lambda: run_flow(_flow(folder, "b.keras"), run.path), r"a\.keras.*b\.keras", "--replace")
    assert run.file("trained.keras").read_bytes() == b"measured for hours"


def run_again_after_the_model_was_trained_again_in_its_place(folder):
    """A model that was trained again under its name goes on in its folder: nothing is refused."""
    run = _begun_run(folder, "a.keras")
    _model(folder / "a.keras", units=7)
    config = _flow(folder, "a.keras")
    from fpgaprune.flow import check_flow

    Origin.of(config, check_flow(config)).require_same(RunDirectory(run.path))


def verify_while_the_run_is_in_progress(folder):
    """verify says that the folder is in use, not that its files are wrong."""
    run = _begun_run(folder, "a.keras")
    with run.locked():
        refused(lambda: verify_run(run.path), "in use by process")


def fit_of_another_model_in_memory_into_the_same_folder(folder):
    """fit does not replace the search of another model in memory: it says which folder, and what gives it up."""
    import keras

    import fpgaprune as fp

    _model(folder / "first.keras", units=4)
    (folder / "out").mkdir()
    (folder / "out" / "model.keras").write_bytes((folder / "first.keras").read_bytes())
    other = keras.saving.load_model(_model(folder / "second.keras", units=5))
    refused(
        lambda: fp.fit(other, "mine.npz", fp.Target.of("pynq-z2"), out=folder / "out"),
        "holds a search of another network",
        "replace=True",
    )


def a_clock_of_ten_gigahertz(folder):
    """0.1 ns is refused by the bound of the family, in a flow file and in Python, and so are 0, NaN and a second."""
    import fpgaprune as fp

    del folder
    for clock_ns in (0.1, 0, -5, float("nan"), 1e9):
        refused(lambda clock_ns=clock_ns: fp.Target.of("pynq-z2", clock_ns=clock_ns), "target clock period")
    target = {"part": "tang-nano-9k", "clock_ns": 1.0}
    refused(lambda: parse_config({"target": target}, "flow"), r"target\.clock_ns", "LittleBee parts ends at 600 MHz")


def a_loss_in_the_old_unit(folder):
    """A fraction in a file or in Python, and a bare number on the command line, are refused with the new text."""
    from fpgaprune.commands import read_max_loss
    from fpgaprune.fit import Limits

    del folder
    refused(
        lambda: parse_config({"verdict": {"max_loss": 0.02}}, "flow"),
        r"verdict\.max_loss: 0\.02",
        '"2 %" if it is a fraction',
    )
    refused(lambda: Limits(max_loss=0.005), '"0.5 %" if it is a fraction')
    refused(lambda: read_max_loss("0.5"), "--max-loss", 'write "0.5 %"')
    assert read_max_loss("0.5%") == "0.5 %"
    assert Limits(max_loss="2 %").max_loss_fraction == 0.02


def a_run_that_loses_nothing_and_does_not_fit(folder):
    """The answer "Fits: no" with its figure is red on the page and in the JSON, and the other answer is not green."""
    import json

    from fpgaprune.report import write_report

    from ...unit.report.samples import estimate, run_report

    big = estimate(111720 / 2000)
    paths = write_report(folder, run_report(after=big))
    said = json.loads(paths.json.read_text())["verdicts"]
    assert (said["fit"]["tone"], said["metric"]["tone"]) == ("bad", "open")
    assert said["fit"]["text"].startswith("Fits xc7z020: no (LUT 111,719–111,721 of 53,200")
    assert '<p class="headline bad">Fits xc7z020: no (' in paths.html.read_text()


def an_error_that_may_grow_by_two_per_cent(folder):
    """Beside an MAE the limit reads "it may grow by 2 %", nowhere 0.02."""
    from fpgaprune.report import Metric, write_report

    from ...unit.report.samples import run_report

    error = Metric("mae", 0.048, 0.049, 99, "x", higher_is_better=False, is_fraction=False, lost=0.01, max_loss=0.02)
    page = write_report(folder, run_report(metric=error)).html.read_text()
    assert "it may grow by 2\u00a0%" in page
    assert "at most 0.02" not in page


def a_part_whose_tools_build_no_hls4ml_project(folder):
    """For a Gowin part our Verilog is judged resource by resource: 23,700 flip-flops of 15,552 do not fit."""
    from fpgaprune.measure import Figure, Resources, VerilogPrice
    from fpgaprune.report import write_report
    from fpgaprune.target import Target

    from ...unit.report.samples import run_report

    used = {name: Figure(count, count, count) for name, count in (("lut", 20383), ("ff", 23700))}
    price = VerilogPrice("net", "gowin", Resources(**used), (), 100, 64)
    given = {"target": Target.of("tang-nano-20k"), "before": None, "after": None, "verilog": price}
    page = write_report(folder, run_report(**given)).html.read_text()
    assert "it does not fit gw2ar-18" in page
    assert "FF 23,700 of 15,552 (152.4 %)" in page
    assert "No tool of Gowin builds an hls4ml project" in page


def a_board_of_export_as_a_part(folder):
    """colorlight-i5 is a part of run and parts as it is a board of export; a variant of the ULX3S keeps its FPGA."""
    from fpgaprune.fabric import find_board
    from fpgaprune.target import find_part

    del folder
    assert find_part("colorlight-i5").name == find_board("colorlight-i5").device == "lfe5u-25f"
    assert find_board("ulx3s-45f").device == find_part("ulx3s-45f").name


def a_kernel_that_the_model_does_not_have(folder):
    """conv9/kernel asks for the nearest kernels, never for a bias."""
    import keras

    import fpgaprune as fp

    del folder
    layers = [keras.layers.Conv2D(2, 3, name=f"conv{n}") for n in (1, 2)]
    model = keras.Sequential([keras.Input((8, 8, 1)), *layers])
    said = refused(lambda: fp.MaskSet.from_slices(model, ["conv9/kernel[:, :, 0, 0]"]), "did you mean conv[12]/kernel")
    assert "bias" not in said


def sparsity_in_per_cent(folder):
    """sparsity 60 asks whether 0.6 is meant."""
    del folder
    refused(lambda: parse_config({"select": {"sparsity": 60}}, "flow"), "is 60", r"did you mean 0\.6\?")


def labels_from_one(folder):
    """Labels 1 to 2 of a network with two outputs are said with what is wanted: 0 to 1."""
    from fpgaprune.flow import check_flow

    config = _flow(folder, "a.keras")
    arrays = dict(np.load(folder / "mine.npz"))
    np.savez(folder / "mine.npz", **{key: value + (key[0] == "y") for key, value in arrays.items()})
    refused(lambda: check_flow(config), "labels 1 to 2; wanted 0 to 1")


def inspect_without_a_folder(folder):
    """inspect writes nothing unless a folder for its pictures is named."""
    import keras

    from fpgaprune.flow import inspect_model

    keras.Sequential([keras.Input((8, 8, 1)), keras.layers.Conv2D(2, 3)]).save(folder / "net.keras")
    assert inspect_model(folder / "net.keras")["heat_maps"] == []
    assert [path.name for path in folder.iterdir()] == ["net.keras"]
