"""When a stage is done anew: its settings, its data, or what does it have changed."""

from types import SimpleNamespace

import pytest

from fpgaprune.files import hardware_path
from fpgaprune.flow.engine import parse_config, runner
from fpgaprune.flow.run import RunDirectory
from fpgaprune.flow.stages import stage_named


def key(folder, **section):
    run = RunDirectory(folder)
    run.manifest.update(data="digest", versions={"fpgaprune": "as long ago"})
    config = parse_config({"measure": section}, "flow")
    return runner._key(
        stage_named("measure"), SimpleNamespace(run=run, config=config, versions=runner._versions()), (), ()
    )


def test_the_same_stage_has_the_same_key(tmp_path):
    assert key(tmp_path, seeds=2) == key(tmp_path, seeds=2) != key(tmp_path, seeds=3)


@pytest.mark.parametrize("home", ["package", "hw"])
def test_code_and_data_of_another_day_do_it_anew(home, tmp_path, monkeypatch):
    # Also where the run, whose manifest says what made it, was begun by an older version.
    package, hardware = tmp_path / "package", tmp_path / "hw"
    for folder in (package, hardware):
        (folder / "rtl").mkdir(parents=True)
        (folder / "rtl" / "text").write_text("one")
    monkeypatch.setattr(runner.resources, "files", lambda name: package)
    monkeypatch.setattr(runner, "hardware_path", lambda: hardware)
    before = key(tmp_path / "run")
    (tmp_path / home / "rtl" / "cached.pyc").write_bytes(b"2")
    assert key(tmp_path / "run") == before
    (tmp_path / home / "rtl" / "text").write_text("two")
    assert key(tmp_path / "run") != before


def test_templates_and_verilog_modules_are_seen(monkeypatch):
    read = []
    monkeypatch.setattr("pathlib.Path.read_bytes", lambda path: read.append(path.name) or b"", raising=True)
    runner._own_digest()
    assert {"report.html", "fp_serial_add.v", "runner.py"} <= set(read)
    assert hardware_path("rtl", "fp_serial_add.v").is_file()
