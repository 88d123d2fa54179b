"""What sums bit by bit take, counted from the weights, against the adders that the Verilog has."""

import math
from dataclasses import replace

import pytest

from fpgaprune.advice.verilog import bit_serial
from fpgaprune.fixed import FixedType
from fpgaprune.rtl.adders import share
from fpgaprune.rtl.serial import SerialSums
from tests.unit.estimate.designs import cnn, mlp

EXACT = FixedType(30, 13)


def with_sums(design, kind):
    layers = [replace(x, types={**x.types, "accum": kind}) if x.strategy else x for x in design.layers]
    return replace(design, layers=tuple(layers))


@pytest.mark.parametrize("zeros", [0.0, 0.5, 0.9])
def test_the_verilog_takes_no_more_than_is_counted(zeros):
    design = with_sums(cnn(zeros=zeros), EXACT)
    found = bit_serial(design)
    conv, pad = design["conv"], design["pad"]
    kind = pad.types["result"]
    lane = (kind.width, kind.signed, kind.raw_min, kind.raw_max)
    sums = SerialSums.of(share(conv.weights["weight"].reshape(-1, 4)), lane, EXACT.width)
    assert sums.count <= found.adders
    assert sums.luts() <= found.luts
    # The rule by which the Verilog's generator decides (`fpgaprune.rtl.in_time`).
    pixels, windows = (math.prod(layer.output_shape[:-1]) for layer in (pad, conv))
    assert windows * sums.period + pixels - windows <= found.interval


def test_sums_whose_order_counts_have_no_figure():
    for kind in (FixedType(16, 6), FixedType(30, 13, overflow="SAT")):
        assert bit_serial(with_sums(cnn(), kind)) is None


def test_a_network_without_convolutions_has_no_figure():
    assert bit_serial(mlp()) is None
