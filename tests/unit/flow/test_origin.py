"""Origin: a run folder is of one network, wherever its file went and however often it is trained again."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from fpgaprune.errors import RunError
from fpgaprune.flow import load_data, parse_config
from fpgaprune.flow.engine import Origin
from fpgaprune.flow.run import MANIFEST, RunDirectory


@pytest.fixture
def data(tmp_path):
    samples = {"x": np.zeros((4, 2), np.float32), "y": np.arange(4) % 2}
    for name, scale in (("one.npz", 1.0), ("two.npz", 2.0)):
        np.savez(
            tmp_path / name,
            **{f"{key}_{part}": value + scale for part in ("train", "test") for key, value in samples.items()},
        )
    return tmp_path


def origin(folder: Path, model=None, source="one.npz", name="mine"):
    document = {"name": name, "data": {"source": str(folder / source)}}
    if model is not None:
        document["train"] = {"model": str(folder / model)}
    return Origin.of(parse_config(document, "test"), load_data(str(folder / source)))


def run_of(made: Origin, path: Path) -> RunDirectory:
    run = RunDirectory(path)
    path.mkdir(exist_ok=True)
    made.record(run)
    run.record("train", "key", {}, {}, {}, 0.0)
    return RunDirectory.existing(path)


def test_a_model_trained_again_in_its_place_or_copied_is_the_same_network(data):
    (data / "a.keras").write_bytes(b"weights")
    run = run_of(origin(data, "a.keras"), data / "run")
    (data / "a.keras").write_bytes(b"trained again")
    origin(data, "a.keras").require_same(run)
    (data / "copy.keras").write_bytes(b"weights")
    origin(data, "copy.keras", source="two.npz", name="other").require_same(run)


def test_another_model_is_refused_by_both_names(data):
    for name in "ab":
        (data / f"{name}.keras").write_bytes(name.encode())
    run = run_of(origin(data, "a.keras"), data / "run")
    with pytest.raises(RunError, match=r"holds a run of .*a\.keras, and this one is of .*b\.keras; name another --out"):
        origin(data, "b.keras").require_same(run)
    with pytest.raises(RunError, match="the flow 'mine'"):
        origin(data).require_same(run)


def test_a_network_that_the_flow_trains_is_known_by_name_and_samples(data):
    run = run_of(origin(data), data / "run")
    origin(data).require_same(run)
    shutil.copy(data / "one.npz", data / "moved.npz")
    origin(data, source="moved.npz").require_same(run)
    with pytest.raises(RunError, match="trains on "):
        origin(data, source="two.npz").require_same(run)
    with pytest.raises(RunError, match="the flow 'other'"):
        origin(data, name="other").require_same(run)


def test_a_run_without_a_finished_stage_has_nothing_to_lose(data):
    run = RunDirectory(data / "run")
    origin(data).record(run)
    origin(data, name="other").require_same(run)


def test_a_run_that_names_no_network_is_not_gone_on_with(data):
    made = run_of(origin(data), data / "run")
    manifest = json.loads(made.file(MANIFEST).read_text())
    del manifest["network"]
    made.file(MANIFEST).write_text(json.dumps(manifest))
    with pytest.raises(RunError, match="does not say of which network its run is; name another --out"):
        origin(data).require_same(RunDirectory.existing(data / "run"))


def test_a_manifest_whose_network_was_written_by_hand_is_no_manifest(data):
    made = run_of(origin(data), data / "run")
    manifest = json.loads(made.file(MANIFEST).read_text())
    made.file(MANIFEST).write_text(json.dumps({**manifest, "network": {"kind": "model"}}))
    with pytest.raises(RunError, match="is no manifest"):
        RunDirectory.existing(data / "run")
