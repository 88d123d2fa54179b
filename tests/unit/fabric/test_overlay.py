"""Scripts for Vivado around the AXI core, run by a Tcl that plays Vivado."""

import shutil
import subprocess
from pathlib import Path

import pytest

from fpgaprune.errors import TargetError
from fpgaprune.fabric import WORDS, list_overlays, overlay_files
from fpgaprune.target import Target, list_boards

# Every command that Tcl does not know is written down; some answer as Vivado does.
PLAYED = """
proc unknown {args} {
    puts "> $args"
    switch [lindex $args 0] {
        get_board_parts { if {$::played_boards} { return {a:part0:1.0 a:part0:1.1} } }
        get_property {
            switch [lindex $args 1] {
                STATS.WNS { return SLACK }
                STATS.WHS { return 0.05 }
                default { return "100%" }
            }
        }
        wait_on_run {
            file mkdir build/overlay.runs/impl_1 build/overlay.gen/sources_1/bd/overlay/hw_handoff
            close [open build/overlay.runs/impl_1/overlay_wrapper.bit w]
            close [open build/overlay.gen/sources_1/bd/overlay/hw_handoff/overlay.hwh w]
        }
        default { return [lindex $args 0] }
    }
}
set played_boards BOARDS
source block_design.tcl
"""


def play(
    folder: Path, files: dict[str, str], project, boards: int = 1, slack: str = "0.2"
) -> subprocess.CompletedProcess[str]:
    if shutil.which("tclsh") is None:
        pytest.skip("tclsh is not here: install Tcl")
    for name in project.files:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes((project.path / name).read_bytes())
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    (folder / "play.tcl").write_text(PLAYED.replace("BOARDS", str(boards)).replace("SLACK", slack))
    return subprocess.run(["tclsh", "play.tcl"], cwd=folder, capture_output=True, text=True)


@pytest.mark.parametrize("board", list_overlays())
def test_a_block_design_joins_processor_dma_and_core(board, tiny, tmp_path):
    order_number = Target.of(board).order_number
    files, form = overlay_files(tiny, board, order_number)
    done = play(tmp_path, files, tiny)
    assert done.returncode == 0, done.stderr
    told = done.stdout.splitlines()
    assert (tmp_path / "network.bit").exists()
    assert (tmp_path / "network.hwh").exists()
    place = list_overlays()[board]
    wanted = [
        f"> create_project overlay build -part {order_number} -force",
        "> set_property board_part a:part0:1.1 current_project",
        f"> create_bd_cell -type ip -vlnv xilinx.com:ip:{place.processor} ps",
        "> create_bd_cell -type ip -vlnv fpgaprune:user:tiny_axi network",
        "> assign_bd_address",
        "> validate_bd_design",
        "> launch_runs impl_1 -to_step write_bitstream -jobs 4",
    ]
    assert [line for line in told if line in wanted] == wanted
    assert f"CONFIG.c_m_axis_mm2s_tdata_width {place.word_bits}" in done.stdout
    assert form["word_bits"] == place.word_bits in WORDS
    assert len([line for line in told if "bd_rule:axi4" in line]) == 4


def test_the_core_is_packaged_with_every_file(tiny, tmp_path):
    files, _ = overlay_files(tiny, "pynq-z2", "xc7z020clg400-1")
    done = play(tmp_path, files, tiny)
    names = {path.name for path in (tmp_path / "ip/src").iterdir()}
    assert names == {Path(name).name for name in tiny.files} | {
        Path(name).name for name in files if name.endswith(".v")
    }
    assert "> ipx::package_project -root_dir ip" in done.stdout
    for bus in ("s_axis", "m_axis", "s_axi"):
        assert f"> ipx::associate_bus_interfaces -busif {bus} -clock aclk" in done.stdout


@pytest.mark.parametrize("slack", ["-0.31", ""])
def test_a_bitstream_that_misses_its_timing_is_not_made(tiny, tmp_path, slack):
    files, _ = overlay_files(tiny, "pynq-z2", "xc7z020clg400-1")
    done = play(tmp_path, files, tiny, slack=f"{{{slack}}}")
    assert done.returncode == 1
    said = f"timing is not met, so no network.bit: setup slack {slack} ns at 100 MHz; take a longer clock_ns"
    assert done.stderr.startswith(said)
    assert not (tmp_path / "network.bit").exists()


def test_missing_board_files_are_named(tiny, tmp_path):
    files, _ = overlay_files(tiny, "pynq-z2", "xc7z020clg400-1")
    done = play(tmp_path, files, tiny, boards=0)
    assert done.returncode == 1
    assert "Vivado has no files of board tul.com.tw:pynq-z2: install them" in done.stderr


def test_a_board_without_a_block_design_is_refused(tiny):
    with pytest.raises(TargetError, match="board 'zedboard' has no block design; wanted one of pynq-z2, zcu104, kv260"):
        overlay_files(tiny, "zedboard", "xc7z020clg484-1")


def test_every_overlay_board_stands_for_its_part():
    assert set(list_overlays()) <= {board.name for board in list_boards()}
