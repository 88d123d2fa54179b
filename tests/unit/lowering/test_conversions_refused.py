"""What a backend's templates would compute wrongly is refused by name; what was accepted wrongly before."""

from __future__ import annotations

import re
from dataclasses import replace

import keras
import numpy as np
import pytest
from keras import layers as kl

import fpgaprune as fp
from fpgaprune.backends import as_built, faults_of
from fpgaprune.design import Design
from fpgaprune.errors import DesignError, HlsError
from fpgaprune.hls import add_templates, layer_of
from fpgaprune.lowering import fold, make_design, outline, require_within_tables
from fpgaprune.values import FixedType

TYPE = FixedType(16, 6)


def of(shape, *layers):
    x = entry = keras.Input(shape, name="x")
    for layer in layers:
        x = layer(x)
    return keras.Model(entry, x)


def faults(model, backend, io_type="io_parallel", strategy="resource"):
    """What the backend cannot build of an untrained model."""
    target = fp.Target.of("xc7z020clg400-1", backend=backend, io_type=io_type, strategy=strategy)
    return faults_of(outline(fold(model), {}, target))


def merged(*shapes, by=kl.Add):
    entries = [keras.Input(shape) for shape in shapes]
    return keras.Model(entries, by(name="odd")(entries))


@pytest.mark.parametrize(
    ("backend", "io_type", "model", "message"),
    [
        (
            "Vitis",
            "io_stream",
            lambda: merged((4, 4, 3), (1, 1, 3)),
            "only the templates of Vitis and Vivado for",
        ),
        ("oneAPI", "io_parallel", lambda: merged((5, 3), (1, 3)), "only the templates of Vitis and Vivado for"),
        ("Catapult", "io_parallel", lambda: merged((5, 3), (3,)), "only the templates of Vitis and Vivado for"),
        ("oneAPI", "io_stream", lambda: of((4,), kl.ReLU(6.0, name="odd")), "no template of relu6 in io_stream"),
        ("oneAPI", "io_stream", lambda: of((4,), kl.Activation("relu6", name="odd")), "no template of relu6 in io_s"),
        ("oneAPI", "io_parallel", lambda: of((2, 4), kl.Softmax(name="odd")), "computes over all axes"),
        ("Vivado", "io_stream", lambda: of((2, 4), kl.Flatten(), kl.Softmax(name="odd")), "for each packet alone"),
        ("oneAPI", "io_stream", lambda: of((2, 4), kl.Reshape((8,)), kl.Softmax(name="odd")), "for each packet alone"),
        ("Catapult", "io_stream", lambda: merged((4,), (4,), by=kl.Concatenate), "read each of the two"),
        ("oneAPI", "io_stream", lambda: merged((4,), (2,), by=kl.Concatenate), "read each of the two"),
        ("Catapult", "io_parallel", lambda: of((4, 4, 1), kl.Cropping2D(name="odd")), "leaves the output unset"),
        ("oneAPI", "io_stream", lambda: of((4, 1), kl.Cropping1D(name="odd")), "leaves the output unset"),
        ("oneAPI", "io_stream", lambda: of((4, 1), kl.GlobalAveragePooling1D(name="odd")), "where they overflow"),
        ("Catapult", "io_parallel", lambda: merged((4,), (4,), by=kl.Average), "cannot hold one half"),
        ("Catapult", "io_stream", lambda: merged((4,), (4,), by=kl.Maximum), "does not compile: choose io_parallel"),
        ("Catapult", "io_stream", lambda: of((4, 2), kl.Permute((2, 1), name="odd")), "does not compile: choose io_p"),
        ("Catapult", "io_stream", lambda: of((4, 2), kl.DepthwiseConv1D(2, name="odd")), "choose strategy 'latency'"),
        ("Vitis", "io_parallel", lambda: of((4, 2), kl.DepthwiseConv1D(2, name="odd")), "'latency', or io_stream"),
        ("Vitis", "io_stream", lambda: of((4, 4, 1), kl.Conv2D(2, (1, 2), 2, name="odd")), "ignores that stride"),
        ("Vitis", "io_stream", lambda: of((4, 2), kl.MaxPooling1D(3, 1, name="odd")), "other than the pool size"),
        (
            "Catapult",
            "io_parallel",
            lambda: of((4, 2), kl.GRU(2, name="odd")),
            "cannot choose the types for its templates",
        ),
        ("Libero", "io_parallel", lambda: of((4,), kl.LeakyReLU(name="odd")), "templates for Dense layers of vectors"),
        ("Libero", "io_parallel", lambda: of((4,), kl.ReLU(threshold=1.0, name="odd")), "and leaves out other layers"),
        ("Libero", "io_parallel", lambda: of((4,), kl.Softmax(name="odd")), "and leaves out other layers"),
        ("Libero", "io_parallel", lambda: of((4, 2), kl.Dense(2, name="odd")), "and leaves out other layers"),
    ],
)
def test_a_layer_that_templates_compute_wrongly_is_named(backend, io_type, model, message):
    (fault,) = faults(model(), backend, io_type)
    assert re.match(f"layer 'odd'.*{message}", fault)


@pytest.mark.parametrize(
    ("backend", "io_type", "model"),
    [
        ("Vitis", "io_parallel", lambda: merged((4, 4, 3), (1, 1, 3))),
        ("Vitis", "io_stream", lambda: of((4,), kl.ReLU(6.0))),
        ("Vivado", "io_parallel", lambda: of((2, 4), kl.Flatten(), kl.Softmax())),
        ("oneAPI", "io_stream", lambda: of((2, 4), kl.Softmax())),
        ("oneAPI", "io_stream", lambda: of((2, 4), kl.Flatten(), kl.Dense(3, activation="softmax"))),
        ("Catapult", "io_parallel", lambda: merged((4,), (4,), by=kl.Concatenate)),
        ("Catapult", "io_stream", lambda: merged((3, 4), (3, 4), by=kl.Concatenate)),
        ("oneAPI", "io_stream", lambda: merged((4,), (4,), by=kl.Concatenate)),
    ],
)
def test_what_templates_compute_goes_on(backend, io_type, model):
    assert faults(model(), backend, io_type) == []


@pytest.mark.parametrize("backend", ["Catapult", "oneAPI"])
def test_a_table_of_our_own_needs_the_templates_of_vitis_or_vivado(backend):
    model = of((4,), kl.Activation("gelu", name="odd"))
    (fault,) = faults(model, backend)
    assert re.match(f"layer 'odd' .*{backend} has no template of gelu.*choose backend 'Vitis' or", fault)
    assert faults(model, "Vitis", "io_stream") == []


def test_tables_of_one_function_in_two_sizes_are_refused(tmp_path):
    types = {"result": FixedType(8, 4), "table": FixedType(18, 8)}
    layers = [layer_of("x", "Input", (), (4,), types)] + [
        layer_of(f"g{size}", "Activation", ("x",), (4,), types, attributes={"activation": "gelu", "table_size": size})
        for size in (512, 1024)
    ]
    header = tmp_path / "firmware" / "nnet_utils" / "nnet_activation_stream.h"
    header.parent.mkdir(parents=True)
    header.write_text("namespace nnet {\n} // namespace nnet\n")
    with pytest.raises(HlsError, match="tables of gelu of 512, 1024 entries, and a project has one"):
        add_templates(tmp_path, as_built(Design("net", tuple(layers), ("g512", "g1024"))))
    add_templates(tmp_path, as_built(Design("net", tuple(layers[:2]), ("g512",))))
    assert "table_t table[512] = {-0.0, -0.00" in header.read_text()


def test_a_function_that_goes_on_where_its_table_ends_is_refused():
    model = of((4,), kl.Activation("softplus", name="odd"))
    require_within_tables(model, {"x": np.array([[-90.0, 8.01]])})
    with pytest.raises(HlsError, match=r"'odd' is a softplus that reads numbers up to 9; .* ends at 8, .* off by 1:"):
        require_within_tables(model, {"x": np.array([[-90.0, 9.0]])})
    # Softsign is level where it is wide, on both sides.
    with pytest.raises(HlsError, match="is a softsign that reads numbers up to 20"):
        require_within_tables(of((4,), kl.Activation("softsign")), {"x": np.array([[-20.0, 0.0]])})
    require_within_tables(of((4,), kl.Activation("sigmoid")), {"x": np.array([[-90.0, 90.0]])})


def merging(backend: str, io_type: str) -> Design:
    layers = (
        layer_of("a", "Input", (), (2, 3), {"result": TYPE}),
        layer_of("b", "Input", (), (3,), {"result": TYPE}),
        layer_of("sum", "Merge", ("a", "b"), (2, 3), {"result": TYPE}, attributes={"op": "add"}),
    )
    return as_built(Design("net", layers, ("sum",), io_type=io_type, backend=backend))


def test_the_emulator_spreads_a_merge_only_where_the_template_does():
    x = [np.ones((1, 2, 3)), np.arange(3.0).reshape(1, 3)]
    assert fp.emulate(merging("Vitis", "io_parallel"), x).tolist() == [[[1, 2, 3], [1, 2, 3]]]
    for backend, io_type in (("Vitis", "io_stream"), ("Catapult", "io_parallel")):
        with pytest.raises(DesignError, match="reads past the end of the shorter input"):
            fp.emulate(merging(backend, io_type), x)


def test_the_emulator_joins_no_vectors_that_the_template_for_catapult_mixes_up():
    layers = (
        *(layer_of(name, "Input", (), (2,), {"result": TYPE}) for name in "ab"),
        layer_of("both", "Concatenate", ("a", "b"), (4,), {"result": TYPE}, attributes={"axis": 1}),
    )
    x = [np.ones((1, 2)), np.zeros((1, 2))]
    made = as_built(Design("net", layers, ("both",), io_type="io_stream", backend="Vitis"))
    assert fp.emulate(made, x).tolist() == [[1, 1, 0, 0]]
    with pytest.raises(DesignError, match="does not read each of the two vectors to its end"):
        fp.emulate(as_built(replace(made, backend="Catapult")), x)


def test_a_type_that_is_given_for_a_table_reaches_the_hardware():
    model = of((4,), kl.Dense(3, name="fc"), kl.Activation("tanh", name="bend"))
    x = np.linspace(-1, 1, 40, dtype=np.float32).reshape(10, 4)
    target = fp.Target.of("xc7z020clg400-1")
    made = make_design(model, target, x, layers={"bend": {"table": "fixed<6,2>"}})
    assert made["bend"].types["table"] == FixedType(6, 2)


@pytest.mark.parametrize(("backend", "stream"), [("Vitis", "hls::stream"), ("Catapult", "ac_channel")])
def test_a_project_for_streams_gets_a_template_of_relu6_once(backend, stream, tmp_path):
    header = tmp_path / "firmware" / "nnet_utils" / "nnet_activation_stream.h"
    header.parent.mkdir(parents=True)
    header.write_text("namespace nnet {\n} // namespace nnet\n\n#endif\n")
    layers = (
        layer_of("x", "Input", (), (3,), {"result": TYPE}),
        layer_of("six", "Activation", ("x",), (3,), {"result": TYPE}, attributes={"activation": "relu6"}),
    )
    design = as_built(Design("net", layers, ("six",), io_type="io_stream", backend=backend))
    add_templates(tmp_path, replace(design, io_type="io_parallel"))
    assert "relu6" not in header.read_text()
    add_templates(tmp_path, design)
    add_templates(tmp_path, design)
    text = header.read_text()
    assert text.count(f"void relu6({stream}<data_T> &data, {stream}<res_T> &res) {{") == 1
    assert text.endswith("} // namespace nnet\n\n#endif\n")
    assert fp.emulate(design, np.array([[-1.0, 3.5, 7.0]])).tolist() == [[0, 3.5, 6]]
    header.write_text("")
    with pytest.raises(HlsError, match="is not the one of hls4ml"):
        add_templates(tmp_path, design)
