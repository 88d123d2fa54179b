"""The Verilog text of single values."""

from __future__ import annotations

import pytest

from fpgaprune.rtl import Circuit, line_of, schedule


@pytest.mark.parametrize(
    ("method", "low", "high", "bound", "text"),
    [
        # A literal's minus sign needs a bit more than the smallest number of a width has.
        ("larger", -200, 100, -128, "(v0 < -9'sd128) ? $signed(8'h80) : $signed(v0[7:0])"),
        ("larger", -200, 100, -127, "(v0 < -8'sd127) ? $signed(8'h81) : $signed(v0[7:0])"),
        ("smaller", -100, 200, 127, "(v0 > 8'sd127) ? $signed(8'h7f) : $signed(v0[7:0])"),
        ("smaller", -100, 200, 3, "(v0 > 3'sd3) ? $signed(8'h3) : $signed(v0[7:0])"),
    ],
)
def test_both_sides_of_a_choice_have_the_bits_of_the_value(method, low, high, bound, text):
    circuit = Circuit()
    place = getattr(circuit, method)(circuit.input(9, True, low, high), circuit.const(bound))
    circuit.output(place, circuit.nodes[place].width)
    line = line_of("m", circuit, schedule(circuit, 1), place)
    assert line.wires.splitlines()[0] == f"    wire signed [7:0] v{place} = {text};"
