"""Boards of VivadoAccelerator: hls4ml would take the board's part whatever was asked for."""

import pytest

import fpgaprune as fp
from fpgaprune.errors import HlsError
from fpgaprune.hls import BACKEND, accelerator_form, board_problems, known_boards, require_board

from ..estimate.designs import mlp

Z2 = "xc7z020clg400-1"


def target(part=Z2, backend=BACKEND):
    return fp.Target.of(part, backend=backend)


@pytest.mark.parametrize("board", sorted(known_boards()))
def test_every_board_of_hls4ml_goes_with_its_own_part_only(board):
    part = known_boards()[board]["part"]
    require_board(target(part), {"board": board})
    require_board(target(part.upper()), {"board": board})
    with pytest.raises(HlsError, match=f"board '{board}' has part {part}, not xc7a100tcsg324-1: ask for part '{part}'"):
        require_board(target("xc7a100tcsg324-1"), {"board": board})


@pytest.mark.parametrize(
    ("part", "options", "message"),
    [
        (
            "xc7z020clg484-1",
            {"board": "pynq-z2"},
            "board 'pynq-z2' has part xc7z020clg400-1, not xc7z020clg484-1: ask for part 'xc7z020clg400-1', or choose "
            "backend 'Vitis', which builds for a part without a board",
        ),
        (
            "xczu9eg-ffvb1156-2-e",
            {},
            "board 'pynq-z2', which backend VivadoAccelerator takes where no board is named, has part "
            "xc7z020clg400-1, not xczu9eg-ffvb1156-2-e: ask for part 'xc7z020clg400-1', name board 'zcu102', or choose "
            "backend 'Vitis', which builds for a part without a board",
        ),
        (
            Z2,
            {"interface": "axi_master"},
            "board 'pynq-z2' has no interface 'axi_master' in hls4ml's backend VivadoAccelerator; it has axi_lite, "
            "axi_stream",
        ),
        (
            Z2,
            {"driver": "c"},
            "board 'pynq-z2' has no driver 'c' in hls4ml's backend VivadoAccelerator; it has python",
        ),
    ],
)
def test_what_a_board_has_not_is_one_line(part, options, message):
    assert board_problems(target(part), options) == [message]


def test_an_unknown_board_is_answered_with_those_that_there_are():
    (problem,) = board_problems(target(), {"board": "ultra96v2"})
    assert problem.startswith(
        "board 'ultra96v2' is unknown to hls4ml's backend VivadoAccelerator; it builds for alveo-u"
    )
    assert "pynq-z2 (xc7z020clg400-1)" in problem


def test_a_device_without_package_takes_that_of_the_board():
    assert board_problems(target("xc7z020"), {"board": "pynq-z2"}) == []
    assert board_problems(target("xc7z010"), {"board": "pynq-z2"})


def test_other_backends_have_no_boards():
    assert board_problems(target("xczu9eg-ffvb1156-2-e", "Vitis"), {"board": "ultra96v2"}) == []


def written(folder, source="float", sink="ap_fixed<16,6>"):
    """A project whose accelerator's streams have these types, as hls4ml writes it."""
    (folder / "firmware").mkdir(parents=True)
    text = f"static const unsigned N_IN = 16;\ntypedef {source} T_in;\ntypedef {sink} T_out;\n"
    (folder / "firmware/mlp_axi.h").write_text(text)
    return folder


def test_what_the_streams_carry_is_read_from_the_project(tmp_path):
    found = accelerator_form(mlp(backend=BACKEND), written(tmp_path), {})
    assert found == {
        "board": "pynq-z2",
        "in": {"shape": [16], "type": "float"},
        "out": {
            "shape": [4],
            "type": "fixed",
            "width": 16,
            "integer": 6,
            "signed": True,
            "rounding": "TRN",
            "overflow": "WRAP",
        },
    }


@pytest.mark.parametrize(
    ("backend", "options"), [("Vitis", {}), (BACKEND, {"board": "alveo-u50"}), (BACKEND, {"interface": "axi_lite"})]
)
def test_only_a_board_with_a_dma_has_a_driver_of_ours(tmp_path, backend, options):
    if "interface" not in options:
        written(tmp_path)
    assert accelerator_form(mlp(backend=backend), tmp_path, options) is None


def test_a_stream_that_numpy_has_no_type_for_is_refused(tmp_path):
    folder = written(tmp_path, sink="ap_fixed<24,6>")
    with pytest.raises(HlsError, match=r"carry ap_fixed<24,6>, of 24 bits, which no type of NumPy has; set input_type"):
        accelerator_form(mlp(backend=BACKEND), folder, {})
