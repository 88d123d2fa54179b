"""Tables of few bits: the same values in fewer LUTs and stages, read back and proven; no mutant of a table is."""

import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fpgaprune.design import Design, VerilogLayout
from fpgaprune.errors import RtlError
from fpgaprune.estimate import DigitCounter, timed, verilog_price
from fpgaprune.hls import layer_of
from fpgaprune.rtl import (
    Circuit,
    Lane,
    line_of,
    plan_verilog,
    prove_project,
    read_weights,
    schedule,
    table_luts,
    tables_of,
    to_verilog,
    with_small_tables,
    with_three_operands,
)
from fpgaprune.values import FixedType

from ..estimate.designs import weights
from .circuits import circuits, faults
from .test_three_operands import values

FIXED = settings(max_examples=150, deadline=None, derandomize=True, database=None)


@FIXED
@given(circuits(three=True), st.integers(0, 6))
def test_every_output_has_the_same_values_within_bounds_no_wider(circuit, bits):
    made = with_small_tables(circuit, bits)
    given = values(circuit, 60)
    for after in (made, with_three_operands(made)):
        assert all(np.array_equal(a, b) for a, b in zip(circuit.evaluate(given), after.evaluate(given), strict=True))
    for (old, width), (new, as_wide) in zip(circuit.outputs, made.outputs, strict=True):
        assert width == as_wide
        assert circuit.nodes[old].low <= made.nodes[new].low
        assert made.nodes[new].high <= circuit.nodes[old].high
    tables = [made.nodes[place] for place in made.alive() if made.nodes[place].op == "lut"]
    for node in tables:
        own = [made.nodes[arg].index_bits for arg in node.args]
        assert sum(own) <= bits
        assert (list(node.params[: len(own)]), len(node.params)) == (own, len(own) + (1 << sum(own)))
    plan = schedule(made, 1)
    assert faults(made, plan.stage, plan.depth, 1) == []


def behind(low, high, function, others=()):
    """A circuit of functions of one value from `low` to `high`; `others` are read too."""
    circuit = Circuit()
    x = circuit.input(8, True, low, high)
    for one in (function, *others):
        place = one(circuit, x)
        circuit.output(place, circuit.nodes[place].width)
    return circuit


def operations(circuit):
    return [circuit.nodes[place].op for place in circuit.alive() if circuit.nodes[place].op not in ("input", "const")]


def biased_relu(circuit, x):
    """A bias of four digits, rounding, and both bounds."""
    return circuit.clip(circuit.shr(circuit.add(x, circuit.const(60), 2), 3), 0, 7)


def test_what_follows_a_value_of_few_bits_is_one_table_in_one_stage():
    circuit = behind(-20, 31, biased_relu)
    made = with_small_tables(circuit, 6)
    assert operations(made) == ["lut"]
    assert (schedule(circuit, 1).depth, schedule(made, 1).depth) == (2, 1)
    assert with_small_tables(circuit, 5) is circuit
    assert with_small_tables(circuit, 0) is circuit


@pytest.mark.parametrize(
    "function",
    [
        lambda c, x: c.shr(x, 2),
        lambda c, x: c.wrap(c.shl(x, 3), 6, True),
        # Still weighted sums, as which they are read back.
        lambda c, x: c.add(x, c.const(5), 1),
        lambda c, x: c.sub(c.add(x, x, 2), c.const(7)),
        # Fewer LUTs: a register that is set or reset, a constant of one digit.
        lambda c, x: c.clip(x, 0, 31),
        lambda c, x: c.shr(c.add(x, c.const(2)), 1),
    ],
)
def test_wiring_and_sums_and_what_takes_fewer_luts_stay(function):
    circuit = behind(-20, 31, function)
    assert with_small_tables(circuit, 6) is circuit


def test_what_others_read_is_made_once():
    # Without its bias, which is there for another reader too, the rest takes fewer LUTs as it is.
    kept = behind(-20, 31, biased_relu, [lambda c, x: c.add(x, c.const(60), 2)])
    assert with_small_tables(kept, 6) is kept
    twice = behind(-20, 31, biased_relu, [lambda c, x: c.add(biased_relu(c, x), c.input(4, True, -8, 7))])
    assert sorted(operations(with_small_tables(twice, 6))) == ["add", "lut"]


def test_sums_of_a_few_bits_together_are_part_of_a_table_of_their_operands():
    circuit = Circuit()
    a, b = circuit.input(2, False, 0, 3), circuit.input(3, True, -4, 3)
    c = circuit.sub(circuit.add(a, b, 1), circuit.input(6, True, -32, 31))
    for place in (biased_relu(circuit, circuit.add(a, b, 1)), c):
        circuit.output(place, circuit.nodes[place].width)
    # Another one reads the sum, which stays; without it, the rest takes fewer LUTs as it is.
    assert with_small_tables(circuit, 5) is circuit
    circuit.outputs.pop()
    made = with_small_tables(circuit, 5)
    assert operations(made) == ["lut"]
    (table,) = [made.nodes[place] for place, _ in made.outputs]
    assert ([made.nodes[arg].op for arg in table.args], table.params[:2]) == (["input", "input"], (2, 3))
    given = [np.repeat(np.arange(4), 8), np.tile(np.arange(-4, 4), 4), np.zeros(32, np.int64)]
    assert np.array_equal(made.evaluate(given)[0], circuit.evaluate(given)[0])


def test_what_a_sum_of_three_takes_is_no_table():
    """Convergent rounding adds a bit and a constant to a number of any width."""
    circuit = Circuit()
    x = circuit.input(12, True, -2048, 2047)
    odd = circuit.wrap(circuit.shr(x, 8), 1, signed=False)
    circuit.output(circuit.add(x, circuit.add(circuit.const(127), odd)), 13)
    assert with_small_tables(circuit, 6, 3) is circuit
    assert "lut" in operations(with_small_tables(circuit, 6, 2))


def test_a_table_of_an_operand_with_one_value_and_of_one_with_fewer_is_that_of_the_others():
    circuit = Circuit()
    a, b, c = circuit.input(3, True, -3, 2), circuit.const(-2), circuit.input(4, True, 0, 1)
    table = list(range(1 << 3 + 2 + 3))
    place = circuit.lut([a, b, c], [3, 2, 3], table)
    node = circuit.nodes[place]
    assert (node.args, node.params[:2], len(node.params)) == ((a, c), (3, 1), 2 + 16)
    circuit.output(place, 12)
    given = [np.array([-3, 2, 0, -1]), np.array([0, 1, 1, 0])]
    assert circuit.evaluate(given)[0].tolist() == [5 + 16, 2 + 16 + 32, 16 + 32, 7 + 16]
    assert circuit.nodes[circuit.lut([b], [2], [9, 8, 7, 6])].low == 7


def test_a_memory_of_few_words_stays_a_memory():
    circuit = behind(0, 15, lambda c, x: c.rom(x, [v * v % 11 for v in range(16)]))
    assert operations(with_small_tables(circuit, 4)) == ["rom"]


def test_a_table_takes_a_lut_for_each_bit_that_is_no_wire():
    circuit = behind(-4, 3, lambda c, x: c.lut([x], [3], [0, 3, 4, 7, 8 + 3, 8 + 1, 8 + 6, 8 + 5]))
    (table,) = (circuit.nodes[place] for place, _ in circuit.outputs)
    sources, entries = [circuit.nodes[table.args[0]]], table.params[1:]
    # Bits 0 and 1 are none of the index, bit 2 and the sign are bits 1 and 2 of it.
    assert [table_luts(sources, entries, top) for top in range(6)] == [0, 1, 2, 2, 2, 2]
    assert table_luts(sources, entries, 4, 1) == 1


def test_the_text_of_a_table_has_an_entry_in_whole_digits():
    circuit = behind(-4, 3, lambda c, x: c.lut([x], [3], [0, 1, 2, 3, -4, -3, -2, 9]))
    place, _ = circuit.outputs[0]
    lines = line_of("m", circuit, schedule(circuit, 1), place).wires.splitlines()
    assert lines[:2] == [
        f"    localparam [63:0] v{place}_table = 64'h091e1d1c03020100;",
        f"    wire signed [4:0] v{place} = $signed(v{place}_table[{{v0[2:0], 3'd0}} +: 5]);",
    ]


SMALL, W = FixedType(2, 2, signed=False), FixedType(3, 3)
ACT = FixedType(3, 3, signed=False, rounding="RND", overflow="SAT")


def design(inputs=6, outputs=5):
    """A Dense layer of few bits and a ReLU."""
    rng = np.random.default_rng(10)
    types = {"result": FixedType(14, 8), "weight": W, "bias": FixedType(9, 5), "accum": FixedType(14, 8)}
    arrays = {"weight": weights(rng, (inputs, outputs), 0.7, 3), "bias": weights(rng, (outputs,), 0, 9)}
    products = {"reuse_factor": 1, "strategy": "latency"}
    return Design(
        name="net",
        layers=(
            layer_of("x", "Input", (), (inputs,), {"result": SMALL}, {}, {}, {}),
            layer_of("fc", "Dense", ("x",), (outputs,), types, arrays, {}, {}, **products),
            layer_of("act", "Activation", ("fc",), (outputs,), {"result": ACT}, {}, {}, {"activation": "relu"}),
        ),
        outputs=("act",),
        part="xc7z020clg400-1",
        clock_ns=5.0,
        io_type="io_parallel",
        backend="Vitis",
    )


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    return to_verilog(design(), tmp_path_factory.mktemp("verilog"))


def verdict(project):
    (proof,) = prove_project(project, design())
    return proof


def test_sums_and_the_tables_behind_them_are_proven(project, tmp_path):
    text = (project.path / "rtl/fc_sums.v").read_text()
    assert text.count("_table = ") >= 2
    assert re.search(r"_table\[\{v\w+\[\d:0\], v", text), "no table of several values"
    assert verdict(project).holds is True
    without = to_verilog(design(), tmp_path, tables=0)
    one, other = (read_weights(made, design()["fc"]) for made in (project, without))
    assert one.any()
    assert ((one != 0) == (other != 0)).all()
    assert "_table = " not in (without.path / "rtl/fc_sums.v").read_text()
    latency = [timed(plan_verilog(design(), VerilogLayout(tables=bits))).latency for bits in (0, 6)]
    assert latency[1] < latency[0]


def test_an_input_with_zeros_below_its_bits_is_read_back_behind_a_table(project):
    """A table reads the bits alone; a locked weight must not hide there."""
    (row,) = project.layers
    zeros = replace(row.reads, lanes=tuple(Lane(lane.low << 3, lane.high << 3, 3) for lane in row.reads.lanes))
    other = replace(project, layers=(replace(row, reads=replace(zeros, width=None)),))
    one, two = (read_weights(made, design()["fc"]) for made in (project, other))
    assert np.count_nonzero(one) == np.count_nonzero(two) > 5
    assert ((one != 0) == (two != 0)).all()


def digits(text):
    """The text with one digit of one table changed, for each digit; those of each table together."""
    for found in re.finditer(r"_table = \d+'h(\w+);", text):
        yield [
            text[:at] + f"{int(text[at], 16) ^ bit:x}" + text[at + 1 :]
            for at in range(found.start(1), found.end(1))
            for bit in (1, 2)
        ]


def test_no_table_with_another_entry_is_proven(project):
    path = project.path / "rtl/fc_sums.v"
    text = path.read_text()
    try:
        for mutants in digits(text):
            verdicts = []
            for mutant in mutants:
                path.write_text(mutant)
                verdicts.append(verdict(project))
            # An entry that is never read, or a digit of which the entry takes no bit, changes nothing.
            refused = [one for one in verdicts if not one.holds]
            assert len(refused) > len(mutants) // 3
            assert all(one.holds is False and "where its sum is" in one.found for one in refused)
    finally:
        path.write_text(text)


@pytest.mark.parametrize(
    ("pattern", "change"),
    [
        # An index bit less, another value as the index, an entry of other bits, parts in another order, another table.
        (r"\{(v\d+\w*)\[(\d+):0\]", lambda m: f"{{{m[1]}[{int(m[2]) - 1}:0]"),
        (r"\{(v\d+)\w*\[", lambda m: f"{{v{int(m[1][1:]) - 1}["),
        (r"(\d+)'d0\} \+: (\d)\]", lambda m: f"{m[1]}'d0}} +: {int(m[2]) - 1}]"),
        (r"\{(v\w+\[\d:0\]), (v\w+\[\d:0\])", lambda m: f"{{{m[2]}, {m[1]}"),
        (r"v(\d+)_table\[", lambda m: f"v{int(m[1]) + 1}_table["),
    ],
    ids=["index bit", "index", "bits", "order", "table"],
)
def test_no_table_that_is_read_otherwise_is_proven(project, pattern, change):
    path = project.path / "rtl/fc_sums.v"
    text = path.read_text()
    found = list(re.finditer(pattern, text))
    assert found
    try:
        for one in found:
            path.write_text(text[: one.start()] + change(one) + text[one.end() :])
            assert verdict(project).holds is not True
    finally:
        path.write_text(text)


@pytest.mark.parametrize(("part", "asked", "bits"), [("xc7z020clg400-1", None, 6), ("gw1nr-9", None, 4), (None, 0, 0)])
def test_the_part_says_how_many_inputs_a_lut_has(part, asked, bits):
    of = design()
    assert tables_of(of.__class__(**{**vars(of), "part": part}), VerilogLayout(tables=asked)) == bits


def test_other_numbers_are_refused():
    with pytest.raises(RtlError, match=r"tables are of 7 bits; wanted 0 to 6, or None"):
        VerilogLayout(tables=7)


def with_inputs(each, outputs=12, inputs=40):
    """The same layer, whose sum number n has `each[n % len(each)]` inputs of two bits."""
    base = design(inputs, outputs)
    rng = np.random.default_rng(11)
    kept = np.zeros((inputs, outputs), np.int64)
    for output in range(outputs):
        kept[rng.choice(inputs, each[output % len(each)], replace=False), output] = 3
    fc = base["fc"]
    changed = replace(fc, weights={**fc.weights, "weight": kept})
    return replace(base, layers=tuple(changed if layer is fc else layer for layer in base.layers))


def sums(made, counter=None, **layout):
    (layer,) = (one for one in plan_verilog(made, VerilogLayout(**layout), counter).layers if one.layer == "fc")
    return layer.parts[-1]


@pytest.mark.parametrize(
    ("each", "tables", "made"),
    [((3,), 6, True), ((4,), 6, False), ((3,), 5, False), ((2,), 4, True), ((3, 3, 3, 8), 6, True), ((3, 8), 6, False)],
)
def test_a_price_makes_the_tables_that_most_weights_become_and_counts_other_adders(each, tables, made):
    net = with_inputs(each)
    priced = sums(net, DigitCounter(), tables=tables)
    assert (priced.trees is None) == made
    if made:
        assert priced.circuit.nodes == sums(net, tables=tables).circuit.nodes


def test_neurons_of_few_bits_are_priced_as_a_lut_for_each_bit_they_give():
    prices = [verilog_price(with_inputs((inputs,)), "xc7") for inputs in (3, 4)]
    luts, counted = (layer.resources.lut.value for made in prices for layer in made.layers if layer.layer == "fc")
    assert luts <= 12 * ACT.width
    assert counted > 3 * luts


@pytest.mark.parametrize(("inputs", "bit_by_bit"), [(3, False), (4, True)])
def test_sums_that_are_tables_are_not_made_bit_by_bit(inputs, bit_by_bit, tmp_path):
    made = to_verilog(with_inputs((inputs,), outputs=60), tmp_path, interval=24, fold={"fc": 1})
    assert ("bit by bit" in made.layers[0].note) == bit_by_bit
