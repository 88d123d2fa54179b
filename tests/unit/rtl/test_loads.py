"""Weights that can be loaded: what does not depend on them, what a load brings, what it refuses."""

import json
from dataclasses import replace

import numpy as np
import pytest

from fpgaprune.design import VerilogLayout
from fpgaprune.errors import RtlError
from fpgaprune.rtl import (
    Loaded,
    VerilogProject,
    check_verilog,
    plan_verilog,
    program_of,
    read_weights,
    to_verilog,
    weights_stream,
)
from fpgaprune.values import FixedType

from .test_scheduled import KINDS, design_of


def with_weights(design, name, seed):
    """`design` with other weights in the kernels of layer `name` that are kept, and other biases."""
    rng = np.random.default_rng(seed)
    layer = design[name]
    old, kind = layer.weights["weight"], layer.types["weight"]
    kept = np.broadcast_to((old != 0).any(axis=tuple(range(old.ndim - 2))), old.shape)
    weight = np.where(kept, rng.integers(kind.raw_min, kind.raw_max + 1, old.shape) | 1, 0)
    bias = rng.integers(layer.types["bias"].raw_min, layer.types["bias"].raw_max + 1, layer.weights["bias"].shape)
    changed = replace(layer, weights={**layer.weights, "weight": weight, "bias": bias})
    return replace(design, layers=tuple(changed if la.name == name else la for la in design.layers))


def changed(design, name, **fields):
    layers = [replace(la, **fields) if la.name == name else la for la in design.layers]
    return replace(design, layers=tuple(layers))


@pytest.mark.parametrize("multipliers", [1, 20, 60])
@pytest.mark.parametrize("kind", KINDS)
def test_the_weights_alone_differ_in_the_verilog_of_the_same_kernels(kind, multipliers, tmp_path):
    """So a load of them is all that another design needs; what is visited when stays as it is."""
    design, name, _ = design_of(kind)
    layout = VerilogLayout(multipliers={name: multipliers}, loadable=True)
    one = to_verilog(design, tmp_path / "one", layout=layout)
    two = to_verilog(with_weights(design, name, 1), tmp_path / "two", layout=layout)
    assert one.files == two.files
    for file in one.files:
        before, after = ((made.path / file).read_text().splitlines() for made in (one, two))
        differ = [(a, b) for a, b in zip(before, after, strict=True) if a != b]
        starts = {line.split("[")[0].strip() for pair in differ for line in pair}
        wanted = {f"rtl/{name}_kernels.v": {"weights"}, f"rtl/{name}_biases.v": {"words"}}.get(file, set())
        assert starts == wanted, file


@pytest.mark.parametrize("multipliers", [1, 20, 60])
@pytest.mark.parametrize("kind", KINDS)
def test_the_kernels_of_a_loadable_schedule_are_read_back(kind, multipliers, tmp_path):
    design, name, masks = design_of(kind)
    project = to_verilog(design, tmp_path, multipliers={name: multipliers}, loadable=True)
    assert (read_weights(project, design[name]) == design[name].weights["weight"]).all()
    assert not check_verilog(project, design, masks).violations
    # A kept weight that crept into the place of a locked kernel is found, as in a memory that is not loaded.
    tampered = design[name].weights["weight"].copy()
    tampered[tuple(np.argwhere(tampered == 0)[0])] = 1
    weights = {**design[name].weights, "weight": tampered}
    to_verilog(changed(design, name, weights=weights), tmp_path, multipliers={name: multipliers}, loadable=True)
    assert check_verilog(project, design, masks).violations == 1


@pytest.mark.parametrize("kind", KINDS)
def test_a_load_has_the_kept_weights_output_by_output_and_the_biases(kind, tmp_path):
    design, name, masks = design_of(kind)
    project = to_verilog(design, tmp_path, multipliers={name: 30}, loadable=True)
    new = with_weights(design, name, 2)
    weight, bias = (new[name].weights[role] for role in ("weight", "bias"))
    kept = masks[f"{name}/kernel"].reshape(-1, *weight.shape[-2:])[0]
    taps = weight.reshape(-1, *weight.shape[-2:])
    if design[name].is_depthwise:
        wanted = [taps[:, channel].reshape(-1)[::1] for channel in ()]
        flat, free = weight.reshape(-1, weight.shape[-2] * weight.shape[-1]), kept.reshape(-1)
        wanted = [flat[:, channel] for channel in np.flatnonzero(free)]
    else:
        wanted = [taps[:, i, o] for o in range(taps.shape[2]) for i in range(taps.shape[1]) if kept[i, o]]
    stream = weights_stream(new, project)
    assert stream.tolist() == [*np.concatenate(wanted).tolist(), *bias.tolist()]
    assert project.loads.port.beats == len(stream)
    assert project.loads.port.width_bits % 8 == 0
    assert (weights_stream(new, VerilogProject.load(tmp_path)) == stream).all()


def test_a_design_that_differs_in_more_than_a_load_brings_is_refused(tmp_path):
    design, name, _ = design_of("conv")
    project = to_verilog(design, tmp_path, multipliers={name: 9}, loadable=True)
    layer = design[name]
    locked = np.argwhere(~layer.weights["weight"].any(axis=(0, 1)))[0]
    weight = layer.weights["weight"].copy()
    weight[1, 1, locked[0], locked[1]] = 1
    message = f"has 1 kernels that are locked in the Verilog of .*, the first from channel {locked[0]} to {locked[1]}"
    with pytest.raises(RtlError, match=message):
        weights_stream(changed(design, name, weights={**layer.weights, "weight": weight}), project)
    for other in (
        changed(design, name, types={**layer.types, "weight": FixedType(7, 3)}),
        changed(design, name, types={**layer.types, "result": FixedType(7, 3)}),
        changed(design, design.layers[0].name, types={"result": FixedType(5, 3)}),
    ):
        with pytest.raises(RtlError, match=r"layer '\w+' differs from that of the Verilog of .* in more than a load"):
            weights_stream(other, project)
    with pytest.raises(RtlError, match="has other layers than the Verilog of"):
        weights_stream(replace(design, layers=design.layers[:1], outputs=(design.layers[0].name,)), project)
    fixed = to_verilog(design, tmp_path / "fixed", multipliers={name: 9})
    with pytest.raises(RtlError, match="takes no loads; write it with a layout that is loadable"):
        weights_stream(design, fixed)


def test_the_weights_of_a_layer_without_multipliers_are_not_loaded(tmp_path):
    design, name, _ = design_of("conv")
    two = replace(design[name], name="again", inputs=(design.layers[0].name,))
    both = replace(design, layers=(*design.layers, two), outputs=(name, "again"))
    project = to_verilog(both, tmp_path, multipliers={name: 9}, loadable=True)
    assert project.loads.layers == (name,)
    assert len(weights_stream(with_weights(both, name, 1), project)) == project.loads.port.beats
    with pytest.raises(RtlError, match="layer 'again' differs from that of the Verilog"):
        weights_stream(with_weights(both, "again", 1), project)


def test_a_kernel_of_zeros_keeps_its_place(tmp_path):
    design, name, _ = design_of("conv")
    project = to_verilog(design, tmp_path, multipliers={name: 9}, loadable=True)
    zeros = changed(design, name, weights={**design[name].weights, "weight": 0 * design[name].weights["weight"]})
    stream = weights_stream(zeros, project)
    assert len(stream) == project.loads.port.beats
    assert not stream[: -len(design[name].weights["bias"])].any()


def test_a_layout_without_multipliers_cannot_be_loaded(tmp_path):
    design, _, _ = design_of("conv")
    with pytest.raises(RtlError, match="loadable asks for weights in memory, but no layer has multipliers"):
        to_verilog(design, tmp_path, loadable=True)


def test_an_accumulator_that_might_saturate_is_refused(tmp_path):
    """These weights fit it, others might not."""
    design, name, _ = design_of("conv", accum=FixedType(40, 30, overflow="SAT"))
    to_verilog(design, tmp_path, multipliers={name: 9})
    with pytest.raises(RtlError, match="its accumulator rounds or saturates"):
        to_verilog(design, tmp_path, multipliers={name: 9}, loadable=True)


def test_what_is_not_loadable_has_no_port_for_it(tmp_path):
    design, name, _ = design_of("conv")
    project = to_verilog(design, tmp_path, multipliers={name: 9})
    assert project.loads is None
    assert "loads" not in json.loads((tmp_path / "project.json").read_text())
    assert not [file for file in project.files if "load" in file or "gate" in file]


@pytest.mark.parametrize("kind", KINDS)
def test_no_weights_exceed_the_bounds_of_the_sums(kind):
    design, name, _ = design_of(kind, seed=3)
    layer, program = design[name], program_of(design[name], 20)
    loaded = Loaded.of(layer, 8)
    low, high = loaded.bounds(program, -5, 9)
    assert (low, high) != (0, 0)
    kind = layer.types["weight"]
    for seed in range(4):
        rng = np.random.default_rng(seed)
        weights = rng.choice([kind.raw_min, kind.raw_max], program.weights.shape)
        for values in (np.where(weights < 0, -5, 9), np.where(weights < 0, 9, -5)):
            sums = np.bincount(program.places[:, 0], (weights * values).sum(axis=1))
            assert low <= sums.min()
            assert sums.max() <= high
    # One output with the most kernels reaches both ends.
    most = np.bincount(program.places[:, 0]).max() * program.taps
    assert (low, high) == (
        most * min(9 * kind.raw_min, -5 * kind.raw_max),
        most * max(-5 * kind.raw_min, 9 * kind.raw_max),
    )


def test_the_price_of_a_loadable_layout_has_its_modules():
    design, name, _ = design_of("conv")
    made = plan_verilog(design, VerilogLayout(multipliers={name: 9}, loadable=True))
    modules = [part.module for layer in made.layers for part in layer.every if hasattr(part, "module")]
    assert {"fp_load", "fp_biased", "fp_gate"} <= set(modules)
