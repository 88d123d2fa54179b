"""Products of two values of which one has few bits: of LUTs, right for every pair of values."""

import itertools

import numpy as np
import pytest

import fpgaprune as fp
from fpgaprune.design import VerilogLayout
from fpgaprune.estimate import verilog_price
from fpgaprune.rtl import Circuit, Number, multiplied
from tests.benchmarks.verilog_networks import Network

KINDS = [(bits, signed) for bits in range(1, 7) for signed in (False, True)]


def ends(bits, signed):
    return (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)


def product(first, second):
    """The circuit of a product, with every pair of values and what it gives for them."""
    circuit = Circuit()
    factors = [Number(circuit, circuit.input(*kind, *ends(*kind)), 2) for kind in (first, second)]
    found = multiplied(*factors)
    assert found.fraction == 4
    circuit.outputs.append((found.place, found.node.width))
    values = [np.arange(low, high + 1) for low, high in (ends(*first), ends(*second))]
    pairs = [part.ravel() for part in np.meshgrid(*values)]
    return circuit, pairs, circuit.evaluate(pairs)[0]


def test_every_product_is_right():
    for first, second in itertools.product(KINDS, KINDS):
        circuit, (a, b), found = product(first, second)
        np.testing.assert_array_equal(found, a * b, err_msg=f"{first}, {second}")
        # A bit for the sign of what has none, and one for a sum whose bounds do not know that its rows agree.
        assert circuit.nodes[circuit.outputs[0][0]].width <= first[0] + second[0] + 2


@pytest.mark.parametrize(("first", "second", "in_luts"), [(4, 6, True), (2, 12, True), (4, 11, False), (5, 5, False)])
def test_only_a_product_of_few_luts_is_made_of_them(first, second, in_luts):
    circuit, _, _ = product((first, False), (second, True))
    assert in_luts == all(node.op != "mul" for node in circuit.nodes)


def test_an_input_whose_bounds_rule_out_its_sign_is_multiplied_as_usual():
    """Its text does not say that it is never negative, so that its rows could not be read back."""
    circuit = Circuit()
    value = Number(circuit, circuit.input(3, True, 0, 3), 0)
    found = multiplied(value, Number(circuit, circuit.input(6, True, -32, 31), 0))
    assert found.node.op == "mul"


def folded(bits):
    net = Network(3)
    net.bits, net.weight_bits, net.zeros, net.powers = bits, 6, 0.0, False
    net.input(4, 4, 6)
    net.relu()
    net.dense(5)
    return net.design("folded")


def test_a_folded_layer_of_few_bits_takes_luts_and_no_dsp_block(tmp_path):
    design = folded(3)
    layout = VerilogLayout(fold={design.layers[-1].name: 16})
    few, many = (verilog_price(one, "xc7", layout=layout).resources for one in (design, folded(8)))
    assert (few["dsp"].value, many["dsp"].value) == (0, 30)
    x = np.random.default_rng(0).uniform(-1, 1, (20, *design.layers[0].output_shape))
    written = fp.to_verilog(design, tmp_path / "verilog", layout=layout)
    np.testing.assert_array_equal(written.simulate(x).output, fp.emulate(design, x))
