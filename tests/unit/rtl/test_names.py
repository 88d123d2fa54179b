"""Verilog names of layers."""

import pytest

from fpgaprune.rtl import KEYWORDS, verilog_names


def test_names_are_identifiers_of_their_own():
    names = verilog_names(["conv1", "block/conv-1", "block_conv_1", "reg", "1st", "fp_window", "Conv1", "déjà"])
    assert list(names.values()) == [
        "conv1",
        "block_conv_1",
        "block_conv_1_2",
        "layer_reg",
        "layer_1st",
        "layer_fp_window",
        "Conv1_2",
        "d_j_",
    ]


def test_no_layer_is_called_as_a_word_of_the_language():
    # As many as the annex of the standard has.
    assert len(KEYWORDS) == 248
    names = verilog_names([*KEYWORDS, "downto", "clk"])
    assert set(names.values()) == {f"layer_{word}" for word in names}


def test_long_names_stay_short_and_distinct():
    long = "x" * 300
    assert list(verilog_names([long, f"{long}y"]).values()) == ["x" * 64, "x" * 64 + "_2"]


@pytest.mark.parametrize("part", ["part0", "rom3", "fifo0", "to1", "products"])
def test_a_layer_is_not_called_as_a_part_of_another(part):
    names = verilog_names(["conv", f"conv_{part}", f"dense_{part}"])
    assert list(names.values()) == ["conv", f"layer_conv_{part}", f"dense_{part}"]
