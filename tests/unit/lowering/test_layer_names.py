"""Layers of any name: the project has names of C++, the design and the certificate those of the model."""

import re
from dataclasses import replace

import keras
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from keras import layers

import fpgaprune as fp
from fpgaprune.design import Design
from fpgaprune.errors import ExportError
from fpgaprune.hls import HlsProject
from fpgaprune.lowering import PROJECT_WORDS, RESERVED, is_project_name, project_names
from fpgaprune.values import uncomputed_names

RNG = np.random.default_rng(0)
AWKWARD = ("conv-1", "conv.1", "my conv", "conv_1", "1st", "for", "input", "déjà", "<b>", "x" * 300)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.text(min_size=1, max_size=80), unique=True, max_size=5))
def test_names_are_identifiers_and_distinct_in_any_case(names):
    found = project_names(names, names[:1], "network")
    assert list(found) == names
    assert len({name.lower() for name in found.values()}) == len(names)
    for own in found.values():
        assert re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", own)
        assert own not in RESERVED
        assert len(own) < 100
    for name in names[:1]:
        assert found[name] not in PROJECT_WORDS | {"network"}


def test_a_name_that_can_stay_does_stay():
    wanted = {"conv-1": "conv_1_2", "conv_1": "conv_1", "conv.1": "conv_1_3"}
    assert project_names(wanted) == wanted
    assert project_names(["a", "zp2d_a", "zp2d_b"]) == {"a": "a", "zp2d_a": "layer_zp2d_a", "zp2d_b": "zp2d_b"}
    assert project_names(["network", "w2", "layer2_out", "x"], {"network", "w2", "layer2_out", "x"}, "network") == {
        "network": "network_layer",
        "w2": "w2_layer",
        "layer2_out": "layer2_out_layer",
        "x": "x",
    }


def chain(names):
    """A small convolution, then Dense layers, of these names; the same weights each time."""
    keras.utils.set_random_seed(0)
    image = keras.Input((4, 4, 2), name="in")
    out = layers.Conv2D(2, 3, padding="same", activation="relu", name=names[0])(image)
    out = layers.Flatten(name="flat")(out)
    for name in names[1:]:
        out = layers.Dense(3, name=name)(out)
    return keras.Model(image, out, name="chain")


def test_project_and_certificate_have_each_their_name_of_a_layer(tmp_path):
    model = chain(AWKWARD)
    kernels = {f"{name}/kernel": np.array(model.get_layer(name).kernel) for name in AWKWARD}
    for path, kernel in kernels.items():
        kernel[..., 1] = 0.0
        model.get_layer(path.removesuffix("/kernel")).kernel.assign(kernel)
    masks = fp.MaskSet({path: kernel != 0 for path, kernel in kernels.items()})
    target, x = fp.Target.of("xc7z020clg400-1"), RNG.normal(size=(4, 4, 4, 2)).astype("float32")
    project = fp.to_hls(model, target, x, tmp_path / "hls", layers={"my conv": {"weight_bits": 6}})
    design = project.design
    assert design["my conv"].types["weight"].width == 6
    assert design["1st"].sources == {"weight": "1st/kernel", "bias": "1st/bias"}
    link = fp.certify(project, masks).require().links[0]
    assert [(counts.layer, counts.path) for counts in link.layers] == [(name, f"{name}/kernel") for name in AWKWARD]
    # Names that are not distinct would be two typedefs of one name.
    defined = re.findall(r"typedef .*?(\S+);", (tmp_path / "hls/firmware/defines.h").read_text())
    assert len(defined) == len(set(defined))
    assert all(re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name) for name in defined)
    opened = HlsProject.open(tmp_path / "hls").design
    assert [layer.project_name for layer in opened.layers] == [layer.project_name for layer in design.layers]
    plain = chain([f"layer{number}" for number in range(len(AWKWARD))])
    plain.set_weights(model.get_weights())
    same = fp.make_design(plain, target, x, layers={"layer2": {"weight_bits": 6}})
    assert fp.emulate(same, x).tobytes() == fp.emulate(design, x).tobytes()


def test_names_that_this_package_adds_are_free_ones():
    x = keras.Input((6,), name="x")
    out = layers.Dense(3, activation="relu", name="a")(x)
    out = layers.ReLU(name="a_relu")(layers.Activation("tanh", name="bent")(out))
    design = fp.make_design(keras.Model(x, out), fp.Target.of("xc7z020clg400-1"), RNG.normal(size=(9, 6)))
    assert [layer.name for layer in design.layers] == ["x", "a", "a_relu_2", "bent", "a_relu"]


def test_what_hls4ml_adds_does_not_take_the_name_of_a_layer():
    x = keras.Input((4, 4, 2), name="x")
    out = layers.Conv2D(2, 3, padding="same", name="a")(x)
    out = layers.Conv2D(2, 3, padding="same", name="zp2d_a")(out)
    design = fp.make_design(keras.Model(x, out), fp.Target.of("xc7z020clg400-1"), RNG.normal(size=(5, 4, 4, 2)))
    kinds = {layer.name: layer.kind for layer in design.layers}
    assert kinds["zp2d_a"] == "Conv2D"
    assert list(kinds.values()).count("ZeroPadding2D") == 2


def test_the_name_in_the_project_travels_with_the_design(tmp_path):
    design = fp.make_design(chain(["a-b", "head"]), fp.Target.of("xc7z020clg400-1"), RNG.normal(size=(4, 4, 4, 2)))
    design.save(tmp_path / "design.json")
    assert Design.load(tmp_path / "design.json")["a-b"].project_name == "a_b"
    assert replace(design["a-b"], project_name="").project_name == "a-b"


def test_names_with_which_tensorflow_cannot_compute_are_one_line_for_onnx(tmp_path):
    model = chain(["my conv", "déjà"])
    assert [line.partition(" has ")[0] for line in uncomputed_names(model)] == ["layer 'my conv'", "layer 'déjà'"]
    assert uncomputed_names(chain(["conv-1", "conv.1", "1st", "_a"])) == []
    with pytest.raises(ExportError, match="layer 'my conv' has a name with which TensorFlow cannot compute: name it"):
        fp.export_onnx(model, tmp_path / "model.onnx")
    assert list(tmp_path.iterdir()) == []


def test_a_project_has_the_name_of_a_function():
    assert all(map(is_project_name, ("net", "Net_2", "a")))
    assert not any(map(is_project_name, ("auto", "main", "2net", "_net", "my net", "net\n", "", "déjà")))
