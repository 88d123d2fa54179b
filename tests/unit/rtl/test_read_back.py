"""Weights read back from the text of the Verilog."""

import re
from dataclasses import replace

import numpy as np
import pytest

from fpgaprune.errors import CertificateError
from fpgaprune.rtl import Memory, check_verilog, parts, products, read_weights, small_products, to_verilog
from fpgaprune.values import OVERFLOW_MODES, ROUNDING_MODES, FixedType, MaskSet

from .networks import Net, random_design


def same_up_to_powers_of_two(found, wanted):
    """Each output's coefficients are its weights times a power of two."""
    assert found.shape == wanted.shape
    for one, two in zip(found.reshape(-1, found.shape[-1]).T, wanted.reshape(-1, wanted.shape[-1]).T, strict=True):
        shifts = [s for s in range(60) if (two << s == one).all()]
        assert shifts, (one, two)


def same_up_to_a_factor(found, wanted):
    """Each output's coefficients are its weights times a number of its own: a table behind its sum knows no other."""
    assert ((found != 0) == (wanted != 0)).all()
    for one, two in zip(found.T, wanted.T, strict=True):
        assert (np.outer(one, two) == np.outer(two, one)).all()


def weighted(design):
    return next(layer for layer in design.layers if "weight" in layer.weights)


def with_accum(design, kind):
    layers = [
        replace(la, types={**la.types, **({"accum": kind} if "accum" in la.types else {})}) for la in design.layers
    ]
    return replace(design, layers=tuple(layers))


# Clocks in which every sum of these layers can be computed bit by bit.
LONG = 2000


@pytest.mark.parametrize("interval", [0, LONG])
@pytest.mark.parametrize("seed", range(8))
def test_what_is_read_back_is_what_was_written(seed, interval, tmp_path, monkeypatch):
    if seed % 2:
        monkeypatch.setattr(parts, "PART_CHARACTERS", 4_000)
    net = Net(np.random.default_rng(seed))
    build = [lambda: net.conv(net.input(5, 5, 2), 3), lambda: net.dense(net.flatten(net.input(2, 2, 3)), 4)][seed % 2]
    # Products are rounded one by one in every other case.
    accum = FixedType(30, 15) if seed % 4 < 2 else FixedType(12, 9, rounding=ROUNDING_MODES[seed % 7])
    design = with_accum(net.design(build()), accum)
    project = to_verilog(design, tmp_path, interval=interval)
    layer = weighted(design)
    found, wanted = read_weights(project, layer), layer.weights["weight"]
    assert ("bit by bit" in project.layers[-1].note) == (interval == LONG and seed % 4 < 2)
    if seed % 4 < 2:
        same_up_to_powers_of_two(found, wanted)
    else:
        # What rounds to nothing whatever the input may be gone as well.
        assert not found[wanted == 0].any()


@pytest.mark.parametrize("interval", [0, LONG])
@pytest.mark.parametrize("overflow", OVERFLOW_MODES)
def test_a_depthwise_layer_is_read_channel_by_channel(overflow, interval, tmp_path, monkeypatch):
    # So few taps are smaller at once.
    monkeypatch.setattr(products, "RAM", 0)
    monkeypatch.setattr(products, "CONTROL", 0)
    net = Net(np.random.default_rng(5))
    design = with_accum(net.design(net.depthwise(net.input(5, 5, 3))), FixedType(30, 15, overflow=overflow))
    layer = weighted(design)
    project = to_verilog(design, tmp_path, interval=interval)
    assert ("bit by bit" in project.layers[-1].note) == (interval == LONG)
    found = read_weights(project, layer)
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


@pytest.mark.parametrize("interval", [0, LONG])
def test_a_certificate_holds_for_the_verilog_of_locked_kernels(interval, tmp_path):
    design, masks, _ = locked_design()
    check = check_verilog(to_verilog(design, tmp_path, interval=interval), design, masks)
    assert not check.violations


@pytest.mark.parametrize("bias_too", [False, True])
def test_a_weight_that_is_named_behind_the_bias_is_compared_too(bias_too, tmp_path):
    design, masks, name = locked_design()
    masks = masks if bias_too else MaskSet({"conv/kernel": masks["conv/kernel"]})
    sources = {"bias": "conv/bias", "weight": "conv/kernel"}
    layers = [replace(la, sources=sources) if la.name == name else la for la in design.layers]
    design = replace(design, layers=tuple(layers))
    check = check_verilog(to_verilog(design, tmp_path), design, masks)
    assert [weight.path for weight in check.weights] == ["conv/kernel"]
    reasons = {"conv/bias": "added once for each output, not multiplied"}
    assert check.not_carried == (reasons if bias_too else {})


@pytest.mark.parametrize("interval", [0, LONG])
def test_a_product_that_crept_in_is_found(interval, tmp_path):
    design, masks, name = locked_design()
    project = to_verilog(design, tmp_path, interval=interval)
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
    to_verilog(tampered, tmp_path, interval=interval)
    check = check_verilog(project, design, masks)
    assert [(weight.path, weight.violations) for weight in check.weights] == [("conv/kernel", 1)]
    assert check.weights[0].first_violation.startswith("[1, 1, 0, 1]")


def test_an_adder_of_bits_that_reads_another_input_is_found(tmp_path):
    design, masks, _ = locked_design()
    project = to_verilog(design, tmp_path, interval=LONG)
    sums = tmp_path / "rtl" / f"{project.layers[-1].module}_sums.v"
    text = sums.read_text()
    # Two inputs change places: what is locked of one is not of the other.
    places = re.findall(r"in_data\((in_data\[[^)]*\])\)", text)
    assert len(places) == 18
    text = text.replace(places[0], "@").replace(places[1], places[0]).replace("@", places[1])
    sums.write_text(text)
    assert check_verilog(project, design, masks).violations


@pytest.mark.parametrize(
    ("pattern", "put", "message"),
    [
        (
            r"\.b\((v\d+)\[(\d+)\]\)",
            r".b(\1[1\2])",
            r"adder v\d+ reads a number \d+ cycles after the other and begins as if",
        ),
        (r"\.clear\(c(\d+)\[(\d+)\]\)", r".clear(c\1[1\2])", r"adder v\d+ reads a number \d+ cycles after the other"),
        (r"\.a\(v\d+\[", ".a(v99999[", "the Verilog reads bits that nothing drives"),
        (r"\.a\(v\d+\[0\]\)", ".a(1'b0)", '"1\'b0" is not a bit of a number'),
        (r"in_data\[\d+:", "in_data[99:", "is not an input of \\d+ bits"),
    ],
)
def test_adders_of_bits_that_make_no_sense_are_named(pattern, put, message, tmp_path):
    design, masks, name = locked_design()
    project = to_verilog(design, tmp_path, interval=LONG)
    sums = tmp_path / "rtl" / f"{project.layers[-1].module}_sums.v"
    changed = re.sub(pattern, put, sums.read_text(), count=1)
    assert changed != sums.read_text()
    sums.write_text(changed)
    with pytest.raises(CertificateError, match=f"layer {name!r}: .*{message}"):
        check_verilog(project, design, masks)


def folded(seed, inputs, outputs, clocks, folder, pixels=1):
    """A Dense layer with zeros, its weights in memory; its inputs come in one beat, or in that of each pixel."""
    rng = np.random.default_rng(seed)
    net = Net(rng)
    source = net.input(inputs) if pixels == 1 else net.flatten(net.input(pixels, 1, inputs // pixels))
    name = net.dense(source, outputs)
    design = with_accum(net.design(name), FixedType(40, 20))
    layer = weighted(design)
    kept = rng.random((inputs, outputs)) < 0.6
    layer = replace(
        layer, weights={**layer.weights, "weight": layer.weights["weight"] * kept}, sources={"weight": "d/kernel"}
    )
    design = replace(design, layers=tuple(layer if la.name == name else la for la in design.layers))
    return design, layer, to_verilog(design, folder, fold={name: clocks})


@pytest.mark.parametrize(
    ("seed", "inputs", "outputs", "clocks", "pixels"),
    [
        (0, 6, 2, 3, 1),
        (1, 12, 4, 12, 1),
        (2, 12, 3, 4, 1),
        (3, 9, 5, 9, 1),
        (4, 8, 1, 2, 1),
        (5, 30, 7, 10, 1),
        # Zeros fill the last cycle of a beat.
        (6, 13, 3, 5, 1),
        (7, 7, 2, 4, 1),
        (8, 39, 4, 15, 3),
        (9, 20, 2, 13, 4),
    ],
)
def test_what_a_memory_holds_is_read_back(seed, inputs, outputs, clocks, pixels, tmp_path, monkeypatch):
    if seed % 2:
        monkeypatch.setattr(parts, "PART_CHARACTERS", 1_000)
    _, layer, project = folded(seed, inputs, outputs, clocks, tmp_path, pixels)
    assert project.layers[-1].note.startswith("folded: ")
    found, wanted = read_weights(project, layer), layer.weights["weight"]
    same_up_to_powers_of_two(found, wanted)


def test_a_locked_weight_in_memory_must_be_zero(tmp_path):
    design, layer, project = folded(1, 12, 4, 12, tmp_path)
    wanted = layer.weights["weight"]
    masks = MaskSet({"d/kernel": wanted != 0})
    assert check_verilog(project, design, masks).violations == 0
    # One bit of one word: of the weight of an input and an output that are locked.
    row, column = (int(place) for place in np.argwhere(wanted == 0)[0])
    memory = next(tmp_path.glob("rtl/*_rom0.v"))
    places = Memory.of(wanted.reshape(12, 1, 4)).places
    lowest, _ = places[0, column]
    change = re.compile(rf"('d{row}: data = \d+'h)([0-9a-f]+);")
    memory.write_text(change.sub(lambda m: f"{m[1]}{int(m[2], 16) ^ 1 << lowest:x};", memory.read_text()))
    check = check_verilog(project, design, masks)
    assert [(weight.path, weight.violations) for weight in check.weights] == [("d/kernel", 1)]
    assert check.weights[0].first_violation.startswith(f"[{row}, {column}]")


@pytest.mark.parametrize(
    ("bits", "file", "old", "new", "message"),
    [
        (4, "_products.v", r"(lookup\d+ \(.address\()v\d+", r"\1v0", "not addressed by the number of the beat"),
        (4, "_rom0.v", r"\n *\d+'d3: .*", "", "has 11 words; wanted 12"),
        (0, "_products.v", r"(v\d+ = )(\S+) \* (\S+);", r"\1\2 & \3;", "is not a product of an input and a weight"),
        (0, "_products.v", r"= \S+ \* ", "= v999 * ", r"reads v\d+, which nothing drives"),
        # A bit that is multiplied twice, one that is not multiplied, that counts twice as much, and whose sign is lost.
        (
            4,
            "_products.v",
            r"((?s:.*?)wire signed \[(\d+):0\] )(v\d+)( = )(v\d+\[0\] \? v\d+ : 1'sd0);",
            r"\1v999 = \5;\n    wire signed [\2:0] v998 = \5;\n    wire signed [\2:0] \3 = v999 + v998;",
            "does not multiply every bit of input",
        ),
        (4, "_products.v", r"v\d+\[0\] \? v\d+ : 1'sd0", "3'sd1", "does not multiply every bit of input"),
        (4, "_products.v", r"<<< 1\)", "<<< 2)", "does not multiply every bit of input"),
        (4, "_products.v", r"(v\d+_d\d+ )- (v\d+_d\d+)", r"\1+ \2", "does not multiply every bit of input"),
        (4, "_products.v", r"(v\d+\[0\] \? )v\d+", r"\1v0", "weight v0 of the Verilog does not come from a memory"),
    ],
)
def test_a_memory_of_another_form_is_refused(bits, file, old, new, message, tmp_path, monkeypatch):
    monkeypatch.setattr(small_products, "BITS", bits)
    _, layer, project = folded(1, 12, 4, 12, tmp_path)
    path = next(tmp_path.glob(f"rtl/*{file}"))
    changed = re.sub(old, new, path.read_text(), count=1)
    assert changed != path.read_text()
    path.write_text(changed)
    with pytest.raises(CertificateError, match=message):
        read_weights(project, layer)


def test_a_weight_of_what_fills_the_last_cycle_is_refused(tmp_path):
    # Thirteen inputs in five cycles, three at a time: the last two of the fifth cycle are zeros.
    _, layer, project = folded(6, 13, 3, 5, tmp_path)
    weights = np.concatenate([layer.weights["weight"], np.zeros((2, 3), np.int64)])
    places = Memory.of(weights.reshape(5, 3, 3)).places
    lowest = next(place for (lane, _), (place, _) in places.items() if lane)
    memory = next(tmp_path.glob("rtl/*_rom0.v"))
    word = re.compile(r"('d4: data = \d+'h)([0-9a-f]+);")
    memory.write_text(word.sub(lambda m: f"{m[1]}{int(m[2], 16) ^ 1 << lowest:x};", memory.read_text()))
    with pytest.raises(CertificateError, match="has weights for more than its 13 inputs"):
        read_weights(project, layer)


def test_a_memory_that_is_gone_is_named(tmp_path):
    _, layer, project = folded(1, 12, 4, 12, tmp_path)
    next(tmp_path.glob("rtl/*_rom0.v")).unlink()
    with pytest.raises(CertificateError, match="_rom0 is gone; write the Verilog again"):
        read_weights(project, layer)


def test_weights_are_those_of_their_output_where_one_before_is_always_zero(tmp_path):
    net = Net(np.random.default_rng(5))
    dense = net.dense(net.input(6), 4)
    relu = net.activation(dense, "relu")
    design = net.design(net.dense(relu, 3))
    layer = design[dense]
    bias = layer.weights["bias"].copy()
    bias[1] = layer.types["bias"].raw_min
    weight = layer.weights["weight"].copy()
    weight[:, 1] = 0
    other = replace(layer, weights={**layer.weights, "bias": bias, "weight": weight})
    design = replace(design, layers=tuple(other if la is layer else la for la in design.layers))
    project = to_verilog(design, tmp_path)
    found = read_weights(project, design[dense])
    places = list(next(row for row in project.layers if row.layer == dense).leaves.places(4))
    assert [place.bits > 0 for place in places] == [True, False, True, True]
    assert not found[:, 1].any()
    same_up_to_powers_of_two(found[:, [0, 2, 3]], weight[:, [0, 2, 3]])


@pytest.mark.parametrize("interval", [0, LONG])
@pytest.mark.parametrize("function", ["tanh", "sigmoid", "softplus"])
def test_weights_are_read_past_a_table_of_the_function_behind_them(function, interval, tmp_path):
    net = Net(np.random.default_rng(3))
    dense = net.dense(net.input(6), 4)
    design = with_accum(net.design(net.activation(dense, function)), FixedType(40, 20))
    project = to_verilog(design, tmp_path, interval=interval)
    assert any(f"{dense}_" in path.name for path in tmp_path.glob("rtl/*_rom0.v")), "no table is computed with the sums"
    same_up_to_a_factor(read_weights(project, design[dense]), design[dense].weights["weight"])


def test_weights_of_one_bit_among_wider_ones_are_read(tmp_path):
    design, layer, _ = folded(1, 16, 12, 4, tmp_path / "first")
    weight = layer.weights["weight"].copy()
    weight[:, 3:8] = -(weight[:, 3:8] & 1)
    layer = replace(layer, weights={**layer.weights, "weight": weight})
    design = replace(design, layers=tuple(layer if one.name == layer.name else one for one in design.layers))
    project = to_verilog(design, tmp_path / "second", fold={layer.name: 4})
    same_up_to_powers_of_two(read_weights(project, layer), weight)


@pytest.mark.parametrize("seed", [20017, 20119])
def test_weights_of_inputs_without_their_lowest_bits_are_read(seed, tmp_path):
    """A layer of coarser types stands before: the multipliers take the bits that are not always zero."""
    design = random_design(seed, 2)
    project = to_verilog(design, tmp_path, interval=(0, 16, 64)[seed % 3])
    shortened = re.compile(r"(v\d+) = \$signed\(v\d+\[\d+:[1-9]\d*\]\);[^*]* = \(\1_d\d <<< \d+\);")
    found = [row for row in project.layers if row.note.startswith("folded")]
    assert any(shortened.search((tmp_path / f"rtl/{row.module}_products.v").read_text()) for row in found)
    for row in found:
        same_up_to_powers_of_two(read_weights(project, design[row.layer]), design[row.layer].weights["weight"])


@pytest.mark.parametrize("signed", [False, True])
def test_a_memory_has_weights_for_inputs_that_are_always_zero(signed, tmp_path):
    net = Net(np.random.default_rng(5))
    conv = net.conv(net.input(4, 4, 2), 4, size=(3, 3))
    relu = net.activation(conv, "relu")
    folded_one = net.dense(net.flatten(relu), 3)
    design = with_accum(net.design(folded_one), FixedType(40, 20))
    layer = design[conv]
    bias, weight = layer.weights["bias"].copy(), layer.weights["weight"].copy()
    bias[1::2], weight[..., 1::2] = layer.types["bias"].raw_min, 0
    silent = replace(layer, weights={**layer.weights, "bias": bias, "weight": weight})
    kind = FixedType(12, 6, signed=signed)
    layers = [silent if la is layer else la for la in design.layers]
    layers = [la if la.name != relu else replace(la, types={**la.types, "result": kind}) for la in layers]
    project = to_verilog(replace(design, layers=tuple(layers)), tmp_path, fold={folded_one: 4})
    none = "$signed(in_data[12:12]);" if signed else "v1 = 1'b0;"
    assert none in next(tmp_path.glob("rtl/*_products.v")).read_text(), "no input is always zero"
    wanted = design[folded_one].weights["weight"]
    assert wanted[1::2].any()
    same_up_to_powers_of_two(read_weights(project, design[folded_one]), wanted)
