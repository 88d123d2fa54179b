"""The Verilog of a layer is proven for all inputs, and no mutant of its text is."""

import re
from dataclasses import replace

import numpy as np
import pytest

from fpgaprune.design import Design, LayerSpec, Softmax
from fpgaprune.errors import CertificateError
from fpgaprune.hls import layer_of
from fpgaprune.rtl import prove_project, to_verilog
from fpgaprune.values import FixedType

from ..estimate.designs import weights
from .networks import parallel_design, random_design

X, W, ACCUM = FixedType(6, 2), FixedType(6, 1), FixedType(16, 6)
OUT, ACT = (
    FixedType(9, 4, rounding="RND", overflow="SAT"),
    FixedType(5, 2, signed=False, rounding="RND", overflow="SAT"),
)


def design(accum=ACCUM, result=OUT, inputs=8, activation="relu"):
    """A Dense layer and its activation."""
    rng = np.random.default_rng(4)
    types = {"result": result, "weight": W, "bias": W, "accum": accum}
    arrays = {"weight": weights(rng, (inputs, 5), 0.4, 6), "bias": weights(rng, (5,), 0, 6)}
    products = {"reuse_factor": 1, "strategy": "latency"}
    given = {"table": FixedType(12, 2), "result": ACT} if activation != "relu" else {"result": ACT}
    return Design(
        name="net",
        layers=(
            layer_of("x", "Input", (), (inputs,), {"result": X}, {}, {}, {}),
            layer_of("fc", "Dense", ("x",), (5,), types, arrays, {}, {}, **products),
            layer_of("act", "Activation", ("fc",), (5,), given, {}, {}, {"activation": activation}),
        ),
        outputs=("act",),
        part="xc7z020clg400-1",
        clock_ns=5.0,
        io_type="io_parallel",
        backend="Vitis",
    )


@pytest.fixture
def project(tmp_path):
    return to_verilog(design(), tmp_path / "verilog")


def verdicts(project, of):
    return {proof.module.rpartition("_")[2]: proof for proof in prove_project(project, of)}


def text_file(project, role):
    return next(path for path in project.path.rglob("*.v") if path.name.endswith(f"_{role}.v"))


def test_sums_and_functions_are_proven_for_all_inputs(project):
    found = verdicts(project, design())
    assert {role: proof.holds for role, proof in found.items()} == {"sums": True}
    assert "5 sums of 8 inputs are the integer matrix, with no bit lost" in found["sums"].found


def alone():
    """An activation that reads the input."""
    given = {"result": ACT}
    act = layer_of("act", "Activation", ("x",), (8,), given, {}, {}, {"activation": "relu"})
    of = design()
    return replace(of, layers=(of.layers[0], act))


def test_a_function_alone_is_proven_for_all_numbers(tmp_path):
    found = verdicts(to_verilog(alone(), tmp_path / "verilog"), alone())
    assert (found["relu"].holds, found["relu"].found) == (
        True,
        "the function of layer 'act' is right for all 64 numbers that it can get",
    )


def test_each_of_two_functions_in_a_module_is_that_of_its_own_layer(tmp_path):
    """Both have a datapath of their own where a beat has several values; the second reads no input of the network."""
    of = alone()
    names = {"act": "leaky_relu", "act2": "relu6"}
    layers = [of.layers[0]]
    for name, function in names.items():
        given = {"result": replace(ACT, signed=True), "param": FixedType(6, 1)}
        attributes = {"activation": function, "activ_param": 0.25}
        layers.append(layer_of(name, "Activation", (layers[-1].name,), (8,), given, {}, {}, attributes))
    of = replace(of, layers=tuple(layers), outputs=("act2",))
    found = prove_project(to_verilog(of, tmp_path / "verilog"), of)
    assert [(proof.module, proof.holds) for proof in found] == [("act_leaky_relu", True), ("act_relu6", True)]
    assert [proof.found.split("'")[1] for proof in found] == ["act", "act2"]


def in_a_row(io_type="io_parallel"):
    """Two Dense layers with a ReLU behind each, whose values have bounds of their own."""
    of, rng = design(), np.random.default_rng(9)
    types = {"result": OUT, "weight": W, "bias": W, "accum": FixedType(18, 8)}
    arrays = {"weight": weights(rng, (5, 3), 0.2, 6), "bias": weights(rng, (3,), 0, 6)}
    products = {"reuse_factor": 1, "strategy": "latency"}
    layers = (
        layer_of("fc2", "Dense", ("act",), (3,), types, arrays, {}, {}, **products),
        layer_of("act2", "Activation", ("fc2",), (3,), {"result": ACT}, {}, {}, {"activation": "relu"}),
    )
    return replace(of, layers=(*of.layers, *layers), outputs=("act2",), io_type=io_type)


def test_a_layer_is_proven_for_what_a_proven_layer_before_it_gives(tmp_path):
    of = in_a_row()
    project = to_verilog(of, tmp_path / "verilog")
    one, two = project.layers
    assert (one.leaves.width, one.leaves) == (None, two.reads)
    assert [proof.holds for proof in prove_project(project, of)] == [True, True]
    # Of a layer before that is not proven, any number must be expected that its bits hold.
    path = project.path / "rtl/fc_sums.v"
    text = path.read_text()
    path.write_text(text.replace(" + ", " - ", 1))
    first, second = prove_project(project, of)
    assert first.holds is False
    assert second.holds is not False
    path.write_text(text)
    # Bounds that the layer before does not keep are no premise, and its own proof refuses them.
    lane = max(one.leaves.lanes, key=lambda lane: lane.high)
    short = replace(one.leaves, lanes=tuple(replace(x, high=x.high - 1) if x is lane else x for x in one.leaves.lanes))
    wrong = replace(project, layers=(replace(one, leaves=short), replace(two, reads=short)))
    assert prove_project(wrong, of)[0].holds is not True


@pytest.mark.parametrize(("weight", "bias"), [(0, 0), (1 / 32, -1)])
def test_an_output_that_is_always_zero_leaves_no_bits_and_is_proven(tmp_path, weight, bias):
    of = in_a_row()
    arrays = {name: array.copy() for name, array in of["fc"].weights.items()}
    arrays["weight"][:, 2], arrays["bias"][2] = weight, bias
    of = replace(of, layers=(of.layers[0], replace(of["fc"], weights=arrays), *of.layers[2:]))
    project = to_verilog(of, tmp_path / "verilog")
    assert [place.bits for place in project.layers[0].leaves.places(5)][2] == 0
    assert [proof.holds for proof in prove_project(project, of)] == [True, True]


@pytest.mark.parametrize("change", [{"zeros": 1}, {"low": -1}])
def test_values_at_another_place_of_a_bus_are_not_proven(tmp_path, change):
    of = in_a_row()
    project = to_verilog(of, tmp_path / "verilog")
    one, two = project.layers
    lanes = one.leaves.lanes
    moved = replace(one.leaves, lanes=(*lanes[:1], replace(lanes[1], **change), *lanes[2:]))
    for layers in ((replace(one, leaves=moved), two), (one, replace(two, reads=moved))):
        assert not all(proof.holds for proof in prove_project(replace(project, layers=layers), of))


def test_a_table_is_compared_in_all_of_its_entries(tmp_path):
    of = design(activation="sigmoid")
    project = to_verilog(of, tmp_path / "verilog")
    assert verdicts(project, of)["sums"].holds
    (rom,) = project.path.rglob("*_rom0.v")
    lines = rom.read_text()
    entries = re.findall(r"^ +\d+'d\d+: data = \d+'h[0-9a-f]+;$", lines, re.M)
    refused = 0
    for entry in entries[:: max(1, len(entries) // 12)]:
        word = int(entry.rpartition("'h")[2].strip(";"), 16)
        rom.write_text(lines.replace(entry, entry.rpartition("'h")[0] + f"'h{word ^ 1:x};"))
        proof = verdicts(project, of)["sums"]
        refused += proof.holds is False
        assert proof.holds or re.search(r"output \d is \d+ instead of \d+ where its sum is", proof.found)
    # Entries at the ends are of no number that the layer before gives.
    assert refused > 3


def mutants(text, pattern, change):
    """The text with one match changed, for each match."""
    for found in re.finditer(pattern, text):
        yield text[: found.start()] + change(found) + text[found.end() :]


_MUTANTS = {
    "shift": (r"(?<=<<< )\d+", lambda found: str(int(found[0]) + 1)),
    "sign": (r" [+-] (?=[v(])", lambda found: " - " if "+" in found[0] else " + "),
    "constant": (r"(?<='sd)\d+", lambda found: str(int(found[0]) // 2)),
    "register left out": (r"(?<=[ (])(v\d+)_d\d+(?=[ ;)])(?! <=)", lambda found: found[1]),
    "output": (r"(?<=y\d = )v\d+(?:_d\d+)?", lambda found: "v0"),
    "input": (r"in_data\[5:0\]", lambda found: "in_data[11:6]"),
}


@pytest.mark.parametrize("kind", [*_MUTANTS])
def test_no_mutant_of_the_sums_is_proven(project, kind):
    path, of = text_file(project, "sums"), design()
    text = path.read_text()
    pattern, change = _MUTANTS[kind]
    refused = 0
    for mutant in set(mutants(text, pattern, change)) - {text}:
        path.write_text(mutant)
        assert verdicts(project, of)["sums"].holds is not True, mutant
        refused += verdicts(project, of)["sums"].holds is False
    assert refused


def test_a_sum_that_is_one_bit_short_is_not_proven(project):
    """Widths are the least that hold their sums: a bit less loses one, unless its reader cuts it off anyway."""
    path, of = text_file(project, "sums"), design()
    text = path.read_text()
    verdict = []
    for found in re.finditer(r"wire signed \[(\d+):0\] (v\d+) = (?=[^;]*[+-])", text):
        name = found[2]
        short = text.replace(found[0], found[0].replace(f"[{found[1]}:0]", f"[{int(found[1]) - 1}:0]"))
        short = re.sub(rf"reg signed \[\d+:0\] ({name}_d\d+);", rf"reg signed [{int(found[1]) - 1}:0] \1;", short)
        path.write_text(short)
        verdict.append(verdicts(project, of)["sums"].holds)
    assert verdict.count(False) > len(verdict) // 2


def test_another_matrix_is_refused_with_output_and_input(project):
    of = design()
    weight = of.layers[1].weights["weight"].copy()
    place, output = np.argwhere(weight)[3]
    weight[place, output] = 0
    other = replace(of.layers[1], weights={**of.layers[1].weights, "weight": weight})
    found = verdicts(project, replace(of, layers=(of.layers[0], other, of.layers[2])))["sums"]
    assert found.holds is False
    assert f"output {output} takes input {place}" in found.found
    assert found.found.endswith("and the weights say 0 times")


@pytest.mark.parametrize(
    ("old", "new"),
    [(" > ", " < "), (" < ", " > "), ("'h0) : ", "'h1) : "), ("'h1f) : ", "'h1e) : "), ("sd31)", "sd29)")],
)
def test_no_mutant_of_a_function_is_proven(project, old, new):
    path, of = text_file(project, "sums"), design()
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    assert verdicts(project, of)["sums"].holds is False


def test_what_is_not_decided_is_never_called_proven(tmp_path):
    of = design(accum=FixedType(9, 4))
    found = verdicts(to_verilog(of, tmp_path / "verilog"), of)["sums"]
    assert (found.holds, found.found) == (
        None,
        "the accumulator rounds each product, so that the sum is none of a matrix",
    )


def with_softmax():
    """The Dense layer, of 32 inputs, and a softmax."""
    table, short = FixedType(17, 1, False, "RND", "SAT"), FixedType(9, 4, False, "RND", "SAT")
    types = {"accum": FixedType(20, 4, False), "exp_table": table, "inv_table": table, "inp_norm": short}
    types |= {"inv_inp": short, "result": FixedType(12, 1, False, "RND", "SAT")}
    operation = Softmax(table_size=512, exp_table_size=512, inverse_table_size=512)
    soft = LayerSpec("soft", ("fc",), (5,), types, operation=operation)
    of = design(inputs=32)
    return replace(of, layers=(*of.layers[:2], soft), outputs=("soft",), io_type="io_stream")


@pytest.mark.parametrize(
    ("multipliers", "roles"), [({}, {"softmax"}), ({"fc": 1}, {"exponentials", "softmax"})], ids=["at once", "in turn"]
)
def test_the_tables_of_a_softmax_are_compared_in_every_entry(tmp_path, multipliers, roles):
    of = with_softmax()
    project = to_verilog(of, tmp_path / "verilog", multipliers=multipliers)
    for role in roles:
        proof = verdicts(project, of)[role]
        assert proof.holds is None
        assert proof.found == "its tables are right in every entry; what it makes of them was not proven"
    memories = list(project.path.rglob("layer_soft_*_rom*.v"))
    assert {memory.stem.split("_")[2] for memory in memories} == roles
    for memory in memories:
        text = memory.read_text()
        entry = re.findall(r"^ +\d+'d\d+: data = \d+'h[0-9a-f]+;$", text, re.M)[5]
        head, _, word = entry.rpartition("'h")
        memory.write_text(text.replace(entry, f"{head}'h{int(word.strip(';'), 16) ^ 1:x};"))
        wrong = verdicts(project, of)[memory.stem.split("_")[2]]
        assert wrong.holds is False
        assert wrong.found.endswith("is neither the exponential nor the inverse of 'soft' in entry 5")
        memory.write_text(text)


@pytest.mark.parametrize("interval", [16, 64])
def test_the_weights_of_a_layer_in_several_cycles_are_compared(tmp_path, interval):
    """In memories, or in adders of one bit."""
    of = with_softmax()
    project = to_verilog(of, tmp_path / "verilog", interval=interval)
    read = [proof for proof in prove_project(project, of) if "its weights, read back" in proof.found]
    assert [(proof.layer, proof.holds) for proof in read] == [("fc", None)]
    layer = of.layers[1]
    weight = layer.weights["weight"].copy()
    place, output = np.argwhere(weight)[0]
    weight[place, output] += 2
    other = replace(layer, weights={**layer.weights, "weight": weight})
    changed = replace(of, layers=(of.layers[0], other, of.layers[2]))
    (wrong,) = [proof for proof in prove_project(project, changed) if proof.holds is False]
    assert wrong.found == f"the weight at [{place}, {output}] of layer 'fc' is another than the design's"


@pytest.mark.parametrize("seed", range(6))
def test_no_right_verilog_is_called_wrong(tmp_path, seed):
    """Networks drawn at random, whose layers are made for less than all numbers of their types."""
    for kind, of in (("branches", random_design(seed + 12, 2)), ("layers", parallel_design(seed + 3, 3))):
        project = to_verilog(of, tmp_path / kind, interval=(0, 16, 64)[seed % 3])
        assert not [proof for proof in prove_project(project, of) if proof.holds is False]


def test_an_unknown_line_and_a_lost_file_are_said(project):
    path, of = text_file(project, "sums"), design()
    text = path.read_text()
    path.write_text(text.replace("    assign out_data", "    initial $finish;\n    assign out_data"))
    found = verdicts(project, of)["sums"]
    assert found.holds is None
    assert "is in another form than to_verilog writes" in found.found
    path.unlink()
    with pytest.raises(CertificateError, match="is gone; write the Verilog again"):
        prove_project(project, of)


def test_a_module_in_parts_is_proven_and_each_connection_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr("fpgaprune.rtl.parts.PART_CHARACTERS", 1200)
    of = design()
    project = to_verilog(of, tmp_path / "verilog")
    parts = list(project.path.rglob("*_sums_part*.v"))
    assert len(parts) > 1
    assert verdicts(project, of)["sums"].holds is True
    for path in parts[1:]:
        text = path.read_text()
        low = re.search(r"\$signed\(\w+_data\[(\d+):(\d+)\]\)", text)
        path.write_text(text.replace(low[0], low[0].replace(f"[{low[1]}:{low[2]}]", f"[{int(low[1]) + 1}:{low[2]}]")))
        assert verdicts(project, of)["sums"].holds is not True
        path.write_text(text)
