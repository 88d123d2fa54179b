"""`verify_bitstream`: which bitstream is read back, and what its results are compared with."""

import json
import lzma

import pytest
from typer.testing import CliRunner

from fpgaprune.cli import app
from fpgaprune.errors import ConfigError, RunError
from fpgaprune.flow import verify_bitstream
from fpgaprune.flow.stages import verilog_checks
from fpgaprune.measure import Measured, Simulated

from ..readback.mixed import BOARD, KEPT, samples

pytest.importorskip("apycula", reason="Apycula, which knows Gowin's fuses, is not here")

COUNT = 5


@pytest.fixture
def folder(tmp_path):
    """A folder as `export` makes it for a board, with a kept bitstream."""
    folder = tmp_path / "mixed-for-tang-nano-9k"
    folder.mkdir()
    sent, wanted = samples(COUNT)
    (folder / "mixed.fs").write_bytes(lzma.decompress(KEPT.read_bytes()))
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


def test_a_bitstream_that_was_read_back_is_a_check_of_the_report():
    def checks(back):
        simulated = Simulated(samples=3, outputs_unlike_emulation=0)
        made = {"board": "Tang Nano 9K", "read_back": back}
        return verilog_checks(Measured(None, (), {}, None, simulated, bitstream=made))[1:]

    (right,) = checks({"differ": 0, "samples": 3})
    assert (right.name, right.holds, right.samples) == ("bitstream, read back, against emulation", True, 3)
    assert checks({"differ": 2, "samples": 3})[0].holds is False
    assert checks({"left_out": "no compiler"})[0].left_out == "no compiler"
