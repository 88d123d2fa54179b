"""What is computed of two streams that meet is proven for all values of both, and no mutant of its text is."""

import re
from dataclasses import replace

import numpy as np
import pytest

from fpgaprune.design import Design
from fpgaprune.hls import layer_of
from fpgaprune.rtl import prove_project, to_verilog
from fpgaprune.values import FixedType

from .networks import parallel_design

PIXEL = FixedType(5, 1, signed=False)
ACT = FixedType(4, 0, signed=False, rounding="RND", overflow="SAT")
WEIGHT, SUM, ACCUM = FixedType(4, 1), FixedType(9, 4, rounding="RND", overflow="SAT"), FixedType(18, 7)
# Raw weights for which values of either sign leave, between the same bounds.
KERNEL = np.array([[7, -6], [-6, 7]])


def network(function, result, shape=(4, 4, 2), relu=False):
    """A convolution or a Dense layer with a ReLU, a second one, and what becomes of both; then a third one.

    Of what meets, one has no sign and fewer bits behind the point.
    """
    layers = [layer_of("x", "Input", (), shape, {"result": PIXEL}, {}, {}, {})]
    window = {"in_width": 4, "in_height": 4, "filt_width": 1, "filt_height": 1}

    def add(name, kind, shape, types, sources=None, arrays=None, attributes=None, **rest):
        sources = sources or (layers[-1].name,)
        layers.append(layer_of(name, kind, sources, shape, types, arrays or {}, {}, attributes or {}, **rest))

    def sums(name, inputs, outputs, shape):
        image = len(shape) == 3
        weight = np.tile(KERNEL, (inputs // 2, outputs // 2))
        arrays = {"weight": weight[None, None] if image else weight, "bias": np.zeros(outputs, np.int64)}
        types = {"result": SUM, "weight": WEIGHT, "bias": WEIGHT, "accum": ACCUM}
        kind, attributes = ("Conv2D", window) if image else ("Dense", {})
        add(name, kind, shape, types, None, arrays, attributes, reuse_factor=1, strategy="latency")

    sums("one", shape[-1], shape[-1], shape)
    add("one_relu", "Activation", shape, {"result": ACT}, attributes={"activation": "relu"})
    sums("two", shape[-1], shape[-1], shape)
    if function == "concatenate":
        both = (*shape[:-1], 2 * shape[-1])
        add("met", "Concatenate", both, {"result": result}, ("one_relu", "two"), attributes={"axis": len(shape)})
    else:
        both = shape
        add("met", "Merge", both, {"result": result}, ("one_relu", "two"), attributes={"op": function})
    if relu:
        add("met_relu", "Activation", both, {"result": ACT}, attributes={"activation": "relu"})
    sums("three", both[-1], 2, (*both[:-1], 2))
    return Design(
        name="net",
        layers=tuple(layers),
        outputs=("three",),
        part="xc7z020clg400-1",
        clock_ns=5.0,
        io_type="io_stream",
        backend="Vitis",
    )


def verdicts(project, of):
    return {proof.module: proof for proof in prove_project(project, of)}


def rounded(width):
    return FixedType(width, width - 3, rounding="RND", overflow="SAT")


# Of each function, a type whose limits change what values become.
FUNCTIONS = {
    "add": rounded(3),
    "subtract": rounded(3),
    "average": rounded(4),
    "maximum": rounded(4),
    "minimum": rounded(4),
    "multiply": rounded(3),
    "concatenate": rounded(3),
}


@pytest.fixture(params=FUNCTIONS)
def made(request, tmp_path):
    of = network(request.param, FUNCTIONS[request.param])
    return to_verilog(of, tmp_path / "verilog"), of


def test_all_modules_of_a_network_with_a_skip_connection_are_proven(made):
    found = verdicts(*made)
    assert {"met_align", "met_widen", "three_sums"} < set(found)
    assert [name for name, proof in found.items() if not proof.holds] == []


_MUTANTS = {
    "constant": (r"(?<='sd)\d+", lambda found: str(int(found[0]) + 1)),
    "shift": (r"(?<=<<< )\d+", lambda found: str(int(found[0]) + 1)),
    "less shift": (r"(?<=<<< )\d+", lambda found: str(int(found[0]) - 1)),
    "sign": (r" [+-] (?=[v(])", lambda found: " - " if "+" in found[0] else " + "),
    "limit": (r"\(v\w+ [<>] [^)]*\) \? [^:?]* : ", lambda found: ""),
    "comparison": (r"(?<=v\d) < (?=v\d)", lambda found: " > "),
    "product": (r" \* ", lambda found: " + "),
    "output": (r"(?<=y\d = )v[1-9]\d*(?:_d\d+)?", lambda found: "v0"),
    "sign of an input": (r"\{1'b0, (in_data\[\d+:\d+\])\}", lambda found: f"$signed({found[1]})"),
    "bits": (r"\[(\d+):(\d+)\](?=[;)])", lambda found: f"[{int(found[1]) + 1}:{int(found[2]) + 1}]"),
    "a bit less": (r"(?<=wire signed \[)(\d+)(?=:0\] v\d+ = [^;]*[-+*])", lambda found: str(int(found[0]) - 1)),
}


def mutants(text, pattern, change):
    for found in re.finditer(pattern, text):
        yield text[: found.start()] + change(found) + text[found.end() :]


def test_no_mutant_of_them_is_proven(made):
    project, of = made
    tried = set()
    for name in (name for name in verdicts(project, of) if name.startswith("met_")):
        path = project.path / f"rtl/{name}.v"
        text = path.read_text()
        # Of a product or the larger, what is added to round changes no bit where the last bits are zeros.
        one_by_one = name in ("met_maximum", "met_minimum", "met_multiply")
        for kind, (pattern, change) in _MUTANTS.items() if not one_by_one else [*_MUTANTS.items()][1:]:
            for mutant in [*mutants(text, pattern, change)][:2]:
                path.write_text(mutant)
                assert verdicts(project, of)[name].holds is False, (name, kind, mutant)
                tried.add(kind)
        path.write_text(text)
    assert tried >= {"shift", "limit", "bits", "output", "a bit less"}


@pytest.mark.parametrize("made", ["subtract"], indirect=True)
def test_branches_that_change_places_are_refused(made):
    project, of = made
    path = project.path / "rtl/met.v"
    text = path.read_text()
    swapped = text.replace(".a_data(t2_data)", ".a_data(t3_data)").replace(".b_data(t3_data)", ".b_data(t2_data)")
    assert swapped != text
    path.write_text(swapped)
    refused = {proof.found for name, proof in verdicts(project, of).items() if name.startswith("met_")}
    assert refused == {"in module met, stream 'a' of the two comes from 'b_data'"}


@pytest.mark.parametrize("shape", [(2,), (4, 4, 2)])
def test_an_activation_in_the_datapath_of_a_merge_is_proven_with_it(tmp_path, shape):
    of = network("add", rounded(5), shape, relu=True)
    project = to_verilog(of, tmp_path / "verilog")
    assert ("met_relu",) in [row.joined.get("met") for row in project.layers]
    assert all(proof.holds for proof in prove_project(project, of))
    other = replace(of["met_relu"], types={"result": replace(ACT, overflow="WRAP")})
    changed = replace(of, layers=tuple(other if one.name == "met_relu" else one for one in of.layers))
    assert verdicts(project, changed)["met_add"].holds is False


def test_bounds_that_a_layer_without_a_datapath_behind_its_meeting_does_not_keep_are_no_premise(tmp_path):
    of = network("concatenate", FixedType(7, 2))
    project = to_verilog(of, tmp_path / "verilog")
    assert "met_cast" not in verdicts(project, of)
    right = verdicts(project, of)["three_sums"]
    assert right.holds
    rows = []
    for row in project.layers:
        for name in ("leaves", "reads"):
            bus = getattr(row, name)
            if (row.layer, name) in (("met", "leaves"), ("three", "reads")):
                lanes = tuple(replace(lane, high=lane.high - 1) for lane in bus.lanes)
                row = replace(row, **{name: replace(bus, lanes=lanes)})
        rows.append(row)
    assert verdicts(replace(project, layers=tuple(rows)), of)["three_sums"] != right


# Seeds with inputs of a merge that are always 0, on its way or in the layer before.
@pytest.mark.parametrize("seed", [59, 60, 88])
def test_no_right_verilog_is_called_wrong(tmp_path, seed):
    of = parallel_design(seed, 4)
    project = to_verilog(of, tmp_path / "verilog", interval=(0, 16, 64)[seed % 3])
    assert not [proof for proof in prove_project(project, of) if proof.holds is False]
