"""Sums of three operands on AMD's devices: one LUT a bit, and right for all numbers."""

import numpy as np
import pytest

from fpgaprune.errors import ToolExitError
from fpgaprune.fabric import find_family

from .proven_netlist import mapped, prove, with_wrong_map

pytestmark = pytest.mark.usefixtures("yosys")


def sums(seed, count):
    """A module with `count` sums of three numbers: random widths, shifts, signs, and constants among them."""
    rng = np.random.default_rng(seed)
    ports, body = [], []
    for number in range(count):
        names = [f"{letter}{number}" for letter in "abc"]
        terms = []
        for name in names:
            ports.append(f"input signed [{rng.integers(0, 5)}:0] {name}")
            shift = rng.choice([0, 0, 1, 3])
            terms.append(f"({name} <<< {shift})" if shift else name)
        if number % 4 == 3:
            terms[rng.integers(3)] = f"6'sd{rng.integers(1, 32)}"
        first, second = rng.choice(["+", "-"], 2) if number else ("-", "-")
        ports.append(f"output signed [{rng.integers(3, 8)}:0] y{number}")
        body.append(f"    assign y{number} = {terms[0]} {first} {terms[1]} {second} {terms[2]};")
    return f"module top ({', '.join(ports)});\n{chr(10).join(body)}\nendmodule\n".encode()


@pytest.mark.parametrize(("name", "seed"), [("xc7", 1), pytest.param("xcup", 2, marks=pytest.mark.slow)])
def test_every_sum_of_three_is_right_for_all_numbers(tmp_path, name, seed):
    made = mapped(sums(seed, 12), find_family(name), tmp_path)
    prove(made)
    assert made.types["LUT6_2"] >= 12


@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("SUBTRACTED > 1", "SUBTRACTED > 2"),
        ("carried[0] = SUBTRACTED > 0", "carried[0] = 1'b0"),
        ("x[0] & x[1] | x[0] & x[2]", "x[0] & x[1] | x[1] & x[2]"),
        ("live > 1", "live > 2"),
    ],
)
def test_a_wrong_map_is_noticed(tmp_path, old, new):
    wrong = with_wrong_map(find_family("xc7"), "amd_three_operands.v", old, new)
    with pytest.raises(ToolExitError):
        prove(mapped(sums(1, 12), wrong, tmp_path))


def test_a_sum_of_three_takes_a_lut_a_bit(tmp_path):
    source = b"module top (input signed [7:0] a, b, c, output signed [9:0] y);\n    assign y = a - b + c;\nendmodule\n"
    types = mapped(source, find_family("xc7"), tmp_path).types
    assert find_family("xc7").count(types).lut == 10
    assert types == {"LUT6_2": 10, "CARRY4": 3}
