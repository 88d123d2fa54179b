"""One list of names of boards, whichever command reads them; and the nearest name where one is wrong."""

import keras
import pytest

from fpgaprune.errors import ConfigError, MaskError, TargetError, fraction_meant
from fpgaprune.fabric import find_board, is_serial_board, list_serial_boards
from fpgaprune.flow import parse_config
from fpgaprune.select import select
from fpgaprune.target import find_part, list_boards, named_board
from fpgaprune.values import near_misses


@pytest.mark.parametrize("name", list_serial_boards())
def test_a_board_of_export_is_a_part_of_run_and_parts_with_the_same_fpga(name):
    assert find_part(name).name == find_board(name).device
    assert named_board(name) in list_boards()


@pytest.mark.parametrize("board", [one for one in list_boards() if find_part(one.part).vendor in ("Lattice", "Gowin")])
def test_a_board_of_parts_without_hls_is_one_of_export_with_the_same_fpga(board):
    assert find_board(board.name).device == find_part(board.part).name


def test_boards_are_meant_in_any_spelling_and_variants_keep_their_fpga():
    assert find_board("Tang Nano 9K").device == "gw1nr-9"
    assert find_board("ulx3s-25f").device == "lfe5u-25f"
    assert is_serial_board("COLORLIGHT_I5")
    for other in ("pynq-z2", "arty", "vivado", "xc7z020"):
        assert not is_serial_board(other)
    with pytest.raises(TargetError, match="board 'arty' is unknown"):
        find_board("arty")


KNOWN = ("conv1/kernel", "conv1/bias", "conv9/bias", "conv2/kernel", "dense/kernel")


def test_an_unknown_kernel_names_the_nearest_kernels_and_no_bias():
    said = near_misses("conv9/kernel", KNOWN)
    assert said.startswith("did you mean conv")
    assert "bias" not in said
    assert "conv9/bias" in near_misses("conv8/bias", KNOWN)
    # Where no kernel is near, other names are.
    assert near_misses("gamma", ("gamm", "beta")) == "did you mean gamm?"


@pytest.mark.parametrize(("given", "meant"), [(60, "0.6"), (0.5, ""), (100, "1"), (101, ""), (True, ""), ("60", "")])
def test_per_cent_where_a_fraction_is_wanted(given, meant):
    assert fraction_meant(given) == (f"; did you mean {meant}?" if meant else "")


def test_sparsity_60_asks_whether_0_6_is_meant_in_a_flow_file_and_in_python():
    with pytest.raises(ConfigError, match=r"select\.sparsity is 60; wanted at most 1; did you mean 0\.6\?"):
        parse_config({"select": {"sparsity": 60}}, "flow")
    with pytest.raises(ConfigError, match=r"did you mean 0\.8\?"):
        parse_config({"select": {"filters": {"conv1/*": 80}}}, "flow")
    with pytest.raises(MaskError, match=r"sparsity is 60; wanted a fraction from 0 to 1; did you mean 0\.6\?"):
        select(keras.Sequential([keras.Input((8, 8, 1)), keras.layers.Conv2D(2, 3)]), sparsity=60)
