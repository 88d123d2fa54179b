"""Each rule on a graph of a few nodes: what it changes computes the same bits, and what it must leave it leaves."""

import numpy as np
import onnx
import onnxruntime
import pytest

from fpgaprune.export import RULES, rewrite, settle
from fpgaprune.files import IR_VERSION, Graph

RNG = np.random.default_rng(0)
HEAD = f'<ir_version: {IR_VERSION}, opset_import: ["" : 17]>\n'


def model(text, **constants):
    parsed = onnx.parser.parse_model(HEAD + text)
    for name, values in constants.items():
        parsed.graph.initializer.append(onnx.numpy_helper.from_array(np.asarray(values), name))
    return parsed


def run(made, x):
    return onnxruntime.InferenceSession(made.SerializeToString()).run(None, {"x": x})


def floats(*shape):
    """Small whole numbers, whose sums are exact in any order."""
    return RNG.integers(-4, 5, size=shape).astype("float32")


ROW = {"a": np.array([2]), "kernel": floats(3, 2, 1, 3)}
LINES = {
    "conv": model(
        """row (float[1,2,9] x) => (float[1,3,7] y) {
        u = Unsqueeze(x, a) c = Conv<kernel_shape=[1,3], strides=[1,1], pads=[0,0,0,0]>(u, kernel) s = Squeeze(c, a)
        y = Add(s, bias) }""",
        **ROW,
        bias=floats(1, 3, 1),
    ),
    "pool, activation, arithmetic": model(
        """row (float[1,2,9] x) => (float[1,2,4] y, float[1,2,8] z) {
        u = Unsqueeze(x, a) r = Relu(u) m = Mul(r, scale) p = MaxPool<kernel_shape=[1,2], strides=[1,2]>(m)
        q = MaxPool<kernel_shape=[1,2], strides=[1,1]>(m) y = Squeeze(p, a) z = Squeeze(q, a) }""",
        a=np.array([2]),
        scale=floats(1, 2, 1, 1),
    ),
    "transposed": model(
        """row (float[1,9,2] x) => (float[1,3,7] y) {
        u = Unsqueeze(x, b) t = Transpose<perm=[0,3,1,2]>(u)
        c = Conv<kernel_shape=[1,3], pads=[0,1,0,0], strides=[2,1]>(t, kernel)
        d = MaxPool<kernel_shape=[1,2]>(c) y = Squeeze(d, a) }""",
        **ROW,
        b=np.array([-3]),
    ),
}


@pytest.mark.parametrize("name", LINES)
def test_a_dummy_axis_goes_and_every_bit_stays(name):
    x = floats(1, 9, 2) if name == "transposed" else floats(1, 2, 9)
    done = rewrite(LINES[name])
    assert not {node.op_type for node in done.graph.node} & {"Unsqueeze", "Squeeze"}
    for before, after in zip(run(LINES[name], x), run(done, x), strict=True):
        assert before.tobytes() == after.tobytes()


KEPT = {
    "the axis leaves the graph": model(
        """row (float[1,2,9] x) => (float[1,2,1,9] r, float[1,2,9] y) {
        u = Unsqueeze(x, a) r = Relu(u) y = Squeeze(r, a) }""",
        a=np.array([2]),
    ),
    "a window of height 3": model(
        """row (float[1,2,9] x) => (float[1,3,9] y) {
        u = Unsqueeze(x, a) c = Conv<kernel_shape=[3,3], pads=[1,1,1,1]>(u, kernel) y = Squeeze(c, a) }""",
        a=np.array([2]),
        kernel=floats(3, 2, 3, 3),
    ),
    "another axis ends": model(
        """row (float[1,1,9] x) => (float[1,1,9] y) { u = Unsqueeze(x, a) r = Relu(u) y = Squeeze(r, b) }""",
        a=np.array([2]),
        b=np.array([1]),
    ),
    "a constant that widens it": model(
        """row (float[1,2,9] x) => (float[1,2,18] y) {
        u = Unsqueeze(x, a) m = Add(u, wide) y = Reshape(m, s) }""",
        a=np.array([2]),
        wide=floats(1, 1, 2, 1),
        s=np.array([1, 2, 18]),
    ),
    "a bias for each position": model(
        """row (float[1,2,9] x) => (float[1,3,7] y) { c = Conv<kernel_shape=[3]>(x, kernel) y = Add(c, bias) }""",
        kernel=floats(3, 2, 3),
        bias=floats(1, 3, 7),
    ),
    "a convolution that two read": model(
        """row (float[1,2,9] x) => (float[1,3,7] y, float[1,3,7] z) {
        c = Conv<kernel_shape=[3]>(x, kernel) y = Add(c, bias) z = Relu(c) }""",
        kernel=floats(3, 2, 3),
        bias=floats(1, 3, 1),
    ),
    "axes that come back in another order": model(
        """row (float[1,2,9] x) => (float[1,3,6] y) { m = Reshape(x, s) p = MatMul(m, kernel) y = Reshape(p, t) }""",
        s=np.array([2, 9]),
        t=np.array([1, 3, 6]),
        kernel=floats(9, 9),
    ),
}


@pytest.mark.parametrize("name", KEPT)
def test_what_a_rule_does_not_fit_stays(name):
    made = onnx.shape_inference.infer_shapes(KEPT[name])
    nodes = [node.op_type for node in made.graph.node]
    assert not any(rule(Graph(made.graph)) for rule in RULES)
    assert [node.op_type for node in made.graph.node] == nodes


def test_a_dense_layer_on_several_axes_is_one_product():
    made = model(
        """two (float[2,5,3] x) => (float[2,5,4] y) { m = Reshape(x, s) p = MatMul(m, kernel) y = Reshape(p, t) }""",
        s=np.array([10, 3]),
        t=np.array([2, 5, 4]),
        kernel=floats(3, 4),
    )
    x = floats(2, 5, 3)
    done = rewrite(made)
    assert [node.op_type for node in done.graph.node] == ["MatMul"]
    assert run(done, x)[0].tobytes() == run(made, x)[0].tobytes()


@pytest.mark.parametrize("shape", [(3, 1), (1, 3, 1)])
def test_a_sum_of_a_convolution_and_a_constant_is_its_bias(shape):
    made = model(
        """row (float[2,2,9] x) => (float[2,3,7] y) { c = Conv<kernel_shape=[3]>(x, kernel) y = Add(bias, c) }""",
        kernel=floats(3, 2, 3),
        bias=floats(*shape),
    )
    x, done = floats(2, 2, 9), rewrite(made)
    assert [(node.op_type, len(node.input)) for node in done.graph.node] == [("Conv", 3)]
    assert run(done, x)[0].tobytes() == run(made, x)[0].tobytes()


def test_names_do_not_depend_on_what_was_counted():
    def counted(first, second):
        made = model(
            f"""g (float[1,4] x) => (float[1,4] y__{first}) {{
            t__{first}__{second} = Add(x, c__{second}) u__{second} = Mul(t__{first}__{second}, c__{first})
            y__{first} = Add(u__{second}, keep__7) }}""",
            **{f"c__{first}": np.float32([2]), f"c__{second}": np.float32([2]), "keep__7": np.float32([1])},
        )
        settle(made, ["keep__7"])
        return made

    one, other = counted(1, 2), counted(38, 4)
    assert one.SerializeToString(deterministic=True) == other.SerializeToString(deterministic=True)
    assert [tensor.name for tensor in one.graph.initializer] == ["constant_1", "keep__7"]
    assert [value.name for value in one.graph.output] == ["output"]
    assert run(one, np.float32([[1, 2, 3, 4]]))[0].tolist() == [[7, 9, 11, 13]]
