"""Small tables on AMD's devices: one LUT for each bit of an entry, and right for all numbers."""

import numpy as np
import pytest

from fpgaprune.errors import ToolExitError
from fpgaprune.fabric import find_family
from fpgaprune.rtl import Circuit, line_of, schedule, table_luts

from .proven_netlist import mapped, prove, with_wrong_map

pytestmark = pytest.mark.usefixtures("yosys")


def tables(seed, count, least=1, drawn=("random", "constant", "wire", "same")):
    """A module with `count` tables of random bits, constants, bits of the index and bits twice; and LUTs for them."""
    rng = np.random.default_rng(seed)
    circuit, ports, body, luts = Circuit(), [], "", 0
    for number in range(count):
        bits, signed = int(rng.integers(least, 7)), bool(rng.integers(2))
        low = -(1 << bits - 1) if signed else 0
        x = circuit.input(bits + 1, True, low, low + (1 << bits) - 1)
        rows, columns = np.arange(1 << bits), []
        for _ in range(int(rng.integers(1, 6))):
            made = {
                "random": rng.integers(0, 2, 1 << bits),
                "constant": np.full(1 << bits, rng.integers(2)),
                "wire": rows >> rng.integers(bits) & 1,
                "same": columns[0] if columns else rows & 1,
            }
            columns.append(made[rng.choice(drawn)])
        entries = sum(column << bit for bit, column in enumerate(columns)).tolist()
        place = circuit.lut([x], [bits], entries)
        if circuit.nodes[place].op == "lut":
            circuit.output(place, circuit.nodes[place].width)
            body += "".join(
                f"{line}\n" for line in line_of("m", circuit, schedule(circuit, 1), place).wires.split("\n")[:2]
            )
            body += f"    assign y{number} = v{place};\n"
            ports += [f"input signed [{circuit.nodes[x].width - 1}:0] v{x}"]
            ports += [f"output signed [{circuit.nodes[place].width - 1}:0] y{number}"]
            luts += table_luts([circuit.nodes[x]], circuit.nodes[place].params[1:], circuit.nodes[place].width)
    return f"module top ({', '.join(ports)});\n{body}endmodule\n".encode(), luts


def counted(types):
    return sum(number for cell, number in types.items() if cell.startswith("LUT") or cell == "INV")


@pytest.mark.parametrize(("name", "seed"), [("xc7", 1), pytest.param("xcup", 2, marks=pytest.mark.slow)])
def test_a_table_is_right_for_all_numbers_and_takes_a_lut_a_bit(tmp_path, name, seed):
    source, luts = tables(seed, 12)
    made = mapped(source, find_family(name), tmp_path)
    prove(made)
    assert counted(made.types) == luts > 6
    assert not set(made.types) - {"LUT1", "LUT2", "LUT3", "LUT4", "LUT5", "LUT6", "INV"}


@pytest.mark.parametrize("name", ["ecp5", pytest.param("gowin", marks=pytest.mark.slow)])
def test_a_table_of_four_bits_takes_a_lut_of_four_inputs_a_bit(tmp_path, name):
    """As yosys makes it of the text, without a map."""
    rng = np.random.default_rng(3)
    entries = [int(value) for value in rng.integers(0, 8, 16)]
    circuit = Circuit()
    place = circuit.lut([circuit.input(5, True, 0, 15)], [4], entries)
    circuit.output(place, 3)
    text = "\n".join(line_of("m", circuit, schedule(circuit, 1), place).wires.split("\n")[:2])
    source = f"module top (input signed [4:0] v0, output [2:0] y);\n{text}\n    assign y = v{place};\nendmodule\n"
    family = find_family(name)
    assert family.count(mapped(source.encode(), family, tmp_path).types).lut == 3


@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("(at & (ENTRIES - 1)) * WIDTH + at / 64", "(at & (ENTRIES - 1)) * WIDTH"),
        (".I0(index[0]), .I1(index[1])", ".I0(index[1]), .I1(index[0])"),
        ("assign Y[i] = INIT[0]", "assign Y[i] = 1'b0"),
        ("same = S_WIDTH + other", "same = other"),
        ("64'hcccccccccccccccc, 64'haaaaaaaaaaaaaaaa", "64'haaaaaaaaaaaaaaaa, 64'hcccccccccccccccc"),
    ],
)
def test_a_wrong_map_is_noticed(tmp_path, old, new):
    wrong = with_wrong_map(find_family("xc7"), "amd_small_tables.v", old, new)
    with pytest.raises(ToolExitError):
        prove(mapped(tables(1, 12)[0], wrong, tmp_path))
