"""`load_board`: which bitstream a run or a folder means."""

import json

import pytest

from fpgaprune.errors import RunError
from fpgaprune.flow import load_board
from fpgaprune.flow.finished import loading
from fpgaprune.flow.run import RunDirectory


@pytest.fixture
def loaded(monkeypatch):
    """What was loaded: board, name of the file, into the flash or not."""
    found = []

    def load(board, bitstream, *, flash=False):
        found.append((board.name, bitstream.name, flash))
        return []

    monkeypatch.setattr(loading, "load_bitstream", load)
    return found


def handed_over(folder, board="tang-nano-9k"):
    folder.mkdir()
    (folder / "x.fs").write_text("bits")
    (folder / "handover.json").write_text(json.dumps({"board": board, "bitstream": "x.fs"}))
    return folder


def run_in(folder, bitstream=None, part=None):
    run = RunDirectory(folder)
    with run.locked():
        run.manifest["config"] = {"target": {"part": part}}
        run.write_manifest()
    (folder / "measure.json").write_text(json.dumps({"bitstream": bitstream}))
    return folder


def test_a_folder_says_its_board_and_its_bitstream(loaded, tmp_path):
    done = load_board(handed_over(tmp_path / "mine-for-tang-nano-9k"), flash=True)
    assert loaded == [("Tang Nano 9K", "x.fs", True)]
    assert (done.board, done.flash) == ("Tang Nano 9K", True)


@pytest.mark.parametrize(
    ("part", "boards"),
    [
        ("gw1nr-9", "tang-nano-9k"),
        ("LFE5U-25F-6BG381C", r"colorlight-i5 \(or orangecrab\)"),
        ("xcu50-fsvh2104-2-e", "BOARD"),
        ("no-such-part", "BOARD"),
    ],
)
def test_a_run_without_a_bitstream_names_the_boards_with_its_part(loaded, tmp_path, part, boards):
    with pytest.raises(RunError, match=rf"make one: fpgaprune export .*mine --for {boards}$"):
        load_board(run_in(tmp_path / "mine", part=part))


def test_a_run_means_its_measured_bitstream_or_the_one_folder_beside_it(loaded, tmp_path):
    run = run_in(tmp_path / "mine")
    with pytest.raises(
        RunError, match=r"has no bitstream beside it; name .* make one: fpgaprune export .*mine --for BOARD"
    ):
        load_board(run)
    handed_over(tmp_path / "mine-for-tang-nano-9k")
    load_board(run)
    handed_over(tmp_path / "mine-for-ulx3s", "ulx3s")
    with pytest.raises(RunError, match=r"has bitstreams in .*mine-for-tang-nano-9k, .*mine-for-ulx3s; name one"):
        load_board(run)
    (run / "own.bit").write_text("bits")
    (run / "measure.json").write_text(json.dumps({"bitstream": {"board": "ULX3S", "path": "own.bit"}}))
    load_board(run)
    assert loaded == [("Tang Nano 9K", "x.fs", False), ("ULX3S", "own.bit", False)]


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, "is neither a run nor a folder that 'fpgaprune export' made for a board"),
        ({"handover.json": '{"part": "xc7z020"}'}, "was not made for a board with a serial line"),
        ({"handover.json": '{"board": "ulx3s", "bitstream": "gone.bit"}'}, "gone.bit is missing; export the run again"),
    ],
)
def test_what_holds_no_bitstream_is_refused(loaded, tmp_path, files, message):
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    with pytest.raises(RunError, match=message):
        load_board(tmp_path)
    assert loaded == []
