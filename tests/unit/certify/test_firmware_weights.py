"""What the certificate reads and counts in the files of a project, for each kind of layer."""

import dataclasses

import numpy as np
import pytest

from fpgaprune.certify import count_firmware, firmware_folder, read_firmware_weights, read_layer_integers
from fpgaprune.errors import CertificateError
from fpgaprune.measure import LayerCounts

from .projects import KIND, design, layer, write

RNG = np.random.default_rng(5)


def integers(*shape):
    """Small integers, all different from their neighbours when turned: no order can be taken for another."""
    return RNG.permutation(np.arange(int(np.prod(shape))) - 20).reshape(shape)


def lstm():
    weights = {"weight": integers(3, 8), "recurrent_weight": integers(2, 8), "bias": integers(8)}
    return layer("lstm", "LSTM", weights, (2,))


def gru():
    weights = {
        "weight": integers(3, 6),
        "recurrent_weight": integers(2, 6),
        "bias": integers(6),
        "recurrent_bias": integers(6),
    }
    sources = {role: f"gru/{role}" for role in ("weight", "recurrent_weight")}
    return layer("gru", "GRU", weights, (2,), {**sources, "bias": "gru/bias", "recurrent_bias": "gru/bias"})


def test_the_bias_of_a_recurrent_layer_is_that_of_keras(tmp_path):
    made = design(lstm(), gru())
    write(tmp_path / "firmware", made)
    found = read_firmware_weights(tmp_path, made)
    assert list(found) == ["lstm/weight", "lstm/recurrent_weight", "lstm/bias", *(f"gru/{w}" for w in (
        "weight", "recurrent_weight", "bias"))]  # fmt: skip
    assert np.array_equal(found["lstm/bias"], made["lstm"].weights["bias"])
    assert np.array_equal(found["gru/bias"], [made["gru"].weights["bias"], made["gru"].weights["recurrent_bias"]])
    assert np.array_equal(found["gru/recurrent_weight"], made["gru"].weights["recurrent_weight"])


def test_the_bias_of_another_layer_is_read_but_carries_no_weight_of_keras(tmp_path):
    made = design(layer("fc", "Dense", {"weight": integers(3, 2), "bias": [5, 6]}))
    write(tmp_path / "firmware", made)
    assert list(read_firmware_weights(tmp_path, made)) == ["fc/weight"]
    assert list(read_layer_integers(tmp_path, made)) == [("fc", "weight"), ("fc", "bias")]


def test_a_weight_of_the_compiler_alone_is_compared_where_it_has_a_file(tmp_path):
    """A bias that no weight of Keras became may have no file; where it has one, that holds the design's integers."""
    made = design(layer("fc", "Dense", {"weight": integers(3, 2), "bias": [0, 0]}, sources={"weight": "fc/kernel"}))
    write(tmp_path / "with" / "firmware", made)
    write(tmp_path / "without" / "firmware", made, left_out=(("fc", "bias"),))
    write(tmp_path / "wrong" / "firmware", made, stored={("fc", "bias"): np.array([0, 1])})
    assert list(read_layer_integers(tmp_path / "with", made)) == [("fc", "weight"), ("fc", "bias")]
    assert list(read_layer_integers(tmp_path / "without", made)) == [("fc", "weight")]
    with pytest.raises(CertificateError, match=r"b2\.h and the design have different integers for bias of 'fc'"):
        read_layer_integers(tmp_path / "wrong", made)


@pytest.mark.parametrize("by_type", [True, False])
def test_arrays_are_found_by_their_types_or_by_their_layers_numbers(tmp_path, by_type):
    made = design(
        layer("scaled", "ApplyAlpha", {"scale": [3, 4], "bias": [1, 2]}),
        lstm(),
        gru(),
        layer("fc", "Dense", {"weight": integers(3, 2), "bias": [5, 6]}),
    )
    write(tmp_path / "firmware", made, by_type=by_type)
    found = read_layer_integers(tmp_path, made)
    assert len(found) == 2 + 3 + 4 + 2
    for (name, role), raw in found.items():
        assert np.array_equal(raw, made[name].weights[role])


def test_a_role_of_another_name_has_an_array_of_that_name(tmp_path):
    made = design(layer("prelu", "PReLU", {"param": [1, 2]}))
    write(tmp_path / "firmware", made, by_type=False)
    assert read_layer_integers(tmp_path, made)["prelu", "param"].tolist() == [1, 2]


def test_a_layer_without_number_and_type_has_no_file(tmp_path):
    made = design(layer("fc", "Dense", {"weight": integers(3, 2)}))
    write(tmp_path / "firmware", made, by_type=False)
    (tmp_path / "firmware" / "net.cpp").write_text("")
    with pytest.raises(CertificateError, match="no weight file for weight of layer 'fc'"):
        read_layer_integers(tmp_path, made)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("fc_weight_t", "other_t", "firmware: no weight file for weight of layer 'fc'"),
        (f"ap_{KIND}", "ap_fixed<0,wrong>", r"firmware: .*ap_fixed<0,wrong>"),
    ],
)
def test_a_type_that_is_missing_or_unknown_is_named(tmp_path, old, new, message):
    made = design(layer("fc", "Dense", {"weight": integers(3, 2)}))
    path = write(tmp_path / "firmware", made) / "defines.h"
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(CertificateError, match=message):
        read_layer_integers(tmp_path, made)


def test_an_array_stored_with_its_outputs_first_is_the_same_and_shorter_or_longer_ones_are_not(tmp_path):
    raw = integers(3, 2)
    made = design(layer("fc", "Dense", {"weight": raw}))
    write(tmp_path / "turned" / "firmware", made, stored={("fc", "weight"): raw.T})
    assert np.array_equal(read_layer_integers(tmp_path / "turned", made)["fc", "weight"], raw)
    for name, other in (("short", raw[:2]), ("long", np.concatenate([raw, raw[:1]])), ("mixed", raw[::-1])):
        write(tmp_path / name / "firmware", made, stored={("fc", "weight"): other})
        with pytest.raises(CertificateError, match="and the design have different integers for weight of 'fc'"):
            read_layer_integers(tmp_path / name, made)


def test_the_folder_of_oneapi_lies_one_deeper(tmp_path):
    assert firmware_folder(tmp_path) == tmp_path / "firmware"
    (tmp_path / "firmware").mkdir()
    assert firmware_folder(tmp_path) == tmp_path / "firmware"
    (tmp_path / "src" / "firmware").mkdir(parents=True)
    assert firmware_folder(tmp_path) == tmp_path / "src" / "firmware"


def counted(made, name, role):
    """The counts of a matrix by going through it, one number after another."""
    raw = made[name].weights[role]
    values = [abs(int(value)) for value in raw.ravel()]
    outputs = raw.shape[-2] if made[name].kind == "DepthwiseConv2D" else raw.shape[-1]
    return LayerCounts(
        layer=name,
        path=made[name].sources.get(role, ""),
        inputs=len(values) // outputs,
        outputs=outputs,
        weights=len(values),
        zero=values.count(0),
        power_of_two=sum(value in (1, 2, 4, 8, 16, 32, 64, 128) for value in values),
        distinct=len(set(values) - {0}),
    )


def test_counts_are_those_of_the_numbers_one_by_one(tmp_path):
    dense = np.array([[0, 1, 2], [3, 4, -8], [-6, 7, 3], [0, 64, 127]])
    depthwise = integers(3, 3, 4, 1)
    conv = integers(2, 3, 1, 5)
    made = design(
        layer("fc", "Dense", {"weight": dense, "bias": [1, 2, 3]}, (3,)),
        layer("deep", "DepthwiseConv2D", {"weight": depthwise}, (5, 5, 4)),
        layer("conv", "Conv2D", {"weight": conv}, (5, 5, 5)),
        lstm(),
        layer("plain", "Dense", {"weight": integers(4, 2)}, sources={}),
        layer("relu", "Activation", {}, attributes={"activation": "relu"}),
    )
    write(tmp_path / "firmware", made)
    roles = [("fc", "weight"), ("deep", "weight"), ("conv", "weight"), ("lstm", "weight"), ("lstm", "recurrent_weight")]
    assert count_firmware(tmp_path, made) == tuple(counted(made, *role) for role in [*roles, ("plain", "weight")])
    first = count_firmware(tmp_path, made)[0]
    assert (first.inputs, first.outputs, first.weights, first.zero) == (4, 3, 12, 2)
    assert (first.power_of_two, first.distinct) == (5, 9)


# What hls4ml's configuration states of a layer whose weights have these sizes.
SIZES = {
    "lstm": {"n_in": 3, "n_state": 2, "n_out": 2},
    "deep": {"n_chan": 4, "n_filt": 4},
    "line": {"n_chan": 6, "n_filt": 6},
    "fc": {"n_in": 4, "n_out": 3},
    "conv": {"n_chan": 3, "n_filt": 5},
    "short": {"n_chan": 2, "n_filt": 7},
    "point": {"n_chan": 3, "n_filt": 4},
}


def sized():
    return design(
        layer("lstm", "LSTM", lstm().weights, (2,)),
        layer("deep", "DepthwiseConv2D", {"weight": integers(2, 1, 4, 1)}, (5, 5, 4)),
        layer("line", "DepthwiseConv1D", {"weight": integers(3, 6, 1)}, (5, 6)),
        layer("fc", "Dense", {"weight": integers(4, 3)}, (3,)),
        layer("conv", "Conv2D", {"weight": integers(1, 2, 3, 5)}, (5, 5, 5)),
        layer("short", "Conv1D", {"weight": integers(4, 2, 7)}, (5, 7)),
        layer("point", "PointwiseConv2D", {"weight": integers(1, 1, 3, 4)}, (5, 5, 4)),
    )


@pytest.mark.parametrize(("name", "size"), [(None, None), *((name, size) for name in SIZES for size in SIZES[name])])
def test_each_size_of_each_kind_is_compared_with_the_weights(tmp_path, name, size):
    made = sized()
    stated = {each: dict(sizes) for each, sizes in SIZES.items()}
    if name is None:
        write(tmp_path / "firmware", made, stated)
        assert len(count_firmware(tmp_path, made)) == 8
        return
    for wrong in (-1, 1):
        stated[name][size] = SIZES[name][size] + wrong
        write(tmp_path / str(wrong) / "firmware", made, stated)
        with pytest.raises(CertificateError) as caught:
            count_firmware(tmp_path / str(wrong), made)
        assert str(caught.value) == (
            f"{tmp_path / str(wrong) / 'firmware' / 'parameters.h'}: layer {name!r} has {size} = "
            f"{SIZES[name][size] + wrong}; its weights have {SIZES[name][size]}: a channel was removed from one but "
            "not from the other"
        )


@pytest.mark.parametrize(
    ("io_type", "declared", "message"),
    [
        ("io_stream", "typedef nnet::array<ap_fixed<8,1>, 5*1> layer2_t;\n", None),
        ("io_stream", "typedef nnet::array<ap_fixed<8,1>, 60*1> layer2_t;\n", "the type .* 60 elements"),
        ("io_parallel", "typedef nnet::array<ap_fixed<8,1>, 60*1> layer2_t;\n", None),
        ("io_parallel", "typedef nnet::array<ap_fixed<8,1>, 5*1> layer2_t;\n", "the type .* 5 elements"),
        ("io_parallel", "layer2_t layer2_out[3*4*5];\n", None),
        ("io_stream", "layer2_t layer2_out[3*4*5];\n", None),
        ("io_parallel", "layer2_t layer2_out[5];\n", "the array .* 5 elements"),
    ],
)
def test_the_arrays_between_layers_have_the_sizes_of_their_outputs(tmp_path, io_type, declared, message):
    made = design(layer("conv", "Conv2D", {"weight": integers(1, 1, 3, 5)}, (3, 4, 5)), io_type=io_type)
    path = write(tmp_path / "firmware", made) / "defines.h"
    path.write_text(path.read_text() + declared)
    if message is None:
        assert count_firmware(tmp_path, made)[0].outputs == 5
        return
    with pytest.raises(CertificateError, match=message):
        count_firmware(tmp_path, made)


def test_two_declarations_of_one_output_are_an_error_of_the_certificate(tmp_path):
    made = design(layer("conv", "Conv2D", {"weight": integers(1, 1, 3, 5)}, (3, 4, 5)))
    path = write(tmp_path / "firmware", made) / "net.cpp"
    path.write_text(path.read_text() + "layer2_t layer2_out[60];\nlayer2_t layer2_out[61];\n")
    with pytest.raises(CertificateError, match="with 61 elements"):
        count_firmware(tmp_path, made)


def adders(tmp_path, outputs="-bit_shift<-6>(model_inp[1]) + 0.0625", name="dense_da_2"):
    """A Dense layer of 2 inputs and 1 output as adders: weights 0.5 and -1/64, bias 0.0625."""
    dense = layer("fc", "Dense", {"weight": [[32], [-1]], "bias": [4]}, strategy="distributed_arithmetic")
    kinds = dict.fromkeys(("weight", "bias"), dataclasses.replace(KIND, width=8, integer=2))
    made = design(dataclasses.replace(dense, types=dict(dense.types) | kinds))
    folder = write(tmp_path / "firmware", made, left_out=(("fc", "weight"), ("fc", "bias")))
    (folder / "nnet_utils").mkdir()
    (folder / "nnet_utils" / "nnet_code_gen.h").write_text(
        f"void {name}(inp_t model_inp[2], out_t model_out[1]) {{\n"
        f"    model_out[0] = bit_shift<-1>(model_inp[0]) {outputs};\n}}\n"
    )
    return made


def test_adders_are_compared_with_the_design(tmp_path):
    made = adders(tmp_path)
    assert read_firmware_weights(tmp_path, made)["fc/weight"].tolist() == [[32], [-1]]
    assert read_layer_integers(tmp_path, made)["fc", "bias"].tolist() == [4]
    assert count_firmware(tmp_path, made)[0].power_of_two == 2


@pytest.mark.parametrize(
    ("outputs", "message"),
    [
        ("- bit_shift<-5>(model_inp[1]) + 0.0625", "and the design have different integers for weight of 'fc'"),
        ("- bit_shift<-6>(model_inp[1]) + 0.125", "and the design have different integers for bias of 'fc'"),
        ("- bit_shift<-6>(model_inp[1])", "and the design have different integers for bias of 'fc'"),
        ("- bit_shift<-9>(model_inp[1])", "holds values that .* cannot represent"),
        ("* model_inp[1]", "is neither an addition nor a shift"),
    ],
)
def test_adders_of_another_function_are_found(tmp_path, outputs, message):
    made = adders(tmp_path, outputs)
    with pytest.raises(CertificateError, match=message):
        read_layer_integers(tmp_path, made)


def test_adders_without_their_function_or_their_layers_number_are_refused(tmp_path):
    made = adders(tmp_path / "other", name="dense_da_3")
    with pytest.raises(CertificateError, match="has no function 'dense_da_2'"):
        read_layer_integers(tmp_path / "other", made)
    made = adders(tmp_path / "unnumbered")
    (tmp_path / "unnumbered" / "firmware" / "net.cpp").write_text("")
    with pytest.raises(CertificateError, match=r"its C\+\+ files do not call layer 'fc'"):
        read_layer_integers(tmp_path / "unnumbered", made)


def test_adders_of_another_size_are_refused(tmp_path):
    """A design of more weights than the adders have, whatever their values."""
    made = adders(tmp_path)
    dense = made["fc"]
    for weights in ([[32], [-1], [0]], [[32]]):
        other = dataclasses.replace(dense, weights={"weight": np.array(weights), "bias": np.array([4])})
        with pytest.raises(CertificateError, match="different integers"):
            read_layer_integers(tmp_path, design(other))


def test_adders_of_a_large_layer_are_compared_too(tmp_path):
    raw = np.array([[1 + place % 3] for place in range(300)])
    made = design(layer("fc", "Dense", {"weight": raw}, (1,), strategy="distributed_arithmetic"))
    folder = write(tmp_path / "firmware", made, left_out=(("fc", "weight"),))
    terms = " + ".join(f"bit_shift<{-7 if w % 2 else -6}>(model_inp[{i}])" for i, (w,) in enumerate(raw))
    terms += "".join(f" + bit_shift<-6>(model_inp[{i}])" for i, (w,) in enumerate(raw) if w == 3)
    (folder / "nnet_utils").mkdir()
    (folder / "nnet_utils" / "nnet_code_gen.h").write_text(
        f"void dense_da_2(inp_t model_inp[300], out_t model_out[1]) {{\n    model_out[0] = {terms};\n}}\n"
    )
    assert np.array_equal(read_firmware_weights(tmp_path, made)["fc/weight"], raw)
