"""Modules beside a layer's sums are proven for every value of each input, and no mutant of their text is."""

import re
from dataclasses import replace

import numpy as np
import pytest

from fpgaprune.design import Dense, Design
from fpgaprune.hls import layer_of
from fpgaprune.rtl import prove_project, to_verilog
from fpgaprune.values import FixedType
from tests.quick import quick

from ..estimate.designs import weights
from .networks import parallel_design, random_design

PIXEL = FixedType(6, 1, signed=False, rounding="RND", overflow="SAT")
ACT = FixedType(5, 2, signed=False, rounding="RND", overflow="SAT")
WEIGHT, SUM, ACCUM = FixedType(4, 1), FixedType(12, 5), FixedType(20, 8)


def network(pool="Max", outputs=3):
    """Two padded convolutions, a pooling (or none) and a Dense layer on images of 4 x 4 x 2."""
    rng = np.random.default_rng(3)
    layers = [layer_of("x", "Input", (), (4, 4, 2), {"result": PIXEL}, {}, {}, {})]

    def add(name, kind, shape, types, arrays=None, attributes=None, **rest):
        layers.append(
            layer_of(name, kind, (layers[-1].name,), shape, types, arrays or {}, {}, attributes or {}, **rest)
        )

    def sums(name, kind, taps, outputs, shape, attributes=None):
        arrays = {"weight": weights(rng, (*taps, outputs), 0.3, 4), "bias": weights(rng, (outputs,), 0, 4)}
        types = {"result": SUM, "weight": WEIGHT, "bias": WEIGHT, "accum": ACCUM}
        add(name, kind, shape, types, arrays, attributes, reuse_factor=1, strategy="latency")
        add(f"{name}_relu", "Activation", shape, {"result": ACT}, attributes={"activation": "relu"})

    window = {"in_width": 6, "in_height": 6, "filt_width": 3, "filt_height": 3}
    for name, before, channels in (("one", 2, 3), ("two", 3, 4)):
        kind = PIXEL if name == "one" else ACT
        pads = {"pad_top": 1, "pad_bottom": 1, "pad_left": 1, "pad_right": 1}
        add(f"{name}_pad", "ZeroPadding2D", (6, 6, before), {"result": kind}, attributes=pads)
        sums(name, "Conv2D", (3, 3, before), channels, (4, 4, channels), window)
    if pool:
        average = FixedType(9, 6) if pool == "Average" else FixedType(7, 4)
        of_pool = {"pool_op": pool, "pool_height": 2, "pool_width": 2, "in_width": 4, "in_height": 4}
        add("pool", "Pooling2D", (2, 2, 4), {"result": ACT, "accum": average}, attributes=of_pool)
    inputs = 16 if pool else 64
    add("flat", "Reshape", (inputs,), {"result": ACT})
    sums("fc", "Dense", (inputs,), outputs, (outputs,))
    return Design(
        name="net",
        layers=tuple(layers),
        outputs=("fc_relu",),
        part="xc7z020clg400-1",
        clock_ns=5.0,
        io_type="io_stream",
        backend="Vitis",
    )


def verdicts(project, of):
    return {proof.module: proof for proof in prove_project(project, of)}


# Networks and layouts whose modules are for all that stands beside sums.
CASES = {
    "by a schedule": ({"outputs": 5}, {"multipliers": {"two": 3, "fc": 2}}),
    "at once": ({}, {}),
    "an average": ({"pool": "Average"}, {}),
    "bit by bit": ({"pool": None}, {"interval": 256}),
    "in turn": ({"outputs": 12}, {"fold": {"fc": 4}}),
}


@pytest.fixture(params=CASES)
def made(request, tmp_path):
    network_of, layout = CASES[request.param]
    of = network(**network_of)
    return to_verilog(of, tmp_path / "verilog", **layout), of


def test_all_modules_are_proven_but_what_multiplies_in_turn_or_adds_bit_by_bit(made):
    found = verdicts(*made)
    assert "fc_finish" in found
    for name, proof in found.items():
        assert proof.holds is not False
        assert proof.holds or name.endswith(("_products", "_sums"))
        assert proof.holds or "its weights, read back, are the integer matrix" in proof.found


@pytest.mark.parametrize("seed", [30007, 30029, 30053, 30103])
def test_no_right_schedule_is_called_wrong(tmp_path, seed):
    of = parallel_design(seed, 3)
    names = [one.name for one in of.layers if isinstance(one.operation, Dense)]
    project = to_verilog(of, tmp_path / "verilog", multipliers=dict.fromkeys(names[:1], 2))
    assert not [proof for proof in prove_project(project, of) if proof.holds is False]


_MUTANTS = {
    "shift": (r"(?<=<<< )\d+", lambda found: str(int(found[0]) + 1)),
    "sign": (r" [+-] (?=[v(])", lambda found: " - " if "+" in found[0] else " + "),
    "constant": (r"(?<='sd)\d+", lambda found: str(int(found[0]) // 2 + 1)),
    "table": (r"(?<='h)[0-9a-f]+(?=;)", lambda found: f"{int(found[0], 16) ^ 1:x}"),
    "output": (r"(?<=y\d = )v[1-9]\d*(?:_d\d+)?", lambda found: "v0"),
    "bits": (r"\[(\d+):(\d+)\](?=[;)])", lambda found: f"[{int(found[1]) + 1}:{int(found[2]) + 1}]"),
    "sign of an input": (r"\{1'b0, (in_data\[\d+:\d+\])\}", lambda found: f"$signed({found[1]})"),
    "limit": (r" ([<>]) (?=\d+'sd)", lambda found: " >= " if found[1] == "<" else " <= "),
}


# Slow to prove, and mutants of the same kind of text that other cases have.
_ALIKE = {
    "bit by bit": {"bits", "constant", "limit", "shift", "sign of an input"},
    "in turn": {"bits", "output", "shift", "constant", "limit"},
    "by a schedule": {"constant", "limit", "sign of an input"},
    "an average": {"constant", "sign"},
}
_PAIRS = [(case, kind) for case in CASES for kind in _MUTANTS]


@pytest.mark.parametrize(
    ("made", "kind"),
    quick([(case, kind) for case, kind in _PAIRS if kind not in _ALIKE.get(case, ())], _PAIRS),
    indirect=["made"],
)
def test_no_mutant_of_them_is_proven(made, kind):
    project, of = made
    pattern, change = _MUTANTS[kind]
    roles = ("_pack", "_unpack", "_begin", "_finish")
    # The number of an output, beside a total, only ever is an address.
    names = [name for name in verdicts(project, of) if name.endswith(roles[: 3 if "input" in kind else 4])]
    for name in names:
        path = project.path / "rtl" / f"{name}.v"
        text = path.read_text()
        for found in list(re.finditer(pattern, text))[:12]:
            path.write_text(text[: found.start()] + change(found) + text[found.end() :])
            assert verdicts(project, of)[name].holds is not True, (name, found[0], text[: found.start()][-80:])
        path.write_text(text)


def test_two_values_that_change_places_are_not_proven(made):
    project, of = made
    for name in (name for name in verdicts(project, of) if name.endswith(("_pack", "_unpack"))):
        path = project.path / "rtl" / f"{name}.v"
        text = path.read_text()
        one, *others = re.findall(r"in_data\[\d+:\d+\]", text)
        if not others:
            continue
        two = others[0]
        path.write_text(text.replace(one, "first").replace(two, one).replace("first", two))
        assert verdicts(project, of)[name].holds is not True
        path.write_text(text)


def test_another_bias_of_a_total_is_refused(made):
    project, of = made
    layer = of["fc"]
    bias = layer.weights["bias"].copy()
    bias[0] += 1
    other = replace(layer, weights={**layer.weights, "bias": bias})
    changed = replace(of, layers=tuple(other if one is layer else one for one in of.layers))
    assert verdicts(project, changed)["fc_finish"].holds is not True


@pytest.mark.parametrize("made", ["an average"], indirect=True)
@pytest.mark.parametrize(("old", "new"), [("[7:2]", "[6:1]"), ("v1[4:0]", "v0[4:0]")])
def test_another_division_of_an_average_is_refused(made, old, new):
    project, of = made
    path = project.path / "rtl" / "pool_finish.v"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    assert verdicts(project, of)["pool_finish"].holds is False


def test_an_input_that_is_always_zero_does_not_stand_for_another(tmp_path):
    of = parallel_design(1302, 3)
    project = to_verilog(of, tmp_path / "verilog")
    path = project.path / "rtl/dense4_sums.v"
    text = path.read_text()
    (row,) = [row for row in project.layers if row.layer == "dense4"]
    assert (row.reads.lanes[0].low, row.reads.lanes[0].high) == (0, 0)
    assert verdicts(project, of)["dense4_sums"].holds
    path.write_text(text.replace("in_data[32:22]", "in_data[10:0]"))
    assert not verdicts(project, of)["dense4_sums"].holds


# Seeds with constant outputs and inputs, tables of one entry, negated words, and weights of which one bit is read.
SEEDS = [(1001, 4), (1020, 2), (1022, 0), (1058, 2), (1070, 0), (1088, 0), (1103, 2), (1173, 4), (1206, 4), (1302, 0)]
SEEDS += [(1308, 4), (1319, 4), (5046, 4)]


@pytest.mark.parametrize(("seed", "branches"), SEEDS)
def test_no_right_verilog_is_called_wrong(tmp_path, seed, branches):
    of = random_design(seed, branches) if branches else parallel_design(seed, 3)
    project = to_verilog(of, tmp_path / "verilog", interval=(0, 16, 64)[seed % 3])
    assert not [proof for proof in prove_project(project, of) if proof.holds is False]


@pytest.mark.parametrize("factor", [-1, 3])
def test_weights_in_a_memory_are_a_multiple_by_a_power_of_two_alone(tmp_path, factor):
    of = network(outputs=12)
    layer = of["fc"]
    of = replace(of, layers=tuple(scaled(layer, factor) if one is layer else one for one in of.layers))
    project = to_verilog(of, tmp_path / "verilog", fold={"fc": 4})
    assert verdicts(project, of)["fc_products"].holds is None
    changed = replace(of, layers=tuple(layer if one.name == "fc" else one for one in of.layers))
    assert verdicts(project, changed)["fc_products"].holds is False


def scaled(layer, factor):
    """The layer with the weights of one output times a factor, and of a type that holds them."""
    weight = layer.weights["weight"].copy()
    weight[:, 2] *= factor
    types = {**layer.types, "weight": FixedType(6, 3)}
    return replace(layer, types=types, weights={**layer.weights, "weight": weight})
