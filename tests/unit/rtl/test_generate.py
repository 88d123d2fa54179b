"""What `to_verilog` writes, and what it refuses."""

import re
from dataclasses import replace

import numpy as np
import pytest

from fpgaprune.design import LayerSpec, Unknown, VerilogLayout
from fpgaprune.errors import DesignError, RtlError, UnsupportedLayerError
from fpgaprune.rtl import parts, plan_verilog, to_verilog
from fpgaprune.values import FixedType

from .networks import Net, random_design


def written(project):
    return {name: (project.path / name).read_bytes() for name in project.files}


def small(seed=0, io_type="io_stream"):
    net = Net(np.random.default_rng(seed), io_type)
    x = net.conv(net.input(5, 5, 2), 3)
    return net.design(net.dense(net.flatten(net.activation(x, "relu")), 4))


def changed(design, name, **weights):
    layers = [replace(la, weights={**la.weights, **weights}) if la.name == name else la for la in design.layers]
    return replace(design, layers=tuple(layers))


def named(design, kind):
    return next(layer for layer in design.layers if layer.kind == kind)


def test_two_generations_are_equal_byte_by_byte(tmp_path):
    design = random_design(5, 3)
    one, two = to_verilog(design, tmp_path / "a"), to_verilog(design, tmp_path / "b")
    assert written(one) == written(two)
    assert (one.path / "project.json").read_bytes() == (two.path / "project.json").read_bytes()


def test_each_layer_says_what_it_is(tmp_path):
    design = small()
    project = to_verilog(design, tmp_path)
    conv = named(design, "Conv2D")
    kept = int(np.count_nonzero(conv.weights["weight"]))
    text = (tmp_path / "rtl" / f"{conv.name}.v").read_text()
    assert text.startswith(
        f"// Layer {conv.name} (Conv2D) of design net.\n// Shapes: 5x5x2 -> 3x3x3.\n// Types: accum "
    )
    assert f"// Multiplications by constants: {kept} kept, {conv.weights['weight'].size - kept} dropped.\n" in text
    layer = next(row for row in project.layers if row.layer == conv.name)
    assert (layer.kept, layer.kept + layer.dropped) == (kept, conv.weights["weight"].size)


def test_a_smaller_design_leaves_nothing_of_a_larger_one(tmp_path):
    to_verilog(random_design(5, 3), tmp_path)
    project = to_verilog(small(), tmp_path)
    assert {f"rtl/{path.name}" for path in (tmp_path / "rtl").iterdir()} == set(project.files)


def test_files_stay_below_their_size_however_large_the_layer(tmp_path, monkeypatch):
    monkeypatch.setattr(parts, "PART_CHARACTERS", 3_000)
    net = Net(np.random.default_rng(0))
    design = net.design(net.conv(net.input(6, 6, 3), 6))
    project = to_verilog(design, tmp_path)
    files = [name for name in project.files if "_part" in name]
    assert len(files) > 2
    assert all((tmp_path / name).stat().st_size < 3 * 3_000 for name in files)


def test_changing_one_kept_weight_changes_the_verilog_of_its_layer_alone(tmp_path):
    design = small()
    conv = named(design, "Conv2D")
    places = np.argwhere(conv.weights["weight"])
    rng = np.random.default_rng(0)
    before = written(to_verilog(design, tmp_path / "before"))
    for number, place in enumerate(rng.permutation(places)[:5]):
        weight = conv.weights["weight"].copy()
        low, high = design[conv.name].types["weight"].raw_min, design[conv.name].types["weight"].raw_max
        weight[tuple(place)] += 1 if weight[tuple(place)] + 1 not in (0, high + 1) else -1
        assert low <= weight.min()
        after = written(to_verilog(changed(design, conv.name, weight=weight), tmp_path / str(number)))
        differing = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
        assert differing
        assert all(name.startswith(f"rtl/{conv.name}") for name in differing)


@pytest.mark.parametrize("interval", [0, 2000])
def test_a_locked_kernel_is_absent_from_the_verilog(interval, tmp_path):
    """A layer with locked kernels gives the Verilog of the layer described without them."""
    net = Net(np.random.default_rng(4))
    design = net.design(net.conv(net.input(5, 5, 4), 3))
    conv = named(design, "Conv2D")
    conv = replace(conv, types={**conv.types, "accum": FixedType(40, 20)})
    design = replace(design, layers=tuple(conv if layer.name == conv.name else layer for layer in design.layers))
    weight = conv.weights["weight"].copy()
    weight[:, :, [0, 2], :] = 0
    locked = to_verilog(changed(design, conv.name, weight=weight), tmp_path / "locked", interval=interval)
    sums = (tmp_path / "locked" / "rtl" / f"{conv.name}_sums.v").read_text()
    # No wire reads the bits of a channel whose every kernel is locked.
    width = design[design.layers[0].name].types["result"].width
    read = [int(high) for high in re.findall(r"in_data\[(\d+):\d+\]", sums)]
    channels = {high // width % 4 for high in read}
    assert channels == {1, 3}
    # The layer without these channels has the same adders: only the places on the input bus differ.
    narrow_net = Net(np.random.default_rng(4))
    narrow = narrow_net.design(narrow_net.conv(narrow_net.input(5, 5, 2), 3))
    narrow = replace(
        narrow,
        layers=tuple(
            replace(layer, types=other.types, weights={**conv.weights, "weight": weight[:, :, [1, 3]]})
            if layer.kind == "Conv2D"
            else replace(layer, types=other.types)
            for layer, other in zip(narrow.layers, design.layers, strict=True)
        ),
    )
    without = to_verilog(narrow, tmp_path / "narrow", interval=interval)
    assert {"bit by bit" in row.note for row in (locked.layers[-1], without.layers[-1])} == {interval > 0}
    assert _adders(locked, conv.name) == _adders(without, conv.name)
    assert _adders(locked, conv.name) != _adders(to_verilog(design, tmp_path / "free", interval=interval), conv.name)


def test_sums_are_made_bit_by_bit_from_the_first_interval_on_that_has_time_for_all(tmp_path):
    net = Net(np.random.default_rng(4))
    design = net.design(net.conv(net.input(5, 5, 4), 3))
    wide = [replace(la, types={**la.types, "accum": FixedType(40, 20)}) if la.weights else la for la in design.layers]
    design = replace(design, layers=tuple(wide))

    def note(interval, **layout):
        return to_verilog(design, tmp_path / str(interval), interval=interval, **layout).layers[-1].note

    period = int(re.search(r"a sum of each every (\d+) cycles at most", note(2000))[1])
    # Nine windows that far apart: the pixels that complete none come while a window is computed.
    enough = 9 * period
    assert "bit by bit" in note(enough)
    assert "bit by bit" not in note(enough - 1)
    assert "bit by bit" not in note(2000, serial=False)


def test_sums_that_would_take_more_luts_bit_by_bit_are_made_at_once(tmp_path):
    """Nine taps a channel: loading them takes as much as their additions save."""
    net = Net(np.random.default_rng(5))
    design = net.design(net.depthwise(net.input(5, 5, 3)))
    wide = [replace(la, types={**la.types, "accum": FixedType(30, 15)}) if la.weights else la for la in design.layers]
    project = to_verilog(replace(design, layers=tuple(wide)), tmp_path, interval=2000)
    assert "bit by bit" not in project.layers[-1].note


def _adders(project, name):
    """The lines of a datapath with its values numbered in the order of their appearance."""
    text = (project.path / "rtl" / f"{name}_sums.v").read_text()
    body = text[text.index(");") :]
    body = re.sub(r"in_data\[\d+:\d+\]", "in_data[]", body)
    numbers = {}
    return re.sub(r"\b(v|in|add)(\d+)(?=\b|_)", lambda m: f"{m[1]}{numbers.setdefault(m[2], len(numbers))}", body)


def test_zeros_that_are_not_mentioned_change_nothing(tmp_path):
    """A filter whose kernels are locked one by one, or all together, gives the same Verilog."""
    design = small(1)
    conv = named(design, "Conv2D")
    one, two = conv.weights["weight"].copy(), conv.weights["weight"].copy()
    one[..., 1] = 0
    for channel in range(two.shape[2]):
        two[:, :, channel, 1] = -0
    first = to_verilog(changed(design, conv.name, weight=one), tmp_path / "a")
    assert written(first) == written(to_verilog(changed(design, conv.name, weight=two), tmp_path / "b"))


@pytest.mark.parametrize(
    ("part", "instead"),
    [
        ("xc7z020clg400-1", r"take the hls4ml project \(fit: --route hls\)"),
        ("gw2a-18", "replace it; no tool for gw2a-18 builds an hls4ml project of it either"),
    ],
)
def test_a_layer_without_verilog_is_named_and_nothing_is_written(part, instead, tmp_path):
    design = small()
    last = design.layers[-1]
    odd = LayerSpec("odd", (last.name,), last.output_shape, last.types, operation=Unknown("Wavelet"))
    design = replace(design, layers=(*design.layers, odd), outputs=("odd",), part=part)
    named = r"layer 'odd' is a Wavelet, which has no Verilog; those that have: Concatenate, "
    with pytest.raises(UnsupportedLayerError, match=f"{named}.*: {instead}"):
        to_verilog(design, tmp_path / "out")
    assert not (tmp_path / "out" / "rtl").exists()
    with pytest.raises(UnsupportedLayerError, match=named):
        plan_verilog(design, VerilogLayout())


def test_types_beyond_64_bits_are_refused():
    with pytest.raises(DesignError, match="fixed-point width is 65 bits; wanted 1 to 64"):
        FixedType(65, 10)


def test_what_the_emulator_cannot_compute_exactly_is_refused(tmp_path):
    design = small()
    wide = FixedType(64, 10)
    layers = tuple(
        replace(la, types={**la.types, "result": wide}) if la.kind in ("Input", "Conv2D") else la
        for la in design.layers
    )
    with pytest.raises(DesignError, match=r"an intermediate value needs \d+ bits"):
        to_verilog(replace(design, layers=layers), tmp_path)


def test_a_layer_that_nothing_reads_is_named(tmp_path):
    design = small()
    extra = replace(design.layers[0], name="idle")
    with pytest.raises(RtlError, match="layer 'idle' is read by nothing and is no output"):
        to_verilog(replace(design, layers=(*design.layers, extra)), tmp_path)


def test_a_layout_is_what_its_fields_one_by_one_are(tmp_path):
    design = small()
    fields = {"interval": 4000, "levels": 2, "fold": {named(design, "Dense").name: 3}}
    one = to_verilog(design, tmp_path / "one", layout=VerilogLayout(**fields))
    other = to_verilog(design, tmp_path / "other", **fields)
    plain = to_verilog(design, tmp_path / "plain")
    texts = [{name: (made.path / name).read_text() for name in made.files} for made in (one, other, plain)]
    assert texts[0] == texts[1] != texts[2]


def test_layouts_that_cannot_be_met_are_refused(tmp_path):
    design = small()
    dense = named(design, "Dense").name
    with pytest.raises(RtlError, match="adders are 'magic'; wanted one of shared, plain, da4ml"):
        VerilogLayout(adders="magic")
    with pytest.raises(RtlError, match="adder levels between two registers are 0"):
        VerilogLayout(levels=0)
    with pytest.raises(RtlError, match=r"the interval is -1 cycles; wanted 0 \(as a sample's pixels take\) or more"):
        VerilogLayout(interval=-1)
    with pytest.raises(RtlError, match="fold names conv, which is no Dense layer, Normalization or BatchN"):
        to_verilog(design, tmp_path, fold={"conv": 2})
    with pytest.raises(RtlError, match=f"layer '{dense}'.*: the layout folds it 1000 times; fold it 1 to 27 times"):
        to_verilog(design, tmp_path, fold={dense: 1000})
    assert not (tmp_path / "rtl").exists()


def behind_an_image(beats, outputs, zeros=0, saturates=False):
    """A Dense layer of six inputs for each of `beats` pixels; its first `zeros` weights are zero, the others one."""
    net = Net(np.random.default_rng(0))
    shape = (beats, 1, 6) if beats > 1 else (6,)
    source = net.input(*shape)
    name = net.dense(net.flatten(source) if beats > 1 else source, outputs)
    design = net.design(name)
    accum = FixedType(8, 8, overflow="SAT") if saturates else FixedType(40, 20)
    weight = np.ones(6 * beats * outputs, np.int64)
    weight[:zeros] = 0
    layers = [
        replace(la, weights={**la.weights, "weight": weight.reshape(-1, outputs)}, types={**la.types, "accum": accum})
        if la.name == name
        else la
        for la in design.layers
    ]
    return replace(design, layers=tuple(layers))


@pytest.mark.parametrize(
    ("design", "multipliers"),
    [
        (behind_an_image(16, 3), 18),  # 96 inputs in 16 clocks, six at a time
        (behind_an_image(16, 3, zeros=288 - 8 * 18), 18),  # eight products for each multiplier
        (behind_an_image(16, 3, zeros=288 - 8 * 18 + 1), None),
        (behind_an_image(1, 3), None),  # no image to wait for
        (behind_an_image(16, 3, saturates=True), None),  # the order of additions counts
    ],
)
def test_a_layer_is_folded_where_that_costs_no_time_and_is_smaller(design, multipliers, tmp_path):
    layer = to_verilog(design, tmp_path).layers[-1]
    assert layer.note.startswith(f"folded: {multipliers} multipliers in 16 cycles") == (multipliers is not None)


@pytest.mark.parametrize(("zeros", "folded"), [(0, True), (22, True), (23, False), (40, False)])
def test_a_layer_with_too_many_products_is_folded_unless_each_would_keep_its_multiplier(zeros, folded, tmp_path):
    """60 weights in two cycles are 30 multipliers; the first ones are zero: 38 are 1.27 for each, 37 are 1.23."""
    layer = to_verilog(behind_an_image(1, 10, zeros=zeros), tmp_path, parallel_products=15).layers[-1]
    assert layer.note.startswith("folded: 30 multipliers in 2 cycles") == folded


def test_weights_that_are_one_in_every_beat_need_no_memory(tmp_path):
    # All weights are one, so nothing is looked up; the multipliers are wires.
    design = behind_an_image(16, 3)
    assert not any("_rom" in name for name in to_verilog(design, tmp_path).layers[-1].files)


@pytest.mark.parametrize("readers", [1, 2])
def test_an_activation_is_computed_with_the_products_it_alone_reads(readers, tmp_path):
    net = Net(np.random.default_rng(3))
    conv = net.conv(net.input(5, 5, 2), 3)
    relu = net.activation(conv, "relu")
    design = net.design(net.merge(conv, relu, "add") if readers == 2 else relu)
    project = to_verilog(design, tmp_path)
    layers = {layer.layer: layer for layer in project.layers}
    assert (relu in layers) == (readers == 2)
    assert (f"{relu} (Activation) is computed here too" in layers[conv].note) == (readers == 1)
    assert layers[conv].joined == ({conv: (relu,)} if readers == 1 else {})
    assert (tmp_path / "rtl" / f"{relu}_relu.v").is_file() == (readers == 2)


def test_a_folded_layer_says_that_zeros_save_nothing(tmp_path):
    design = small()
    dense = named(design, "Dense")
    project = to_verilog(design, tmp_path, fold={dense.name: 9})
    layer = next(row for row in project.layers if row.layer == dense.name)
    folds = all(
        "folded: 12 multipliers in 9 cycles, weights in memory, so that zeros save nothing" in text
        for text in (layer.note, (tmp_path / "rtl" / f"{dense.name}.v").read_text().replace("\n//  ", ""))
    )
    assert folds or "not folded" in layer.note
