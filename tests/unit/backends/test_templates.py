"""How a layer is computed follows from its operation once `as_built` has put there what backend and io type change."""

import numpy as np
import pytest

from fpgaprune import design as op
from fpgaprune.backends import as_built
from fpgaprune.design import Design
from fpgaprune.emulate import emulate
from fpgaprune.errors import DesignError, UnsupportedLayerError
from fpgaprune.values import FixedType

from ..emulate.designs import design, layer

X = layer("x", "Input", None, (2,))
IMAGE = layer("x", "Input", None, (4, 4, 2))


def built(one, io_type="io_parallel", backend="Vitis", source=X):
    """The layer `one` as it is built."""
    return as_built(Design("net", (source, one), (one.name,), io_type, backend))[one.name]


def product(strategy="latency", kind="Dense", **more):
    return layer("fc", kind, "x", (2,), strategy=strategy, **more)


@pytest.mark.parametrize(
    ("backend", "strategy", "order"),
    [
        ("Vitis", "latency", "in_order"),
        ("Vivado", "resource", "by_reuse"),
        ("Vitis", "resource_unrolled", "unknown"),
        ("Vitis", "distributed_arithmetic", "unknown"),
        ("Catapult", "latency", "unknown"),
    ],
)
def test_the_order_of_addition_is_that_of_the_backend_and_the_strategy(backend, strategy, order):
    assert built(product(strategy), backend=backend).operation == op.Dense(order)


@pytest.mark.parametrize(
    ("io_type", "backend", "first"),
    [("io_parallel", "Vitis", False), ("io_stream", "Vivado", True), ("io_stream", "Catapult", True)],
)
def test_what_a_pooling_assigns_first_is_that_of_the_stream(io_type, backend, first):
    pool = layer("p", "GlobalPooling2D", "x", (2,), attributes={"pool_op": "Max"})
    assert built(pool, io_type, backend, IMAGE).operation == op.Pooling(None, True, assigns_first=first)


def test_selu_has_a_constant_and_an_index_of_its_own_in_parallel():
    selu = layer("s", "Activation", "x", (2,), attributes={"activation": "selu"})
    own = op.LookUp("selu", 1024, scale_type=FixedType(16, 1, signed=False), signed_index=True)
    assert built(selu).operation == own
    assert built(selu, "io_stream").operation == op.LookUp("selu", 1024)


def test_a_design_that_is_built_twice_is_the_same():
    made = design(X, product("resource"), io_type="io_stream")
    assert as_built(made).to_json() == made.to_json()


def test_what_nobody_knows_is_said_before_what_is_wrong():
    """A project with a fault is refused; one with a layer that is not known may be right, and is made."""
    pool = {"pool_op": "Max", "pool_height": 2, "pool_width": 2, "stride_height": 1, "stride_width": 1}
    wrong = layer("p", "Pooling2D", "x", (3, 3, 2), types={"accum": FixedType(8, 4)}, attributes=pool)
    one = layer("r", "Activation", "p", (3, 3, 2), attributes={"activation": "hard_tanh"})
    with pytest.raises(DesignError, match=r"layer 'p' \(Pooling2D\): pooling with padding, or with strides other"):
        emulate(design(IMAGE, wrong, io_type="io_stream"), np.zeros((1, 4, 4, 2)))
    with pytest.raises(UnsupportedLayerError, match="'hard_tanh' has no emulation"):
        emulate(design(IMAGE, wrong, one, io_type="io_stream"), np.zeros((1, 4, 4, 2)))


def test_a_softmax_of_catapult_is_refused():
    softmax = layer("s", "Softmax", "x", (2,), attributes={"implementation": "stable"})
    wanted = r"layer 's' \(Softmax\): it has no emulation for backend Catapult: emulated are Input, Dense"
    with pytest.raises(UnsupportedLayerError, match=wanted):
        emulate(design(X, softmax, backend="Catapult"), np.zeros((1, 2)))


def test_a_layer_that_is_no_softmax_may_have_any_implementation():
    relu = layer("r", "Activation", "x", (2,), attributes={"activation": "relu", "implementation": "linebuffer"})
    assert emulate(design(X, relu, backend="Catapult"), [[1.5, -1.5]]).tolist() == [[1.5, 0.0]]
