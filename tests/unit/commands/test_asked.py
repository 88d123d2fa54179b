"""`fpgaprune ask` against a board that is played on a pseudo-terminal."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from fpgaprune.cli import app
from fpgaprune.errors import BoardError, DataError
from fpgaprune.fabric import Identity, identity_of
from fpgaprune.flow.finished import board_answers
from fpgaprune.rtl import RtlPort
from fpgaprune.values import FixedType

from ..fabric.played_board import played_board
from ..fabric.tiny import tiny_project

pytest.importorskip("serial", reason="pyserial is not here: pip install pyserial")

BYTE = FixedType(8, 8)
IDENTITY = Identity("00" * 8, RtlPort("", "s_axis", (3,), 3, 1, BYTE), RtlPort("", "m_axis", (3,), 1, 3, BYTE))
X = np.array([[1, 2, 3], [9, 2, 3], [1, 5, 3]], np.float32)


@pytest.fixture
def samples(tmp_path):
    path = tmp_path / "x.npz"
    np.savez(path, x_test=X, y_test=[2, 0, 2])
    return path


def test_classes_speed_and_share_are_printed_and_outputs_saved(samples, tmp_path):
    with played_board(IDENTITY, lambda raw: raw) as port:
        done = CliRunner().invoke(app, ["ask", port, str(samples), "--out", str(tmp_path / "out.npz")])
        plain = CliRunner().invoke(app, ["ask", port, str(samples), "--json"])
    assert done.exit_code == 0, done.output
    lines = done.output.splitlines()
    assert lines[0] == "design      0000000000000000"
    assert lines[1].startswith("samples     3, ")
    assert lines[2:-1] == ["classes     2 0 1", "right       66.67%"]
    assert lines[-1].endswith(" --run RUN_DIR")
    np.testing.assert_array_equal(np.load(tmp_path / "out.npz")["output"], X)
    found = json.loads(plain.output)
    assert (found["classes"], found["outputs_unlike_emulation"]) == ([2, 0, 1], None)


@pytest.fixture
def run(tmp_path, monkeypatch):
    """A run that holds the project of `tiny.py`, and an emulation of it; returns its folder and bitstream."""
    project = tiny_project(tmp_path / "run" / "rtl")
    bitstream = {}

    class Run:
        def file(self, name):
            return tmp_path / "run" / name

        def digests(self, names):
            return dict.fromkeys(names)

        def read_json(self, name):
            return {"bitstream": bitstream or None}

    monkeypatch.setattr(board_answers.RunDirectory, "existing", lambda path: Run())
    monkeypatch.setattr(board_answers.Design, "load", lambda path: "design")
    monkeypatch.setattr(board_answers, "emulate", lambda design, x: np.maximum(3 * x[:, 0] - x[:, 1], 0))
    np.savez(tmp_path / "pairs.npz", x=[[100, 1], [7, -10]])
    return project, bitstream, tmp_path


@pytest.mark.parametrize(("wrong", "status"), [(0, 0), (1, 1)])
def test_with_a_run_every_bit_is_compared(run, wrong, status):
    project, _, folder = run
    with played_board(identity_of(project), lambda raw: np.maximum(3 * raw[:, :1] - raw[:, 1:], 0) + wrong) as port:
        done = CliRunner().invoke(app, ["ask", port, str(folder / "pairs.npz"), "--run", "run"])
    assert done.exit_code == status
    said = "2 outputs have other bits than the emulation" if wrong else "every bit is the emulation's"
    assert said in done.output


def test_the_digest_of_the_runs_bitstream_is_what_the_board_must_have(run):
    project, bitstream, folder = run
    bitstream["digest"] = "0123456789abcdef"
    with (
        played_board(identity_of(project), lambda raw: raw[:, :1]) as port,
        pytest.raises(BoardError, match="wanted 0123456789abcdef"),
    ):
        board_answers.ask_board(port, folder / "pairs.npz", run=folder)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [(None, "do not exist"), ({"z": X}, "hold z; wanted an array x or x_test"), ("text", "not a whole .npz")],
)
def test_a_file_without_samples_is_refused(tmp_path, arrays, message):
    path = tmp_path / "x.npz"
    if arrays == "text":
        path.write_text("text")
    elif arrays:
        np.savez(path, **arrays)
    with pytest.raises(DataError, match=message):
        board_answers.ask_board("/dev/nowhere", path)
