"""Weights read back from the text of the Verilog."""

from dataclasses import replace

import numpy as np
import pytest

from fpgaprune.errors import CertificateError
from fpgaprune.fixed import OVERFLOW_MODES, ROUNDING_MODES, FixedType
from fpgaprune.masks import MaskSet
from fpgaprune.rtl import emit, to_verilog
from fpgaprune.rtl.read_back import check_verilog, read_weights

from .networks import Net


def same_up_to_powers_of_two(found, wanted):
    """Each output's coefficients are its weights times a power of two."""
    assert found.shape == wanted.shape
    for one, two in zip(found.reshape(-1, found.shape[-1]).T, wanted.reshape(-1, wanted.shape[-1]).T, strict=True):
        shifts = [s for s in range(60) if (two << s == one).all()]
        assert shifts, (one, two)


def weighted(design):
    return next(layer for layer in design.layers if "weight" in layer.weights)


def with_accum(design, kind):
    layers = [
        replace(la, types={**la.types, **({"accum": kind} if "accum" in la.types else {})}) for la in design.layers
    ]
    return replace(design, layers=tuple(layers))


@pytest.mark.parametrize("seed", range(8))
def test_what_is_read_back_is_what_was_written(seed, tmp_path, monkeypatch):
    if seed % 2:
        monkeypatch.setattr(emit, "_PART_CHARACTERS", 4_000)
    net = Net(np.random.default_rng(seed))
    build = [lambda: net.conv(net.input(5, 5, 2), 3), lambda: net.dense(net.flatten(net.input(2, 2, 3)), 4)][seed % 2]
    # Products are rounded one by one in every other case.
    accum = FixedType(30, 15) if seed % 4 < 2 else FixedType(12, 9, rounding=ROUNDING_MODES[seed % 7])
    design = with_accum(net.design(build()), accum)
    project = to_verilog(design, tmp_path)
    layer = weighted(design)
    found, wanted = read_weights(project, layer), layer.weights["weight"]
    if seed % 4 < 2:
        same_up_to_powers_of_two(found, wanted)
    else:
        # What rounds to nothing whatever the input may be gone as well.
        assert not found[wanted == 0].any()


@pytest.mark.parametrize("overflow", OVERFLOW_MODES)
def test_a_depthwise_layer_is_read_channel_by_channel(overflow, tmp_path):
    net = Net(np.random.default_rng(5))
    design = with_accum(net.design(net.depthwise(net.input(5, 5, 3))), FixedType(30, 15, overflow=overflow))
    layer = weighted(design)
    found = read_weights(to_verilog(design, tmp_path), layer)
    assert ((found != 0) == (layer.weights["weight"] != 0)).all()


def locked_design(seed=3):
    net = Net(np.random.default_rng(seed))
    design = with_accum(net.design(net.conv(net.input(5, 5, 2), 3)), FixedType(30, 15))
    layer = weighted(design)
    mask = np.ones(layer.weights["weight"].shape, bool)
    mask[:, :, 0, 1] = mask[:, :, 1, 2] = False
    weight = np.where(mask, layer.weights["weight"] | 1, 0)
    layers = [
        replace(la, weights={**la.weights, "weight": weight}, sources={"weight": "conv/kernel", "bias": "conv/bias"})
        if la.name == layer.name
        else la
        for la in design.layers
    ]
    masks = MaskSet({"conv/kernel": mask, "conv/bias": np.array([True, False, True])})
    return replace(design, layers=tuple(layers)), masks, layer.name


def test_a_certificate_holds_for_the_verilog_of_locked_kernels(tmp_path):
    design, masks, _ = locked_design()
    check = check_verilog(to_verilog(design, tmp_path), design, masks)
    assert not check.violations


def test_a_product_that_crept_in_is_found(tmp_path):
    design, masks, name = locked_design()
    project = to_verilog(design, tmp_path)
    layer = design[name]
    weight = layer.weights["weight"].copy()
    weight[1, 1, 0, 1] = 1
    tampered = replace(
        design,
        layers=tuple(
            replace(la, weights={**la.weights, "weight": weight}) if la.name == name else la for la in design.layers
        ),
    )
    # The folder of another design under the same names, as a stale or tampered one would be.
    to_verilog(tampered, tmp_path)
    check = check_verilog(project, design, masks)
    assert [(weight.path, weight.violations) for weight in check.weights] == [("conv/kernel", 1)]
    assert check.weights[0].first_violation.startswith("[1, 1, 0, 1]")


def test_weights_in_memory_are_no_certificate(tmp_path):
    net = Net(np.random.default_rng(1))
    design = with_accum(net.design(net.dense(net.input(6), 2)), FixedType(30, 15))
    layer = weighted(design)
    design = replace(
        design,
        layers=tuple(
            replace(la, sources={"weight": "d/kernel"}) if la.name == layer.name else la for la in design.layers
        ),
    )
    project = to_verilog(design, tmp_path, fold={layer.name: 3})
    masks = MaskSet({"d/kernel": np.zeros((6, 2), bool)})
    with pytest.raises(
        CertificateError, match=r"weight 'd/kernel' is locked, and layer .* keeps its weights in memory"
    ):
        check_verilog(project, design, masks)
