"""`fpgaprune examples` copies what ships with the package, and never over a file of yours."""

import json

import pytest
from typer.testing import CliRunner

from fpgaprune.cli import app
from fpgaprune.errors import RunError
from fpgaprune.files import shipped_folder


def _copy(folder):
    return CliRunner().invoke(app, ["examples", str(folder)])


def test_every_example_is_copied_with_its_bytes(tmp_path):
    done = _copy(tmp_path / "mine")
    assert done.exit_code == 0
    source = {path.name: path.read_bytes() for path in shipped_folder("examples").iterdir() if path.is_file()}
    assert {"lock_one_kernel.py", "first_evening.ipynb", "trained_bits.toml"} <= set(source)
    assert {path.name: path.read_bytes() for path in (tmp_path / "mine").iterdir()} == source
    assert len(done.output.splitlines()) >= len(source)


def test_a_second_copy_changes_nothing(tmp_path):
    _copy(tmp_path)
    assert _copy(tmp_path).exit_code == 0


def test_a_file_of_yours_is_kept_and_nothing_is_written(tmp_path):
    (tmp_path / "change_masks.py").write_text("mine")
    found = _copy(tmp_path).exception
    assert isinstance(found, RunError)
    assert str(found) == f"folder {str(tmp_path)!r} has other files called change_masks.py; name another folder"
    assert [path.name for path in tmp_path.iterdir()] == ["change_masks.py"]


def test_an_installation_without_examples_says_so(monkeypatch, tmp_path):
    monkeypatch.setattr("fpgaprune.commands.first_files.shipped_folder", lambda name: None)
    assert "'examples' is missing from this installation" in str(_copy(tmp_path).exception)


@pytest.mark.parametrize("name", ["first_evening.ipynb", "hold_one_kernel.ipynb"])
def test_notebooks_show_what_their_cells_print(name):
    cells = json.loads((shipped_folder("examples") / name).read_text(encoding="utf-8"))["cells"]
    assert sum(cell["cell_type"] == "code" for cell in cells) >= 4
    assert any(cell.get("outputs") for cell in cells)
