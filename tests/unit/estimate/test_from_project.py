"""Project folders in the forms of several hls4ml releases, written here by hand."""

import numpy as np
import pytest
from typer.testing import CliRunner

import fpgaprune as fp
from fpgaprune.cli import app
from fpgaprune.errors import EstimateError
from fpgaprune.estimate import read_project
from fpgaprune.estimate.firmware import evaluate, parse_calls, split_arguments, split_array
from fpgaprune.measure import ANALYTIC_SYNTH

# The form of releases 0.6 to 0.8: sizes are macros, types have numbers.
DEFINES_06 = """
#define N_INPUT_1_1 4
#define N_LAYER_2 3

typedef ap_fixed<16,6> model_default_t;
typedef ap_fixed<16,6> input_t;
typedef ap_fixed<16,6> layer2_t;
typedef ap_fixed<8,3> weight2_t;
typedef ap_fixed<8,3> bias2_t;
typedef ap_ufixed<8,0,AP_RND_CONV,AP_SAT> layer3_t;
typedef ap_fixed<16,6> result_t;
"""
PARAMETERS_06 = """
// fc1
struct config2 : nnet::dense_config {
    static const unsigned n_in = N_INPUT_1_1;
    static const unsigned n_out = N_LAYER_2;
    static const unsigned io_type = nnet::io_parallel;
    static const unsigned strategy = nnet::@STRATEGY@;
    static const unsigned reuse_factor = @REUSE@;
    static const unsigned n_zeros = 2;
    static const unsigned multiplier_limit = DIV_ROUNDUP(n_in * n_out, reuse_factor) - n_zeros / reuse_factor;
    static const bool store_weights_in_bram = false;
    typedef model_default_t accum_t;
    typedef bias2_t bias_t;
    typedef weight2_t weight_t;
    template<class x_T, class y_T>
    using product = nnet::product::mult<x_T, y_T>;
};

// relu1
struct relu_config3 : nnet::activ_config {
    static const unsigned n_in = N_LAYER_2;
    static const unsigned table_size = 1024;
    static const unsigned io_type = nnet::io_parallel;
};

// softmax
struct softmax_config4 : nnet::activ_config {
    static const unsigned n_in = N_LAYER_2;
    static const unsigned table_size = 1024;
    static const nnet::softmax_implementation implementation = nnet::softmax_implementation::stable;
    typedef ap_fixed<18,8> exp_table_t;
    typedef ap_fixed<18,4> inv_table_t;
};
"""
TOP_06 = """
void myproject(input_t fc1_input[N_INPUT_1_1], result_t layer4_out[N_LAYER_2]) {
    #pragma HLS PIPELINE
    #ifndef __SYNTHESIS__
        nnet::load_weights_from_txt<weight2_t, 12>(w2, "w2.txt");
    #endif
    layer2_t layer2_out[N_LAYER_2];
    nnet::dense<input_t, layer2_t, config2>(fc1_input, layer2_out, w2, b2); // fc1
    layer3_t layer3_out[N_LAYER_2];
    nnet::relu<layer2_t, layer3_t, relu_config3>(layer2_out, layer3_out); // relu1
    nnet::softmax<layer3_t, result_t, softmax_config4>(layer3_out, layer4_out); // softmax
}
"""
BUILD_06 = "set_part {xc7z020clg400-1}\ncreate_clock -period 4.5 -name default\n"
WEIGHTS = np.array([[0.5, 0.0, -1.5], [0.03125, 2.0, 0.0], [-0.75, 0.25, 1.0], [3.0, -0.5, 0.125]])


def project(root, strategy="latency", reuse=1, header=False):
    weights = root / "firmware" / "weights"
    weights.mkdir(parents=True)
    (root / "firmware" / "defines.h").write_text(DEFINES_06)
    text = PARAMETERS_06.replace("@STRATEGY@", strategy).replace("@REUSE@", str(reuse))
    (root / "firmware" / "parameters.h").write_text(text)
    (root / "firmware" / "myproject.cpp").write_text(TOP_06)
    (root / "build_prj.tcl").write_text(BUILD_06)
    stored = WEIGHTS.T if strategy == "resource" else WEIGHTS
    for name, values in (("w2", stored.ravel()), ("b2", [0.5, 0.25, -1.0])):
        body = ", ".join(f"{v:.10f}" for v in values)
        if header:
            (weights / f"{name}.h").write_text(
                f"//Numpy array\n#else\nweight2_t {name}[{len(values)}] = {{{body}}};\n#endif\n"
            )
        else:
            (weights / f"{name}.txt").write_text(body)
    return root


@pytest.mark.parametrize("header", [False, True])
@pytest.mark.parametrize(("strategy", "reuse"), [("latency", 1), ("resource", 2)])
def test_a_project_of_release_06(tmp_path, strategy, reuse, header):
    design = read_project(project(tmp_path, strategy, reuse, header))
    assert [layer.kind for layer in design.layers] == ["Input", "Dense", "Activation", "Softmax"]
    assert [layer.name for layer in design.layers][1:] == ["fc1", "relu1", "softmax"]
    assert (design.io_type, design.backend, design.part) == ("io_parallel", "Vivado", "xc7z020clg400-1")
    assert design.clock_ns == 4.5
    assert design.outputs == ("softmax",)
    dense = design["fc1"]
    assert (dense.strategy, dense.reuse_factor) == (strategy, reuse)
    assert np.array_equal(dense.weights["weight"], dense.types["weight"].to_raw(WEIGHTS))
    assert str(design["relu1"].types["result"]) == "ufixed<8,0,RND_CONV,SAT>"
    assert str(design["softmax"].types["exp_table"]) == "fixed<18,8>"
    assert fp.estimate(design).layers[1].multiplications.zero == 2


# The form of release 1.x in a stream: sizes are numbers, types are named after layers and packed.
DEFINES_1 = """
typedef nnet::array<ap_fixed<16,6>, 2*1> input_t;
typedef nnet::array<ap_fixed<16,6>, 2*1> layer2_t;
typedef ap_fixed<70,40> conv1_accum_t;
typedef nnet::array<ap_fixed<70,40>, 4*1> conv1_result_t;
typedef ap_fixed<16,6> conv1_weight_t;
typedef ap_fixed<16,6> conv1_bias_t;
typedef ap_fixed<38,18> r1_param_t;
typedef nnet::array<ap_fixed<16,6>, 4*1> layer5_t;
typedef nnet::array<ap_fixed<16,6>, 4*1> result_t;
"""
PARAMETERS_1 = """
struct config2 : nnet::padding2d_config {
    static const unsigned in_height = 6;
    static const unsigned in_width = 6;
    static const unsigned n_chan = 2;
    static const unsigned out_height = 8;
    static const unsigned out_width = 8;
};

struct config3_mult : nnet::dense_config {
    static const unsigned n_in = 18;
    static const unsigned n_out = 4;
    static const unsigned reuse_factor = 9;
    static const unsigned strategy = nnet::resource;
    typedef conv1_weight_t weight_t;
    template<class data_T, class res_T, class CONFIG_T>
    using kernel = nnet::DenseResource_rf_leq_nin<data_T, res_T, CONFIG_T>;
};

struct config3 : nnet::conv2d_config {
    static const unsigned in_height = 8;
    static const unsigned in_width = 8;
    static const unsigned n_chan = 2;
    static const unsigned filt_height = 3;
    static const unsigned filt_width = 3;
    static const unsigned kernel_size = filt_height * filt_width;
    static const unsigned n_filt = 4;
    static const unsigned out_height = 6;
    static const unsigned out_width = 6;
    static const unsigned reuse_factor = 9;
    static const unsigned strategy = nnet::resource;
    static const nnet::conv_implementation implementation = nnet::conv_implementation::linebuffer;
    static const unsigned n_partitions = 36;
    typedef conv1_accum_t accum_t;
    typedef conv1_bias_t bias_t;
    typedef conv1_weight_t weight_t;
    typedef config3_mult mult_config;
};

struct thresholdedrelu_config5 : nnet::activ_config {
    static const unsigned n_in = 144;
    typedef r1_param_t param_t;
};

struct config6 : nnet::pooling2d_config {
    static const unsigned in_height = 6;
    static const unsigned in_width = 6;
    static const unsigned n_filt = 4;
    static const unsigned pool_height = 2;
    static const unsigned pool_width = 2;
    static const unsigned n_chan = n_filt;
    static const unsigned out_height = 3;
    static const unsigned out_width = 3;
    static const nnet::Pool_Op pool_op = nnet::Max;
};
"""
TOP_1 = """
void net(hls::stream<input_t> &x, hls::stream<result_t> &layer6_out) {
    #pragma HLS DATAFLOW
    nnet::zeropad2d_cl<input_t, layer2_t, config2>(x, layer2_out); // pad
    nnet::conv_2d_cl<layer2_t, conv1_result_t, config3>(layer2_out, layer3_out, w3, b3); // conv1
    auto& layer4_out = layer3_out;
    nnet::thresholded_relu<conv1_result_t, r1_param_t, layer5_t, thresholdedrelu_config5>(
        layer4_out, 0.0, layer5_out); // r1
    nnet::pooling2d_cl<layer5_t, result_t, config6>(layer5_out, layer6_out); // mp
}
"""


def test_a_stream_of_release_1(tmp_path):
    weights = tmp_path / "firmware" / "weights"
    weights.mkdir(parents=True)
    values = np.random.default_rng(0).integers(-64, 64, (3, 3, 2, 4)) / 64
    (weights / "w3.txt").write_text(", ".join(map(str, np.moveaxis(values, -1, 0).ravel())))
    (weights / "b3.txt").write_text("0, 0, 0, 0")
    for name, text in (("defines.h", DEFINES_1), ("parameters.h", PARAMETERS_1), ("net.cpp", TOP_1)):
        (tmp_path / "firmware" / name).write_text(text)
    (tmp_path / "project.tcl").write_text('set backend "vitis"\nset part "xcku115-flvb2104-2-i"\nset clock_period 5\n')
    design = read_project(tmp_path)
    assert (design.name, design.io_type, design.backend) == ("net", "io_stream", "Vitis")
    assert [(x.name, x.kind, x.inputs, x.output_shape) for x in design.layers] == [
        ("x", "Input", (), (6, 6, 2)),
        ("pad", "ZeroPadding2D", ("x",), (8, 8, 2)),
        ("conv1", "Conv2D", ("pad",), (6, 6, 4)),
        ("r1", "Activation", ("conv1",), (6, 6, 4)),
        ("mp", "Pooling2D", ("r1",), (3, 3, 4)),
    ]
    conv = design["conv1"]
    assert (conv.reuse_factor, conv.strategy) == (9, "resource")
    assert np.array_equal(conv.weights["weight"], conv.types["weight"].to_raw(values))
    assert str(conv.types["accum"]) == "fixed<64,34>"
    assert design["mp"].operation.largest


def test_a_folder_that_is_no_project(tmp_path):
    with pytest.raises(EstimateError, match=r"parameters\.h cannot be read"):
        read_project(tmp_path)


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        ("parameters.h", "n_out = N_LAYER_2", "n_out = N_NOWHERE", "lacks 'n_out'"),
        ("defines.h", "weight2_t", "other_t", "type 'weight2_t'"),
        ("weights/w2.txt", "0.5", "half", "is not a number"),
        ("weights/w2.txt", "0.5000000000, ", "", "has 11 weights; its configuration wants"),
    ],
)
def test_a_damaged_project_is_named(tmp_path, file, old, new, message):
    home = project(tmp_path) / "firmware"
    text = (home / file).read_text()
    assert old in text
    (home / file).write_text(text.replace(old, new, 1))
    with pytest.raises(EstimateError) as error:
        read_project(tmp_path)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("function", "unknown"), [("wavelet", True), ("h_quantize_5", False), ("h_fc1_relu_quantizer", False)]
)
def test_a_layer_that_no_model_prices_is_left_out_of_a_project(tmp_path, function, unknown):
    top = project(tmp_path) / "firmware" / "myproject.cpp"
    whole = fp.estimate(read_project(tmp_path))
    top.write_text(top.read_text().replace("nnet::relu<", f"nnet::{function}<"))
    made = fp.estimate(read_project(tmp_path))
    assert made.layers[1] == whole.layers[1]
    assert made.layers[2].at(ANALYTIC_SYNTH).unknown is unknown
    assert made.fits is (None if unknown else True)
    assert any(f"layer 'relu1' is a {function!r}, which no hardware model prices" in n for n in made.notes) is unknown


def test_the_command_says_what_it_left_out_of_a_project(tmp_path):
    top = project(tmp_path) / "firmware" / "myproject.cpp"
    top.write_text(top.read_text().replace("nnet::relu<", "nnet::wavelet<"))
    done = CliRunner().invoke(app, ["estimate", str(tmp_path)])
    assert done.exit_code == 0, done.output
    assert "cannot be judged against xc7z020" in done.output
    assert "left out, because the estimate has no model of them: relu1 (wavelet)" in done.output


def test_expressions():
    names = {"A": "4", "B": "A * 2 + 1", "LOOP": "LOOP"}
    assert evaluate("(A + B) * 2 - 1", names) == 25
    assert evaluate("DIV_ROUNDUP(B, A) + 7 / 2", names) == 6
    assert evaluate("-A + 007", names) == 3
    for bad in ("", "A +", "__import__('os')", "C", "1 << 3", "A / 0", "LOOP", "((((((((((", "1.5", "True", "(" * 9999):
        with pytest.raises(EstimateError):
            evaluate(bad, names)


def test_calls_and_types():
    calls, aliases = parse_calls("nnet::add<a_t, b_t, c_t, config8>(x1, x2, y); // sum\nauto& z = y;")
    assert calls[0].types == ("a_t", "b_t", "c_t", "config8")
    assert (calls[0].arguments, calls[0].name, aliases) == (("x1", "x2", "y"), "sum", {"z": "y"})
    assert split_arguments("ap_fixed<16,6>, 3*1") == ("ap_fixed<16,6>", "3*1")
    assert split_array("nnet::array<ap_fixed<16,6,AP_RND,AP_SAT,0>, N*2>", {"N": "3"}) == (
        "ap_fixed<16,6,AP_RND,AP_SAT,0>",
        6,
    )
