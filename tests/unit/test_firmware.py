"""The reader of weight headers, and of the adders that stand in their place."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fpgaprune.certify import read_adder_weights
from fpgaprune.errors import FirmwareError
from fpgaprune.files import (
    element_type,
    read_layer_numbers,
    read_layer_sizes,
    read_typedefs,
    read_weight_array,
    stored_forms,
)

HEADERS = {
    "vitis": "#ifndef __SYNTHESIS__\nfc_weight_t w2[3];\n#else\nfc_weight_t w2[3] = {0.5, -0.25, 0};\n#endif\n",
    "oneapi": "[[intel::fpga_register]] static constexpr fc_weight_t w2 = {{0.5, -0.25, 0}};\n",
    "lines": "fc_weight_t w2 [3] = {0.5,\n -0.25,\n 0};\n",
}


@pytest.mark.parametrize("form", HEADERS)
def test_each_form_of_a_header_is_read(form, tmp_path):
    (tmp_path / "w2.h").write_text(HEADERS[form])
    found = read_weight_array(tmp_path / "w2.h")
    assert (found.name, found.type) == ("w2", "fc_weight_t")
    assert found.values.tolist() == [0.5, -0.25, 0.0]


@pytest.mark.parametrize(
    ("header", "simulated", "message"),
    [
        ("fc_weight_t w2[3];\n", None, "holds no weight array for synthesis"),
        ("fc_weight_t w2[4] = {0.5, -0.25, 0};\n", None, "holds 3 values; wanted 4"),
        ("fc_weight_t w2[3] = {0.5, half, 0};\n", None, "something that is not a number"),
        (HEADERS["vitis"], "0.5, -0.25, 0.125", "simulation and synthesis would differ"),
        (HEADERS["vitis"], "0.5, -0.25", r"holds 2 values; w2\.h has 3"),
    ],
)
def test_a_header_that_does_not_say_what_it_should_is_refused(header, simulated, message, tmp_path):
    (tmp_path / "w2.h").write_text(header)
    if simulated is not None:
        (tmp_path / "w2.txt").write_text(simulated)
    with pytest.raises(FirmwareError, match=message):
        read_weight_array(tmp_path / "w2.h")


def test_missing_files_are_named(tmp_path):
    with pytest.raises(FirmwareError, match=r"w9\.h does not exist"):
        read_weight_array(tmp_path / "w9.h")
    with pytest.raises(FirmwareError, match=r"holds neither defines\.h nor parameters\.h"):
        read_typedefs(tmp_path)


def test_types_numbers_and_sizes_are_found(tmp_path):
    (tmp_path / "defines.h").write_text(
        "typedef nnet::array<ac_fixed<8,0,true>, 36*1> w2_t;\ntypedef ap_fixed<8,1> t;\n"
    )
    (tmp_path / "parameters.h").write_text(
        "struct config2_mult : nnet::dense_config {\n    static const unsigned n_in = 18;\n"
        "    typedef conv_accum_t accum_t;\n};\n"
        "struct config2 : nnet::conv2d_config {\n    static const unsigned n_chan = 2;\n"
        "    static const unsigned n_filt = 4;\n    typedef conv_accum_t accum_t;\n};\n"
        "struct relu_config3 : nnet::activ_config {\n    static const unsigned n_in = 9;\n};\n"
    )
    (tmp_path / "net.cpp").write_text("    nnet::dense_da_5<a_t, b_t>(x, y); // head\n")
    types = read_typedefs(tmp_path)
    assert element_type(types["w2_t"]) == "ac_fixed<8,0,true>"
    assert element_type(types["t"]) == "ap_fixed<8,1>"
    assert read_layer_numbers(tmp_path) == {"conv": 2, "head": 5}
    assert read_layer_sizes(tmp_path) == {2: {"n_in": 18, "n_chan": 2, "n_filt": 4}}


def test_large_dense_layers_are_padded_as_in_the_writers_of_hls4ml():
    weight = np.arange(1, 64 * 33 + 1).reshape(64, 33)
    forms = list(stored_forms(weight, reuse=33))
    assert len(forms) == 3
    padded, flat = forms[-1], weight.T.ravel()
    assert padded.shape == (64, 64)
    # As ApplyResourceStrategy of the oneAPI backend fills it: temp[j][i] = flat[i + rf * j].
    for row, column in ((0, 0), (1, 5), (63, 32), (10, 31)):
        assert padded[row, column] == flat[column + 33 * row]
    assert not padded[:, 33:].any()
    assert len(list(stored_forms(weight, reuse=32))) == 2


def adders(body, inputs=3, outputs=2):
    return (
        f"template <typename inp_t, typename out_t>\nvoid dense_da_7(inp_t model_inp[{inputs}], out_t "
        f"model_out[{outputs}]) {{ // ap_fixed<8,3> -> x\n    #pragma HLS INLINE\n{body}\n}}\n"
    )


BODY = """
    ap_fixed<8,3> v0 = model_inp[0]; // 0.0
    ap_fixed<8,3> v1 = model_inp[1]; // 0.0
    ap_fixed<10,5> v3 = v0 - bit_shift<1>(v1); // 1.0
    ap_fixed<13,4> v4 = v3 + bit_shift<-4>(v0); // 1.0
    ap_fixed<13,4> v5 = v4 + 0.375;

    model_out[0] = ap_fixed<17,5>(bit_shift<-2>(v5));
    model_out[1] = ap_fixed<19,7>(-bit_shift<1>(v1));
"""


def test_an_adder_tree_is_read_as_weights_and_biases():
    weights, biases = read_adder_weights(adders(BODY), "dense_da_7")
    assert weights.tolist() == [[1.0625 / 4, 0.0], [-0.5, -2.0], [0.0, 0.0]]
    assert biases.tolist() == [0.375 / 4, 0.0]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("v0 - bit_shift<1>(v1)", "v0 * v1", "is neither an addition nor a shift"),
        ("bit_shift<1>(v1); // 1.0", "bit_shift<1>(v9); // 1.0", "neither an addition nor a shift"),
        ("    model_out[1] = ap_fixed<19,7>(-bit_shift<1>(v1));", "", r"never sets model_out\[1\]"),
        ("ap_fixed<13,4> v5 =", "if (x) v5 =", "neither an addition nor a shift"),
        ("dense_da_7", "dense_da_8", "has no function 'dense_da_7'"),
        ("(-bit_shift<1>(v1))", "(-bit_shift<1>(v1)", "neither an addition nor a shift"),
    ],
)
def test_what_is_no_adder_tree_is_refused(old, new, message):
    text = adders(BODY)
    assert old in text
    with pytest.raises(FirmwareError, match=message):
        read_adder_weights(text.replace(old, new), "dense_da_7")


@settings(derandomize=True, deadline=None, max_examples=40)
@given(st.integers(1, 5), st.integers(1, 4), st.integers(0, 10**6))
def test_any_tree_of_shifts_and_sums_is_the_function_that_it_computes(inputs, outputs, seed):
    rng = np.random.default_rng(seed)
    lines = [f"ap_fixed<8,3> v{i} = model_inp[{i}];" for i in range(inputs)]
    values = list(np.eye(inputs + 1)[:inputs])
    for place in range(inputs, inputs + 6):
        a, b = rng.integers(0, place, 2)
        shift, sign = int(rng.integers(-5, 6)), rng.choice(["+", "-"])
        lines.append(f"ap_fixed<30,20> v{place} = v{a} {sign} bit_shift<{shift}>(v{b});")
        values.append(values[a] + (1 if sign == "+" else -1) * values[b] * 2.0**shift)
    picked = rng.integers(0, len(values), outputs)
    lines += [f"model_out[{o}] = ap_fixed<30,20>(v{v});" for o, v in enumerate(picked)]
    weights, biases = read_adder_weights(adders("\n".join(lines), inputs, outputs), "dense_da_7")
    wanted = np.stack([values[v] for v in picked], axis=1)
    assert np.array_equal(weights, wanted[:-1])
    assert np.array_equal(biases, wanted[-1])
