"""The reader of adder trees beside trees whose function is known while they are written."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fpgaprune.certify import read_adder_weights
from fpgaprune.errors import FirmwareError


def function(body, inputs=2, outputs=1):
    return f"void dense_da_7(inp_t model_inp[{inputs}], out_t model_out[{outputs}]) {{\n{body}\n}}\n"


def read(expression, inputs=2):
    weights, biases = read_adder_weights(function(f"model_out[0] = {expression};", inputs), "dense_da_7")
    return [*weights[:, 0].tolist(), biases[0]]


# An expression as text, and the inputs' coefficients with the constant at the end.
LEAVES = st.sampled_from(
    [
        ("model_inp[0]", (1, 0, 0)),
        ("model_inp[1]", (0, 1, 0)),
        ("3", (0, 0, 3)),
        ("0.375", (0, 0, 0.375)),
        ("1.5e2", (0, 0, 150)),
        ("25E-2", (0, 0, 0.25)),
        ("5e+0", (0, 0, 5)),
        ("4.", (0, 0, 4)),
    ]
)


def _wrapped(children):
    def shifted(inner, by):
        return f"bit_shift<{by}>({inner[0]})", tuple(2.0**by * c for c in inner[1])

    def summed(first, sign, second):
        factor = 1 if sign == "+" else -1
        # What is subtracted stands in brackets: the minus is meant for all of it.
        text = f"{first[0]} {sign} ({second[0]})"
        return text, tuple(a + factor * b for a, b in zip(first[1], second[1], strict=True))

    return st.one_of(
        st.builds(shifted, children, st.integers(-6, 6)),
        st.builds(summed, children, st.sampled_from("+-"), children),
        st.builds(lambda inner: (f"-({inner[0]})", tuple(-c for c in inner[1])), children),
        st.builds(lambda inner: (f"ap_fixed<30,20>({inner[0]})", inner[1]), children),
        st.builds(lambda inner: (f"ap_ufixed<9, 3>( {inner[0]} )", inner[1]), children),
    )


@settings(derandomize=True, deadline=None, max_examples=60)
@given(st.recursive(LEAVES, _wrapped, max_leaves=8))
def test_an_expression_has_the_coefficients_that_it_was_written_with(expression):
    text, wanted = expression
    assert read(text) == list(wanted)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("model_inp[0] - model_inp[1] + 3", [1, -1, 3]),
        ("model_inp[0] - 1 - 2 - 4", [1, 0, -7]),
        ("-model_inp[0] - -model_inp[1]", [-1, 1, 0]),
        ("--model_inp[0]", [1, 0, 0]),
        ("-bit_shift<3>(model_inp[1]) + 1", [0, -8, 1]),
        ("  model_inp[1]  ", [0, 1, 0]),
    ],
)
def test_signs_bind_from_left_to_right(text, wanted):
    assert read(text) == wanted


@pytest.mark.parametrize(
    "text",
    [
        "model_inp[0] +",
        "model_inp[0] model_inp[1]",
        "model_inp[0] 3",
        "(model_inp[0]",
        "model_inp[0])",
        "(model_inp[0] model_inp[1])",
        "-",
        ")",
        "+ model_inp[0]",
        "bit_shift<2> model_inp[0]",
        "bit_shift<2>",
        "bit_shift<2>(",
        "bit_shift<2>(model_inp[0]",
        "bit_shift<2>)model_inp[0](",
        "ap_fixed<8,3>",
        "ap_fixed<8,3> model_inp[0]",
        "(3",
        "( )",
        "model_inp[2]",
        "v3",
        "model_inp[0] * 2",
    ],
)
def test_any_other_expression_is_refused_with_its_text(text):
    with pytest.raises(FirmwareError) as caught:
        read(text)
    assert str(caught.value) == f"dense_da_7: {text.strip()!r} is neither an addition nor a shift"


def test_the_first_output_that_is_never_set_is_named():
    text = function("model_out[0] = 1;\nmodel_out[2] = model_inp[1];", outputs=5)
    with pytest.raises(FirmwareError) as caught:
        read_adder_weights(text, "dense_da_7")
    assert str(caught.value) == "dense_da_7 never sets model_out[1]"


def test_comments_pragmas_and_empty_lines_are_passed_over_wherever_they_stand():
    body = "#pragma HLS INLINE\n\n// a note\nv0 = model_inp[0]; // v0 = 9\n\n    #pragma HLS X\nmodel_out[0] = v0 + 1;"
    weights, biases = read_adder_weights(function(body), "dense_da_7")
    assert weights.tolist() == [[1], [0]]
    assert biases.tolist() == [1]


def test_the_function_of_that_name_is_read_and_no_other():
    text = function("model_out[0] = 5;") + function("model_out[0] = 6;").replace("_7", "_71")
    assert read_adder_weights(text, "dense_da_7")[1].tolist() == [5]
    assert read_adder_weights(text, "dense_da_71")[1].tolist() == [6]
    with pytest.raises(FirmwareError, match="has no function 'dense_da_1'"):
        read_adder_weights(text, "dense_da_1")


def test_a_line_that_is_no_statement_is_refused():
    with pytest.raises(FirmwareError) as caught:
        read_adder_weights(function("return;\nmodel_out[0] = 1;"), "dense_da_7")
    assert str(caught.value) == "dense_da_7: 'return;' is neither an addition nor a shift"


def test_names_take_the_value_that_was_set_last():
    body = "v0 = model_inp[0];\nv0 = v0 + model_inp[1];\nmodel_out[0] = v0 - 2;"
    weights, biases = read_adder_weights(function(body), "dense_da_7")
    assert np.array_equal(weights, [[1], [1]])
    assert np.array_equal(biases, [-2])
