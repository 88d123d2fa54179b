"""`verify_bitstream`: which bitstream is read back, and what its results are compared with."""

import json

import pytest
from typer.testing import CliRunner

from fpgaprune.cli import app
from fpgaprune.errors import ConfigError, RunError
from fpgaprune.flow import verify_bitstream
from fpgaprune.flow.stages import verilog_checks
from fpgaprune.measure import Measured, Simulated
from fpgaprune.readback import BitstreamCheck, read_chip

from ..readback.mixed import BOARD, kept_bitstream, samples

pytest.importorskip("apycula", reason="Apycula, which knows Gowin's fuses, is not here")

from apycula import bslib

COUNT = 5


@pytest.fixture
def folder(tmp_path):
    """A folder as `export` makes it for a board, with a kept bitstream."""
    folder = tmp_path / "mixed-for-tang-nano-9k"
    folder.mkdir()
    sent, wanted = samples(COUNT)
    kept_bitstream(folder)
    (folder / "golden_in.bin").write_bytes(sent)
    (folder / "golden_out.bin").write_bytes(wanted)
    line = {"sent": "golden_in.bin", "wanted": "golden_out.bin", "in_bytes": 2, "out_bytes": 6}
    line["results"] = {"lanes": 1, "width": 48, "fraction": 0, "beat_bytes": 6}
    about = {"board": BOARD, "bitstream": "mixed.fs", "samples": COUNT, "line": line}
    (folder / "handover.json").write_text(json.dumps(about))
    return folder


def test_the_command_says_in_one_line_that_no_bit_differs(folder):
    done = CliRunner().invoke(app, ["verify", str(folder), "--bitstream"])
    assert done.exit_code == 0
    said = done.output
    assert "bitstream computes the emulator's bits on 5 samples: 0 differ" in said
    assert "decoded from the fuses:" in said
    assert "2 block memories, 2 multipliers" in said
    assert "are those of the synthesised Verilog for all inputs: 185 compared, 0 differ" in " ".join(said.split())
    assert "next fpgaprune load " in " ".join(said.split())


def test_the_certificate_is_read_again(folder):
    link = verify_bitstream(folder).link

    def certified(**changed):
        """The folder's certificate, as `export` writes it."""
        (folder / "certificate.json").write_text(json.dumps({"bitstream": {**link.to_json(), **changed}}))

    certified()
    assert [claim.inputs for claim in link.claims] == ["on 5 samples", "for all inputs"]
    assert verify_bitstream(folder).problems == ()
    certified(sha256="0" * 64, cells_sha256="1" * 64)
    assert verify_bitstream(folder).problems == (
        "mixed.fs is not the file that was certified: its digest differs",
        "mixed.fs.cells.xz is not the file that was certified: its digest differs",
    )


def test_the_bitstream_of_another_network_is_refused_by_name(folder, tmp_path):
    """It computes the same, as it happens, but from other cells."""
    other = kept_bitstream(tmp_path, "mixed_pll")
    done = CliRunner().invoke(app, ["verify", str(folder), str(other), "--bitstream"])
    assert done.exit_code == 1
    assert "it is the bitstream of another netlist, or was changed" in " ".join(done.output.split())


def test_a_weight_put_back_into_a_memory_is_refused_by_memory_and_word(folder):
    """A changed word that no sample reads: only the cells tell."""
    path = folder / "mixed.fs"
    rows, head, foot, slots = bslib.read_bitstream(str(path))
    height = read_chip(path, BOARD).db.height
    at, place = next((at, list(line).index(1)) for at, line in enumerate(rows) if at > height + 20 and 1 in line)
    rows[at][place] = 0
    bslib.write_bitstream(str(path), rows, head, foot, False, slots)
    (problem,) = verify_bitstream(folder).problems
    assert "the content (word " in problem
    assert "of 'network.r" in problem


def test_another_file_that_computes_something_else_is_a_violation(folder, tmp_path):
    wanted = bytearray((folder / "golden_out.bin").read_bytes())
    wanted[7] ^= 1
    (folder / "golden_out.bin").write_bytes(wanted)
    other = tmp_path / "other.fs"
    (folder / "mixed.fs").rename(other)
    done = CliRunner().invoke(app, ["verify", str(folder), str(other), "--bitstream", "--json"])
    assert done.exit_code == 1
    told = json.loads(done.stdout)
    assert (told["ok"], told["bitstream"]["differ"]) == (False, 1)
    assert "the first at sample 1, output 0, bit 8" in told["problems"][0]


def test_a_folder_without_samples_and_a_file_without_the_option_are_refused(folder):
    (folder / "golden_in.bin").write_bytes(b"short")
    with pytest.raises(RunError, match="has no golden samples for a serial line; export the run again"):
        verify_bitstream(folder)
    done = CliRunner().invoke(app, ["verify", str(folder), "x.fs"])
    assert isinstance(done.exception, ConfigError)
    assert "given without --bitstream" in str(done.exception)
    done = CliRunner().invoke(app, ["verify", str(folder)])
    assert isinstance(done.exception, RunError)
    assert "is no run; export made it: add --bitstream" in str(done.exception)


def test_a_bitstream_that_was_read_back_is_a_check_of_the_report():
    def checks(back):
        simulated = Simulated(samples=3, outputs_unlike_emulation=0)
        made = {"board": "Tang Nano 9K", "read_back": back}
        return verilog_checks(Measured(None, (), {}, None, simulated, bitstream=made))[1:]

    (right,) = checks({"differ": 0, "samples": 3})
    assert (right.name, right.holds, right.samples) == ("bitstream, read back, against emulation", True, 3)
    assert checks({"differ": 2, "samples": 3})[0].holds is False
    assert checks({"left_out": "no compiler"})[0].left_out == "no compiler"
    for left_out in (None, "no cells beside it"):
        (found,) = checks(BitstreamCheck(3, 24, 0, None, left_out=left_out).to_json())
        assert (found.holds, found.measured, found.left_out) == (True, 0, None)
