"""What is short, what would help, and in which order."""

from __future__ import annotations

import itertools
import tomllib
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fpgaprune as fp
from fpgaprune.advice import global_average, rank, shortages, sparser
from fpgaprune.design import Convolution, LayerSpec, Pooling, Window, legal_reuse_factors, product_size
from fpgaprune.flow.engine import parse_config
from fpgaprune.layout import (
    FLOW,
    MODEL,
    DesignLayout,
    Suggestion,
    balanced_layouts,
    flow_text,
    one_layer_layouts,
    products,
    streamed,
    uniform_layouts,
)
from fpgaprune.measure import ESTIMATED, Figure, Resources
from fpgaprune.target import find_part, list_parts
from fpgaprune.values import FixedType
from tests.unit.estimate.designs import T16, U8, cnn, mlp

PART = find_part("xc7z020")


def exact(design):
    """The design with sums that hold every bit."""
    layers = [replace(x, types={**x.types, "accum": FixedType(30, 13)}) if x.strategy else x for x in design.layers]
    return replace(design, layers=tuple(layers))


def on(design, **capacities):
    """The design's target, of a part with other capacities."""
    return fp.Target(replace(PART, **capacities), PART.name, io_type=design.io_type, backend=design.backend)


def short(design, share=0.5):
    """A target that has too little of everything that the design takes."""
    used = fp.estimate(design, on(design)).total["synth"]
    return on(design, **{name: round(getattr(used, name).value * share) for name in ("lut", "ff", "dsp")})


def test_a_design_whose_upper_end_fits_needs_no_advice():
    advice = fp.advise(cnn())
    assert (advice.now.fits, advice.now.fits_upper, advice.needed) == (True, True, False)
    assert (advice.shortages, advice.suggestions) == ((), ())


def test_a_design_that_fits_by_the_middle_only_is_advised():
    design = cnn()
    used = fp.estimate(design, on(design)).total["synth"].lut
    advice = fp.advise(design, on(design, lut=(used.value + used.high) // 2))
    assert (advice.now.fits, advice.now.fits_upper) == (True, False)
    assert [(s.resource, s.fits) for s in advice.shortages] == [("lut", True)]
    assert advice.suggestions[0].fits_upper


def test_the_range_of_an_estimate_is_judged_by_its_upper_end():
    design = cnn()
    used = fp.estimate(design, on(design)).total["synth"].lut
    for lut, fits, upper in ((used.high, True, True), (used.high - 1, True, False), (used.value - 1, False, False)):
        found = fp.estimate(design, on(design, lut=lut))
        assert (found.fits, found.fits_upper) == (fits, upper)
        assert found.to_json()["fits_upper"] is upper
    nothing = dict.fromkeys(("lut", "ff", "dsp", "bram18"))
    assert fp.estimate(design, on(design, **nothing)).fits_upper is None
    assert not fp.advise(design, on(design, **nothing)).needed


def test_what_is_short_is_said_with_the_layers_that_take_it():
    design = cnn()
    target = short(design)
    found = fp.estimate(design, target)
    advice = fp.advise(design, target)
    assert {s.resource for s in advice.shortages} == {"lut", "ff", "dsp"}
    for shortage in advice.shortages:
        total = found.total["synth"]
        assert shortage.used == getattr(total, shortage.resource)
        assert shortage.capacity == getattr(target.part, shortage.resource)
        counts = {layer.name: getattr(layer.synth, shortage.resource).value for layer in found.layers}
        for share in (x for x in shortage.layers if x.layer != shortages.BETWEEN):
            assert share.used == counts[share.layer]
            assert share.share == pytest.approx(share.used / shortage.used.value)
        assert [x.used for x in shortage.layers] == sorted((x.used for x in shortage.layers), reverse=True)
        assert 0.5 < sum(x.share for x in shortage.layers) <= 1.001


def test_what_no_layer_takes_stands_between_the_layers():
    design = mlp()
    found = fp.estimate(design, short(design))
    (shortage,) = (s for s in fp.advise(design, short(design)).shortages if s.resource == "ff")
    rest = found.total["synth"].ff.value - sum(layer.synth.ff.value for layer in found.layers)
    assert [x.used for x in shortage.layers if x.layer == shortages.BETWEEN] == [rest]


def test_every_suggestion_is_a_piece_of_a_flow_file_or_says_where_it_belongs():
    design = exact(cnn(zeros=0.1))
    for target in (short(design), short(design, 0.05)):
        advice = fp.advise(design, target)
        assert {"sparsity", "weight_bits"} <= {s.knob for s in advice.suggestions}
        for suggestion in advice.suggestions:
            if suggestion.place == FLOW:
                parse_config(tomllib.loads(suggestion.change), "change.toml")
            else:
                assert suggestion.place == MODEL


def test_suggestions_stand_in_their_order_and_each_helps():
    design = cnn(zeros=0.1)
    advice = fp.advise(design, short(design))
    assert list(advice.suggestions) == sorted(advice.suggestions, key=partial(rank, own=PART, now=advice.now))
    assert all(s.after.share < advice.now.share for s in advice.suggestions)
    assert all("measure the accuracy again" in s.cost for s in advice.suggestions if not s.keeps_function)
    assert len({s.change for s in advice.suggestions}) == len(advice.suggestions)


def test_a_suggestion_is_what_the_estimator_says_of_the_changed_design():
    design = cnn(zeros=0.1)
    target = short(design)
    named = {s.change: s for s in fp.advise(design, target).suggestions}
    checked = 0
    for edit in itertools.chain(uniform_layouts(design, "resource"), balanced_layouts(design, "resource")):
        suggestion = named.get(flow_text(edit.settings))
        if suggestion is not None:
            assert suggestion.after == DesignLayout.of_project(fp.estimate(edit.design, target))
            checked += 1
    assert checked


def test_several_knobs_are_turned_where_one_is_not_enough():
    design = cnn(zeros=0.0)
    smallest = min(
        fp.estimate(edit.design, on(design)).total["synth"].lut.high for edit in uniform_layouts(design, "resource")
    )
    advice = fp.advise(design, on(design, lut=round(0.65 * smallest)))
    first = advice.suggestions[0]
    assert first.fits_upper
    assert len(first.knob.split(" + ")) > 1
    assert not first.keeps_function


def test_where_nothing_helps_that_is_said():
    design = cnn()
    advice = fp.advise(design, on(design, lut=10, ff=10))
    own = [s for s in advice.suggestions if s.after.part == advice.now.part]
    assert not any(s.fits for s in own)
    parts = [s.after.part for s in advice.suggestions if s.fits]
    assert parts  # only another part helps, and is named


def test_the_smallest_part_of_the_family_that_holds_the_design_is_named():
    design = cnn(zeros=0.0)
    target = short(design)
    changed = next(s for s in fp.advise(design, target).suggestions if s.knob == "part")
    assert tomllib.loads(changed.change) == {"target": {"part": changed.after.part}}
    assert changed.fits_upper
    for part in list_parts():
        if part.family == PART.family and part.lut < changed.after.capacity["lut"]:
            assert not fp.estimate(design, replace(target, part=part, order_number=part.name)).fits_upper


@given(st.integers(1, 9), st.integers(1, 24), st.integers(1, 24), st.sampled_from(("resource", "resource_unrolled")))
def test_only_legal_reuse_factors_are_suggested(window, inputs, outputs, strategy):
    design = cnn()
    raw = np.ones((window, inputs, outputs), np.int64)
    first = replace(design["conv"], weights={**design["conv"].weights, "weight": raw})
    design = replace(design, layers=tuple(first if x.name == "conv" else x for x in design.layers))
    ways = (uniform_layouts(design, strategy), balanced_layouts(design, strategy))
    for edit in (*itertools.chain(*ways), *one_layer_layouts(design, "conv", strategy)):
        for layer in products(edit.design):
            legal = legal_reuse_factors(*product_size(layer.weights["weight"].shape, False), layer.strategy)
            assert layer.strategy == "latency" or layer.reuse_factor in legal


def test_no_layer_is_slower_than_was_asked_for():
    design = cnn()
    for reuse, edit in zip((1, 2, 4, 8, 16, 32), uniform_layouts(design, "resource"), strict=False):
        assert all(layer.reuse_factor <= reuse for layer in products(edit.design))


def test_layouts_compute_the_same_bits_unless_the_order_of_additions_counts():
    plain = mlp()
    plain = replace(plain, layers=plain.layers[:-1], outputs=("fc2",))
    saturating = replace(T16, width=8, overflow="SAT")
    narrow = [replace(x, types={**x.types, "accum": saturating}) if x.strategy else x for x in plain.layers]
    x = np.random.default_rng(0).uniform(-30, 30, (50, 16))

    def layouts_that_differ(design):
        bits = [np.asarray(fp.emulate(edit.design, x)) for edit in uniform_layouts(design, "resource")]
        return sum(not np.array_equal(found, np.asarray(fp.emulate(design, x))) for found in bits)

    assert layouts_that_differ(exact(plain)) == 0
    assert layouts_that_differ(replace(plain, layers=tuple(narrow))) > 0


def test_balanced_layers_take_about_as_many_cycles():
    design = cnn()
    for edit in balanced_layouts(design, "resource"):
        conv, dense = edit.design["conv"], edit.design["dense"]
        # The padded image has 100 pixels, the vector arrives at once: the Dense layer may take its time.
        assert dense.reuse_factor >= min(conv.reuse_factor, 320)
    assert (conv.reuse_factor, dense.reuse_factor) == (72, 320)


def test_balanced_layouts_leave_out_no_factor_that_lies_between_powers_of_two():
    design = cnn()
    conv = replace(design["conv"], weights={**design["conv"].weights, "weight": np.ones((3, 3, 5, 4), np.int64)})
    design = replace(design, layers=tuple(conv if x.name == "conv" else x for x in design.layers))
    found = {edit.design["conv"].reuse_factor for edit in balanced_layouts(design, "resource")}
    assert found >= {3, 5, 9, 15, 45}


def test_depthwise_layers_and_convolutions_in_parallel_keep_to_what_has_templates():
    parallel = cnn(io_type="io_parallel")
    assert not list(uniform_layouts(parallel, "resource_unrolled"))
    depthwise = replace(
        parallel["conv"],
        operation=Convolution(Window((3, 3)), depthwise=True),
        weights={"weight": np.ones((3, 3, 2, 1), np.int64)},
        output_shape=(8, 8, 2),
    )
    layers = tuple(depthwise if x.name == "conv" else x for x in parallel.layers)
    assert not list(uniform_layouts(replace(parallel, layers=layers), "resource"))
    stream = replace(parallel, layers=layers, io_type="io_stream")
    for edit in uniform_layouts(stream, "resource_unrolled"):
        assert (edit.design["conv"].strategy, edit.design["conv"].reuse_factor) == ("latency", 1)


def test_sparsity_counts_the_kernels_of_the_network_before_pruning():
    trained, design = cnn(zeros=0.0), cnn(zeros=0.0)
    kept = design["dense"].weights["weight"].copy()
    kept[40:] = 0
    design = replace(
        design,
        layers=tuple(
            replace(x, weights={**x.weights, "weight": kept}) if x.name == "dense" else x for x in design.layers
        ),
    )
    cut = {e.settings["select"]["sparsity"]["*/kernel"]: e.design for e in sparser.sparser(design, trained)}
    for sparsity, changed in cut.items():
        raw = changed["dense"].weights["weight"]
        assert np.count_nonzero(raw) == min(round((1 - sparsity) * 320), 200)
        # What is left is what was largest, with its own bits.
        assert np.array_equal(raw[raw != 0], kept[raw != 0])
        assert np.abs(raw[raw != 0]).min() >= np.abs(kept[raw == 0]).max()


def test_narrower_weights_keep_their_values_as_far_as_bits_allow():
    design = cnn(zeros=0.1)
    advice = fp.advise(design, short(design))
    change = next(s for s in advice.suggestions if s.knob == "weight_bits")
    assert tomllib.loads(change.change)["hls"]["precision"] == "widths"
    assert tomllib.loads(change.change)["hls"]["weight_bits"] in (4, 6)


def test_a_stream_pads_and_copies_as_hls4ml_does():
    design = cnn(io_type="io_parallel")
    whole = design["conv"].operation
    padded = replace(whole, window=replace(whole.window, pad=(1, 1, 1, 1)))
    conv = replace(design["conv"], inputs=("in",), operation=padded)
    layers = [conv if x.name == "conv" else x for x in design.layers if x.name != "pad"]
    found = streamed(replace(design, layers=tuple(layers)))
    assert fp.estimate(found).total == fp.estimate(cnn()).total
    stream = cnn()
    assert streamed(stream) is stream


def test_an_average_over_the_whole_map_is_named():
    average = Pooling(Window((4, 4), (4, 4)), largest=False)
    design = cnn()
    pool = LayerSpec("mean", ("pool",), (1, 1, 4), {"result": U8, "accum": T16}, operation=average)
    flat = replace(design["flat"], inputs=("mean",), output_shape=(4,))
    layers = [*design.layers[:6], pool, flat]
    whole = replace(design, layers=tuple(layers), outputs=("flat",))
    edit, text = global_average(whole)
    assert edit.design["mean"].kind == "GlobalPooling"
    assert edit.design["mean"].operation == Pooling(None, largest=False)
    assert text.startswith("averages = {'mean': keras.layers.GlobalAveragePooling2D(keepdims=True, name='mean')}")
    assert global_average(design) is None
    suggestion = next(s for s in fp.advise(whole, short(whole, 0.2)).suggestions if s.knob == "global pooling")
    assert (suggestion.place, suggestion.change, suggestion.keeps_function) == (MODEL, text, True)


def test_vectors_in_a_stream_may_go_in_parallel():
    design = replace(mlp(zeros=0.0), io_type="io_stream")
    advice = fp.advise(design, short(design))
    assert any(
        tomllib.loads(s.change).get("target", {}).get("io_type") == "io_parallel"
        for s in advice.suggestions
        if s.place == FLOW
    )


def suggestion(fits_upper, fits, *, keeps=True, latency=10, part=PART, place=FLOW, lut=100, stage="synth"):
    used = Resources(lut=Figure(lut, lut, lut if fits_upper == fits else 10**6))
    after = DesignLayout(part.name, {name: getattr(part, name) for name in ESTIMATED}, used, latency, latency, stage)
    assert (after.fits_upper, after.fits) == (fits_upper, fits)
    return Suggestion("knob", "", place, "", keeps, after)


def test_the_order():
    large, other = find_part("xc7z045"), find_part("xc7s6")
    wanted = [
        suggestion(True, True, latency=300, stage="synth(open)"),
        suggestion(True, True),
        suggestion(True, True, latency=11),
        suggestion(True, True, place=MODEL),
        suggestion(True, True, keeps=False, latency=1),
        # So slow is not what was wanted.
        suggestion(True, True, latency=201),
        suggestion(True, True, part=large, latency=1),
        suggestion(True, True, part=other, latency=1),
        suggestion(False, True, stage="synth(open)"),
        suggestion(False, True),
        suggestion(False, True, keeps=False, latency=1),
        suggestion(False, False, keeps=False, lut=99_000),
        suggestion(False, False, lut=100_000),
    ]
    mixed = [wanted[n] for n in np.random.default_rng(0).permutation(len(wanted))]
    assert sorted(mixed, key=partial(rank, own=PART, now=suggestion(False, False, lut=10**5).after)) == wanted
