"""The price of our own Verilog: its layout, its laws, and the syntheses that it was fitted to."""

from __future__ import annotations

import csv
import re
import sys
from collections import Counter, defaultdict
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import fpgaprune as fp
from fpgaprune.design import VerilogLayout
from fpgaprune.errors import EstimateError, RtlError
from fpgaprune.estimate import (
    Counts,
    DigitCounter,
    Needed,
    PlainTrees,
    SignedDigits,
    count_datapath,
    count_layer,
    find_fabric,
    price_hardware,
)
from fpgaprune.measure import ANALYTIC_OPEN_SYNTH, ANALYTIC_SYNTH, OPEN_SYNTH, VerilogPrice
from fpgaprune.rtl import (
    Circuit,
    Instance,
    Number,
    Pipeline,
    SerialSums,
    SerialTrees,
    matrix_product,
    plan_verilog,
    quick_schedule,
    share,
)
from fpgaprune.values import count_digits
from tests.benchmarks.bench_scheduled_price import ROWS as SCHEDULED_ROWS
from tests.benchmarks.bench_scheduled_price import random_layer
from tests.benchmarks.verilog_networks import Network, random_network
from tests.unit.rtl.networks import random_design

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
# All products at once.
AT_ONCE = {"serial": False, "parallel_products": 1 << 20}


def mlp(seed=0, bits=6, zeros=0.5, inputs=24, outputs=16):
    net = Network(seed)
    net.bits, net.weight_bits, net.zeros, net.powers, net.kernels = bits, 6, zeros, False, False
    net.input(inputs)
    net.dense(outputs)
    net.relu()
    net.dense(4)
    return net.design("mlp")


def with_weights(design, change):
    """The design with `change` of each layer's weights."""
    layers = [
        replace(la, weights={**la.weights, "weight": change(la.weights["weight"])}) if "weight" in la.weights else la
        for la in design.layers
    ]
    return replace(design, layers=tuple(layers))


def test_digits_make_the_matrix():
    matrix = np.random.default_rng(0).integers(-200, 200, (12, 7)) * (np.random.default_rng(1).random((12, 7)) < 0.6)
    digits = SignedDigits.of(matrix)
    made = np.zeros_like(matrix)
    np.add.at(made, (digits.row, digits.column), digits.sign << digits.shift)
    assert (made == matrix).all()
    assert (digits.by_column == count_digits(matrix).sum(axis=0)).all()


def test_pairs_that_occur_again():
    # 5 and 10 in one column are the same pair of digits as in the other; 3 is another one.
    assert SignedDigits.of(np.array([[1, 1], [1, 1]])).repeated() == (0.5, 1.0)
    assert SignedDigits.of(np.array([[1, 2], [1, 2]])).repeated() == (0.5, 1.0)
    assert SignedDigits.of(np.array([[1, 1], [1, -1]])).repeated() == (0.0, 0.0)
    assert SignedDigits.of(np.array([[4], [0]])).repeated() == (0.0, 0.0)


@pytest.mark.parametrize("seed", range(6))
def test_plain_trees_are_those_of_the_generator(seed):
    """Adder by adder and bit by bit, where no pair is shared."""
    rng = np.random.default_rng(seed)
    # One digit of each input, and each input in one sum: equal adders would exist once.
    sizes = rng.integers(2, 40, 4)
    matrix = np.zeros((sizes.sum(), 4), np.int64)
    digits = rng.choice([-1, 1], len(matrix)) << rng.integers(0, 7, len(matrix))
    matrix[np.arange(len(matrix)), np.repeat(np.arange(4), sizes)] = digits
    low, high = (-8, 7) if seed % 2 else (0, 15)
    graph, circuit = share(matrix, search=False), Circuit()
    values = [Number(circuit, circuit.input(4, seed % 2 == 1, low, high), 0) for _ in range(len(matrix))]
    sums = [total for total, _ in matrix_product(values, matrix, lambda *_: graph)]
    for total in sums:
        circuit.output(total.place, total.node.width)
    path = Pipeline(circuit, quick_schedule(circuit, 1), 1)
    made = count_datapath(path, Needed.of(path))
    ends = (np.full(len(matrix), bound) for bound in (low, high))
    trees = PlainTrees.of(SignedDigits.of(matrix), *ends)
    assert (trees.adders, trees.chain_bits, trees.pair_bits) == (
        made["adder"],
        made["chain_bit"],
        made["pair_bit"],
    )
    assert (trees.differences, trees.lone_bits) == (made["difference"], made["lone_bit"])
    assert trees.depth == path.plan.depth
    bounds = [(total.low, total.high) for total in sums]
    found = zip(trees.low.tolist(), trees.high.tolist(), trees.exponent.tolist(), strict=True)
    # What is negated later has bounds of the other sign.
    assert all((a << e, b << e) in ((c, d), (-d, -c)) for (a, b, e), (c, d) in zip(found, bounds, strict=True))
    assert trees.register_bits == pytest.approx(made["register"], rel=0.15)


@pytest.mark.parametrize("seed", [6, 27])
def test_a_plan_names_the_modules_that_the_text_has(seed, tmp_path):
    design, interval = random_network(seed)
    project = fp.to_verilog(design, tmp_path, interval=interval)
    hardware = plan_verilog(design, VerilogLayout(interval=interval))
    modules = {layer.layer: layer.module for layer in project.layers}
    for layer in hardware.layers:
        if not layer.layer:
            continue
        text = (tmp_path / "rtl" / f"{modules[layer.layer]}.v").read_text()
        written = Counter(re.findall(r"^    (fp_\w+) (?:#|both)", text, re.MULTILINE))
        assert written == Counter(part.module for part in layer.every if isinstance(part, Instance))
        depths = re.findall(r"fp_fifo #\(\.WIDTH\((\d+)\), \.DEPTH\((\d+)\)\) queue", text)
        queues = [part for part in layer.every if isinstance(part, Instance) and part.module == "fp_fifo"]
        assert {(int(w), int(d)) for w, d in depths} <= {(q["WIDTH"], q["DEPTH"]) for q in queues}


@pytest.mark.parametrize("seed", range(0, 32, 5))
def test_counted_adders_are_near_those_that_are_searched_for(seed):
    """Every layer keeps its form, and its adders their number within a quarter."""
    design, interval = random_network(seed)
    layout = VerilogLayout(interval=interval)
    searched = {la.layer: la for la in plan_verilog(design, layout).layers if la.layer}
    priced = fp.verilog_price(design, interval=interval)
    for row in priced.layers[:-1]:
        parts = searched[row.layer].parts
        made = sum(part.count for part in parts if isinstance(part, SerialSums))
        sums = next((p for p in parts if isinstance(p, Pipeline) and len(p.circuit.inputs) > 1), None)
        if row.adders is None or row.adders < 30:
            continue
        if not made and sums is not None:
            made = sum(node.op in ("add", "sub") for node in sums.circuit.nodes) - len(sums.circuit.outputs)
        assert row.adders == pytest.approx(made, rel=0.25, abs=len(design[row.layer].weights["bias"]) + 5)


def test_more_locked_weights_never_cost_more():
    rng = np.random.default_rng(3)
    for seed in range(4):
        design = mlp(seed, zeros=0.0)
        order = {la.name: rng.random(la.weights["weight"].shape) for la in design.layers if "weight" in la.weights}
        prices = []
        for locked in (0.0, 0.2, 0.4, 0.6, 0.8, 0.95):
            layers = [
                replace(la, weights={**la.weights, "weight": la.weights["weight"] * (order[la.name] >= locked)})
                if la.name in order
                else la
                for la in design.layers
            ]
            made = fp.verilog_price(replace(design, layers=tuple(layers)), **AT_ONCE).resources
            prices.append((made.lut.value, made.ff.value))
        assert prices == sorted(prices, reverse=True)
        assert prices[-1][0] < 0.2 * prices[0][0]


def test_wider_numbers_cost_more():
    """A price by the number of weights alone would not see it."""
    for seed in range(3):
        narrow, wide = (fp.verilog_price(mlp(seed, bits=bits), "ecp5", **AT_ONCE).resources for bits in (3, 9))
        assert wide.lut.value > 1.2 * narrow.lut.value
        assert wide.ff.value > 1.2 * narrow.ff.value


def test_weights_of_one_digit_cost_less_than_those_of_three():
    design = mlp(0, zeros=0.3)
    powers = with_weights(design, lambda w: np.sign(w) * 16)
    many = with_weights(design, lambda w: np.sign(w) * 21)
    one, three = (fp.verilog_price(made, **AT_ONCE) for made in (powers, many))
    assert one.resources.lut.value < 0.75 * three.resources.lut.value
    assert one.layers[0].adders < three.layers[0].adders


def test_more_cycles_make_it_smaller_and_slower():
    design = mlp(2, zeros=0.3)
    fast, slow = (fp.verilog_price(design, interval=interval) for interval in (1, 400))
    assert (fast.interval_cycles, fast.resources.dsp.value) == (1, 0)
    assert slow.resources.lut.value < 0.6 * fast.resources.lut.value
    assert 1 < slow.interval_cycles <= 400
    assert slow.latency_cycles > fast.latency_cycles
    assert any(isinstance(p, SerialTrees) for p in _parts(design, 400)) or slow.resources.dsp.value > 0


def _parts(design, interval):
    from fpgaprune.estimate import DigitCounter

    hardware = plan_verilog(design, VerilogLayout(interval=interval), DigitCounter())
    return [part for layer in hardware.layers for part in layer.parts]


def rows():
    with (BENCHMARKS / "verilog_price_rows.csv").open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def synthesised():
    """(family, seed) -> true counts and the price."""
    true = defaultdict(Counter)
    for row in rows():
        key = row["family"], int(row["seed"])
        true[key].update({name: int(row[name]) for name in ("lut", "ff", "dsp", "block")})
    found = {}
    for family, seed in true:
        design, interval = random_network(seed)
        found[family, seed] = (true[family, seed], fp.verilog_price(design, family, interval=interval))
    return found


@pytest.mark.parametrize("family", ["xc7", "xcup", "ecp5", "nexus", "gowin", "ice40up"])
@pytest.mark.parametrize("resource", ["lut", "ff"])
def test_prices_are_near_syntheses(synthesised, family, resource):
    """As near as the docs say, and within their ranges as often as these say."""
    pairs = [
        (true[resource], made.resources[resource]) for (of, _), (true, made) in synthesised.items() if of == family
    ]
    errors = np.array([abs(priced.value / true - 1) for true, priced in pairs])
    assert len(errors) >= 20
    assert np.median(errors) <= (0.12 if family == "ice40up" else 0.07)
    assert np.percentile(errors, 90) <= 0.25
    inside = np.mean([priced.low <= true <= priced.high for true, priced in pairs])
    assert 0.6 <= inside <= 1


@pytest.mark.parametrize("resource", ["dsp", "block"])
def test_blocks_are_exact_but_for_two_networks_of_a_family(synthesised, resource):
    wrong = Counter()
    for (family, _), (true, made) in synthesised.items():
        name = find_fabric(family).memory["block"] if resource == "block" else resource
        # Only layers were synthesised, and nothing between them.
        wrong[family] += true[resource] != sum(layer.resources[name].value for layer in made.layers if layer.layer)
    assert max(wrong.values(), default=0) <= 2
    assert sum(true[resource] > 0 for true, _ in synthesised.values()) >= 4


@pytest.mark.parametrize("family", ["ecp5", "gowin", "nexus"])
def test_a_small_scheduled_layer_costs_what_synthesis_counts(family):
    """On Nexus, where no DSP block multiplies, the products are LUTs: a third of what these layers take."""
    errors, blocks = [], 0
    with SCHEDULED_ROWS.open(newline="") as file:
        counted = [row for row in csv.DictReader(file) if row["family"] == family and 30 <= int(row["seed"]) < 50]
    for row in counted:
        design, layout = random_layer(int(row["seed"]))
        planned = next(
            one for one in plan_verilog(design, layout, DigitCounter()).layers if one.layer in layout.multipliers
        )
        priced = find_fabric(family).resources(count_layer(planned))
        errors.append(abs(priced["lut"] / int(row["lut"]) - 1))
        blocks += priced["dsp"] == int(row["dsp"])
    assert len(errors) == 20
    assert blocks >= 17
    assert np.median(errors) <= 0.12


@pytest.mark.parametrize(
    ("family", "words", "cells"),
    # Cells of 16 x 4 bits; the longest memory is in blocks. An iCE40 has none of LUTs.
    [("gowin", 16, 2 * 3), ("gowin", 32, 4 * 3), ("gowin", 1024, 0), ("ice40up", 16, 0)],
)
def test_memories_of_luts_are_counted(family, words, cells):
    assert find_fabric(family).memories(Counts({f"memory_8_{words}": 3.0, "pair_bit": 7.0})) == cells


def test_a_price_is_a_fraction_of_the_search_for_adders():
    design = mlp(1, zeros=0.2, inputs=40, outputs=24)
    layout = VerilogLayout(**AT_ONCE)

    def calls(function):
        """Count the calls of functions, which a busy machine does not change."""
        count = 0

        def called(_, event, __):
            nonlocal count
            count += event in ("call", "c_call")

        before = sys.getprofile()
        sys.setprofile(called)
        try:
            function()
        finally:
            sys.setprofile(before)
        return count

    price = calls(lambda: fp.verilog_price(design, layout=layout))
    assert 0 < price < calls(lambda: plan_verilog(design, layout)) / 4


def test_a_price_has_its_own_stage_and_comes_back_from_json():
    made = fp.verilog_price(mlp())
    assert made.whole.stage == ANALYTIC_OPEN_SYNTH == "analytic_synth(open)"
    assert ANALYTIC_OPEN_SYNTH not in (ANALYTIC_SYNTH, OPEN_SYNTH)
    assert ANALYTIC_OPEN_SYNTH.analytic
    assert made.whole.cycles.latency_max == made.latency_cycles
    assert VerilogPrice.from_json(made.to_json()) == made
    for one in (made.resources.lut, made.resources.ff):
        assert 0 < one.low <= one.value <= one.high


def test_layers_and_what_stands_between_them_are_the_whole():
    design, interval = random_network(6)
    hardware = plan_verilog(design, VerilogLayout(interval=interval))
    fabric = find_fabric("ecp5")
    made = price_hardware(design, hardware, fabric)
    assert sum(layer.resources.lut.value for layer in made.layers) == pytest.approx(made.resources.lut.value, abs=9)
    assert made.layers[-1].layer == ""
    assert made.layers[-1].resources.ff.value > 0
    assert isinstance(count_layer(hardware.layers[0]), Counts)


def test_an_ice40_hx_has_the_price_of_an_ultraplus_with_products_of_luts():
    """A rounded average multiplies by a constant in no block; what is not multiplied costs the same on both."""
    design, interval = random_network(15)
    small, large = (fp.verilog_price(design, family, interval=interval).resources for family in ("ice40", "ice40up"))
    assert (small.dsp.value, large.dsp.value) == (0, 15)
    assert small.lut.value > large.lut.value
    assert (small.bram4, small.ff) == (large.bram4, large.ff)


def test_what_has_no_price_is_refused():
    with pytest.raises(
        EstimateError, match=r"family 'gatemate' has no price of Verilog; those that have: ecp5, gowin, ice40, ice40up,"
    ):
        fp.verilog_price(mlp(), "gatemate")
    with pytest.raises(RtlError, match="fold names nowhere"):
        fp.verilog_price(mlp(), fold={"nowhere": 2})


def test_branches_that_are_appended_and_sums_that_saturate_have_a_price():
    for seed in (303, 313):
        made = fp.verilog_price(random_design(seed, 3), "ecp5")
        assert made.latency_cycles >= made.interval_cycles > 1
    searched = plan_verilog(random_design(313, 3), VerilogLayout())
    true = price_hardware(random_design(313, 3), searched, find_fabric("ecp5"))
    # In the order of the template such sums wait in registers; as early as can be they would take twice as many.
    assert made.resources.ff.value == pytest.approx(true.resources.ff.value, rel=0.1)
