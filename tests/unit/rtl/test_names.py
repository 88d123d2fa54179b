"""Verilog names of layers."""

from fpgaprune.rtl.names import verilog_names


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
