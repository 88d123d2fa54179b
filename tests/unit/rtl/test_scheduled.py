"""Layers whose kernels are visited by a schedule: layouts, files, and weights read back from them."""

import re
from dataclasses import replace

import numpy as np
import pytest

from fpgaprune.design import VerilogLayout
from fpgaprune.errors import CertificateError, RtlError
from fpgaprune.rtl import Instance, check_verilog, cycles_of, may_be_in_luts, plan_verilog, read_weights, to_verilog
from fpgaprune.values import FixedType, MaskSet

from .networks import Net


def design_of(kind, seed=0, accum=None, locked=0.4):
    """A network of one layer, some of whose kernels are locked; its name."""
    rng = np.random.default_rng(seed)
    net = Net(rng)
    name = {
        "conv": lambda: net.conv(net.input(5, 6, 4), 5),
        "strided": lambda: net.conv(net.input(5, 6, 3), 4, (3, 2), (2, 2)),
        "pointwise": lambda: net.conv(net.input(3, 4, 6), 5, (1, 1)),
        "depthwise": lambda: net.depthwise(net.input(5, 5, 6)),
        "dense": lambda: net.dense(net.flatten(net.input(2, 3, 4)), 7),
    }[kind]()
    design = net.design(name)
    layer = design[name]
    weight = layer.weights["weight"]
    mask = np.broadcast_to(rng.random(weight.shape[-2:]) >= locked, weight.shape)
    layer = replace(
        layer,
        weights={**layer.weights, "weight": np.where(mask, weight | 1, 0)},
        types={**layer.types, "accum": accum or FixedType(40, 20)},
        sources={"weight": f"{name}/kernel"},
    )
    layers = tuple(layer if la.name == name else la for la in design.layers)
    return replace(design, layers=layers), name, MaskSet({f"{name}/kernel": mask})


KINDS = ["conv", "strided", "pointwise", "depthwise", "dense"]


@pytest.mark.parametrize("multipliers", [1, 20, 60])
@pytest.mark.parametrize("kind", KINDS)
def test_the_kernels_that_a_schedule_visits_are_read_back(kind, multipliers, tmp_path):
    design, name, masks = design_of(kind)
    project = to_verilog(design, tmp_path, multipliers={name: multipliers})
    assert (read_weights(project, design[name]) == design[name].weights["weight"]).all()
    assert not check_verilog(project, design, masks).violations


@pytest.mark.parametrize("kind", KINDS)
def test_a_kernel_that_crept_into_the_memory_is_found(kind, tmp_path):
    design, name, masks = design_of(kind)
    layer = design[name]
    locked = np.argwhere(layer.weights["weight"] == 0)[0]
    weight = layer.weights["weight"].copy()
    weight[tuple(locked)] = 1
    tampered = replace(layer, weights={**layer.weights, "weight": weight})
    project = to_verilog(design, tmp_path, multipliers={name: 9})
    layers = tuple(tampered if la.name == name else la for la in design.layers)
    to_verilog(replace(design, layers=layers), tmp_path, multipliers={name: 9})
    check = check_verilog(project, design, masks)
    assert [(weight.path, weight.violations) for weight in check.weights] == [(f"{name}/kernel", 1)]
    assert check.weights[0].first_violation.startswith(f"[{', '.join(map(str, locked))}]")


def test_a_locked_kernel_stands_in_no_word(tmp_path):
    """As many words as the busiest group has kernels kept, and none for the others."""
    design, name, masks = design_of("conv")
    kept = int(masks[f"{name}/kernel"][0, 0].sum())
    to_verilog(design, tmp_path, multipliers={name: 18})
    words = re.findall(r"words\[\d+\] = ", (tmp_path / "rtl" / f"{name}_kernels.v").read_text())
    assert len(words) == -(-kept // 2)


def test_a_kept_weight_changes_the_memory_alone(tmp_path):
    design, name, _ = design_of("conv")
    before = to_verilog(design, tmp_path / "before", multipliers={name: 18})
    layer = design[name]
    weight = layer.weights["weight"].copy()
    place = tuple(np.argwhere(weight)[3])
    weight[place] -= 2 if weight[place] > 1 else -2
    changed = replace(layer, weights={**layer.weights, "weight": weight})
    layers = tuple(changed if la.name == name else la for la in design.layers)
    after = to_verilog(replace(design, layers=layers), tmp_path / "after", multipliers={name: 18})
    texts = [{file: (made.path / file).read_text() for file in made.files} for made in (before, after)]
    assert texts[0].keys() == texts[1].keys()
    assert [file for file in texts[0] if texts[0][file] != texts[1][file]] == [f"rtl/{name}_kernels.v"]


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        ("_kernels", r"words\[2\] = .*\n", "", r"the memory \w+_kernels has \d+ words; wanted \d+"),
        ("_kernels", r"(words\[0\] = \d+'h)\w+", r"\g<1>0", r"visits kernel \(0, 0\) twice, or though it is zero"),
        ("_turns", r"(words\[1\] = \d+'h)(\w+)", r"\g<1>0", "which is not stored or is read twice"),
        ("_turns", r"(words\[0\] = \d+'h)\w+", r"\g<1>ff", "makes 5 of 5 outputs and leaves 1 sums unread"),
        ("", r"fp_scheduled #", "fp_other #", "its Verilog has no schedule"),
    ],
)
def test_a_schedule_of_another_form_is_refused(file, old, new, message, tmp_path):
    design, name, _ = design_of("conv", locked=0)
    project = to_verilog(design, tmp_path, multipliers={name: 9})
    path = tmp_path / "rtl" / f"{name}{file}.v"
    text = re.sub(old, new, path.read_text(), count=1)
    assert text != path.read_text()
    path.write_text(text)
    with pytest.raises(CertificateError, match=message):
        read_weights(project, design[name])


def test_a_memory_that_is_gone_is_named(tmp_path):
    design, name, _ = design_of("dense")
    project = to_verilog(design, tmp_path, multipliers={name: 2})
    (tmp_path / "rtl" / f"{name}_turns.v").unlink()
    with pytest.raises(CertificateError, match=r"_turns\.v is gone; write the Verilog again"):
        read_weights(project, design[name])


def test_the_note_says_what_was_built(tmp_path):
    design, name, _ = design_of("conv", locked=0)
    layer = to_verilog(design, tmp_path, multipliers={name: 30}).layers[-1]
    assert layer.note == (
        "scheduled: 27 multipliers in 3 groups, 20 of 20 kernels kept, 7 cycles for every place, "
        "the busiest group 1.050 of the mean"
    )
    assert layer.kept + layer.dropped == 9 * 20
    # With more groups than kernels, some would have nothing to do.
    layer = to_verilog(design, tmp_path, multipliers={name: 1000}).layers[-1]
    assert layer.note.startswith("scheduled: 180 multipliers in 20 groups")


def test_an_accumulator_that_saturates_is_refused(tmp_path):
    design, name, _ = design_of("conv", accum=FixedType(6, 6, overflow="SAT"))
    message = f"layer {name!r}.*the layout gives it multipliers, but its accumulator rounds or saturates"
    with pytest.raises(RtlError, match=message):
        to_verilog(design, tmp_path, multipliers={name: 9})


def test_layouts_that_cannot_be_met_are_refused(tmp_path):
    design, name, _ = design_of("conv")
    with pytest.raises(RtlError, match=f"layer {name!r} gets 0 multipliers; wanted at least 1"):
        VerilogLayout(multipliers={name: 0})
    with pytest.raises(RtlError, match="multipliers names pool, which is no Dense layer, convolution or recurrent"):
        to_verilog(design, tmp_path, multipliers={"pool": 9})


def test_places_that_do_not_fit_into_one_factor_are_not_paired(tmp_path):
    design, name, _ = design_of("conv", locked=0)
    width = design[design.layers[0].name].types["result"].width
    assert 2 * width + 8 + 1 <= 25
    layer = to_verilog(design, tmp_path, multipliers={name: 9}, paired=[name]).layers[-1]
    assert "20 cycles for every two places" in layer.note
    dense, only, _ = design_of("dense")
    with pytest.raises(RtlError, match=r"the layout pairs its places, but it has 1, and .*: take it out of `paired`"):
        to_verilog(dense, tmp_path, multipliers={only: 9}, paired=[only])
    wide = replace(design.layers[0], types={"result": FixedType(12, 4)})
    with pytest.raises(RtlError, match=r"two values of 12 bits beside a weight of \d take 3\d bits; wanted"):
        to_verilog(replace(design, layers=(wide, *design.layers[1:])), tmp_path, multipliers={name: 9}, paired=[name])
    with pytest.raises(RtlError, match=f"paired names {name}, which has no entry in multipliers; give it one"):
        VerilogLayout(paired=[name])


@pytest.mark.parametrize("kind", KINDS)
def test_the_kernels_of_multipliers_of_luts_are_read_back(kind, tmp_path):
    design, name, masks = design_of(kind)
    project = to_verilog(design, tmp_path, multipliers={name: 20}, in_luts=[name])
    assert project.layers[-1].note.startswith("scheduled: ")
    assert "multipliers of LUTs in" in project.layers[-1].note
    assert (read_weights(project, design[name]) == design[name].weights["weight"]).all()
    assert not check_verilog(project, design, masks).violations


def test_wide_factors_are_no_multipliers_of_luts(tmp_path):
    design, name, _ = design_of("conv")
    wide, kept = design.layers[0], design[name]
    wide = replace(wide, types={"result": FixedType(12, 4)})
    kept = replace(
        kept,
        types={**kept.types, "weight": FixedType(12, 4)},
        weights={**kept.weights, "weight": kept.weights["weight"] * 201},
    )
    asked = {"multipliers": {name: 9}, "in_luts": [name]}
    assert may_be_in_luts(design, design[name])
    # One wide factor is no matter.
    to_verilog(replace(design, layers=(wide, design[name])), tmp_path, **asked)
    both = replace(design, layers=(wide, kept))
    assert not may_be_in_luts(both, kept)
    with pytest.raises(
        RtlError, match=r"12 bits meet weights of 1\d; wanted one of them with at most 8 bits: take it out"
    ):
        to_verilog(both, tmp_path, **asked)
    with pytest.raises(RtlError, match=f"in_luts names {name}, which has no entry in multipliers; give it one"):
        VerilogLayout(in_luts=[name])
    with pytest.raises(RtlError, match=f"{name} is in paired and in in_luts"):
        VerilogLayout(**asked, paired=[name])


def test_the_cycles_of_a_scheduled_layer_are_given_to_the_others():
    design, name, _ = design_of("conv", locked=0)
    for multipliers, paired, steps in ((9, [], 12 * 20), (18, [], 12 * 10), (9, [name], 6 * 20)):
        layout = VerilogLayout(multipliers={name: multipliers}, paired=paired)
        # The first rows of an image complete no window.
        assert steps < plan_verilog(design, layout).beats == cycles_of(design, design[name], layout) < 1.5 * steps


def test_kernels_that_follow_one_another_need_no_address(tmp_path):
    """Of a layer without locked kernels a word has weights and a flag; a gap takes the bits of the widest one."""
    net = Net(np.random.default_rng(0))
    name = net.dense(net.input(8), 6)
    design = net.design(name)
    layer = replace(design[name], types={**design[name].types, "accum": FixedType(40, 20)})
    weight = np.ones((8, 6), np.int64)
    for zeros, gap in (([], 0), ([(2, 1)], 1), ([(2, 1), (3, 1), (4, 1), (7, 3), (0, 4)], 2)):
        for place in zeros:
            weight[place] = 0
        made = replace(layer, weights={**layer.weights, "weight": weight.copy()})
        layers = tuple(made if la.name == name else la for la in design.layers)
        project = to_verilog(replace(design, layers=layers), tmp_path, multipliers={name: 3})
        assert f".GAP({gap})" in (tmp_path / "rtl" / f"{name}.v").read_text()
        assert (read_weights(project, made) == weight).all()


def test_layers_behind_a_scheduled_one_compute_one_value_a_cycle():
    """Nothing gathers a pixel: not a scale for each channel, not a sum with a stream of whole pixels, not a border."""
    net = Net(np.random.default_rng(6))
    x = net.input(4, 5, 3)
    first = net.conv(x, 3, pads=(1, 1, 1, 1))
    scaled = net.batch_norm(first)
    added = net.merge(x, scaled, "add")
    last = net.conv(net.activation(added, "relu"), 4, pads=(1, 1, 1, 1))
    design = net.design(last)
    wide = [replace(la, types={**la.types, "accum": FixedType(40, 20)}) if la.weights else la for la in design.layers]
    layout = VerilogLayout(multipliers={first: 9, last: 9})
    made = plan_verilog(replace(design, layers=tuple(wide)), layout)
    parts = [part for layer in made.layers for part in layer.every if isinstance(part, Instance)]
    assert not [part for part in parts if part.module == "fp_gather"]
    (scale,) = (layer for layer in made.layers if layer.layer == scaled)
    numbered = next(part for part in scale.parts if isinstance(part, Instance) and part.module == "fp_sequence")
    assert numbered["BEATS"] == 3
    borders = [part for part in parts if part.module == "fp_pad"]
    assert [part["COLUMNS"] for part in borders] == [5, 5 * 3]
    assert [part["LEFT"] for part in borders] == [1, 3]
