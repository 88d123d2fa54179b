"""hls4ml's graph is the design that it was made of, or is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import keras
import numpy as np
import pytest

import fpgaprune as fp
from fpgaprune.design import (
    Convolution,
    Dense,
    Design,
    Input,
    LayerSpec,
    Map,
    Merge,
    Pad,
    Quantise,
    Unknown,
    Window,
)
from fpgaprune.errors import HlsError
from fpgaprune.hls import HlsProject, layer_list, render
from fpgaprune.values import FixedType

pytest.importorskip("hls4ml")
layers = keras.layers
STREAM = fp.Target.of("xc7z020clg400-1", io_type="io_stream")
PARALLEL = fp.Target.of("xc7z020clg400-1", io_type="io_parallel")


def branched() -> keras.Model:
    """A network whose streams are copied, whose windows are padded, and whose own padding stays."""
    keras.utils.set_random_seed(3)
    image = keras.Input((5, 5, 2), name="images")
    padded = layers.ZeroPadding2D(1, name="around")(layers.Conv2D(2, 3, padding="same", name="first")(image))
    path = layers.Add(name="sum")([layers.Conv2D(2, 3, name="second")(padded), image])
    path = layers.Reshape((5, 10), name="other")(path)
    return keras.Model(image, layers.Dense(3, name="head")(layers.Flatten(name="flat")(path)))


def designed(target: fp.Target, model: keras.Model | None = None) -> Design:
    x = np.random.default_rng(2).uniform(-1, 1, (30, 5, 5, 2)).astype("float32")
    return fp.make_design(model or branched(), target, x)


def changed(design: Design, name: str, **fields: object) -> Design:
    return replace(design, layers=tuple(replace(la, **fields) if la.name == name else la for la in design.layers))


def test_what_hls4ml_adds_by_itself_is_not_in_the_list():
    design = designed(STREAM)
    found = layer_list.layer_list(design)
    names = [entry["name"] for entry in found.entries]
    assert names == ["images", "first", "around", "second", "sum", "other", "flat", "head"]
    assert {"clone_images", "zp2d_first", "repack_other"} <= {layer.name for layer in design.layers}
    first = found.entries[1]
    assert [first[f"pad_{side}"] for side in ("top", "bottom", "left", "right")] == [1, 1, 1, 1]
    assert (found.inputs, found.outputs) == (["images"], ["head"])


@pytest.mark.parametrize("target", [STREAM, PARALLEL], ids=lambda target: target.io_type)
def test_the_graph_is_the_design(target, tmp_path):
    design = designed(target)
    graph = render(design, target, tmp_path / "hls")
    assert {node.name for node in graph.get_layers()} == {layer.project_name for layer in design.layers}
    assert not (tmp_path / "hls").exists()


@pytest.mark.parametrize(
    ("name", "fields", "said"),
    [
        ("head", {"strategy": "resource", "reuse_factor": 7}, "with strategy latency; the design has resource"),
        ("sum", {"output_shape": (5, 5, 1)}, "output shape"),
        ("first", {"types": "accum"}, "type of accum"),
        ("first", {"weights": "weight"}, "other weight integers"),
        ("second", {"inputs": ("first",)}, "inputs"),
        (
            "second",
            {"operation": Convolution(Window((3, 3), pad=(0, 1, 0, 0)), partitions=25)},
            "pad_bottom 0; .* has 1",
        ),
        ("second", {"operation": Convolution(Window((3, 3)), partitions=5)}, "partitions 25; the design has 5"),
        ("sum", {"operation": Merge("subtract")}, "op add; the design has subtract"),
        ("flat", {"operation": Map("relu")}, "class Reshape; the design has Activation"),
    ],
)
def test_a_graph_that_differs_is_refused(name, fields, said, tmp_path, monkeypatch):
    """hls4ml's graph of one design is held against another, which differs in one thing."""
    design = designed(PARALLEL)
    layer = design[name]
    if "types" in fields:
        fields = {"types": {**layer.types, fields["types"]: FixedType(40, 20)}}
    if "weights" in fields:
        role = fields["weights"]
        fields = {"weights": {**layer.weights, role: layer.weights[role] ^ 1}}
    wanted = changed(design, name, **fields)
    monkeypatch.setattr("fpgaprune.hls.write_project.layer_list", lambda _: layer_list.layer_list(design))
    with pytest.raises(HlsError, match=said if "other" in said else f"layer '{name}'.*{said}") as error:
        render(wanted, PARALLEL, tmp_path / "hls")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("target", [STREAM, PARALLEL], ids=lambda target: target.io_type)
def test_a_graph_with_another_type_of_a_channel_is_refused(target, tmp_path, monkeypatch):
    kind = FixedType(8, 4)
    made, wanted = (
        Design(
            "network",
            (
                LayerSpec("x", (), (2, 2), {"result": kind}, operation=Input()),
                LayerSpec(
                    "q", ("x",), (2, 2), {"result": kind}, operation=Quantise(("fixed<5,2>", "fixed<4,2>"), places)
                ),
            ),
            ("q",),
            target.io_type,
            part=target.order_number,
        )
        for places in ((0, 1), (1, 0))
    )
    render(made, target, tmp_path / "hls")
    monkeypatch.setattr("fpgaprune.hls.write_project.layer_list", lambda _: layer_list.layer_list(made))
    with pytest.raises(HlsError, match=r"layer 'q' with types of channels others; the design has its own"):
        render(wanted, target, tmp_path / "hls")


def test_a_layer_that_hls4ml_leaves_out_is_refused_by_name(tmp_path):
    given = keras.Input((5, 5, 2), name="images")
    path = layers.Flatten(name="flat")(layers.Permute((2, 1, 3), name="turned")(given))
    model = keras.Model(given, layers.Dense(2, name="head")(path))
    with pytest.raises(HlsError, match=r"leaves out layer 'turned'.*io type, or write the design as Verilog"):
        render(designed(PARALLEL, model), PARALLEL, tmp_path / "hls")
    render(designed(STREAM, model), STREAM, tmp_path / "hls")


def test_a_layer_that_hls4ml_builds_wrongly_is_refused_by_name(tmp_path):
    given = keras.Input((6, 6, 2), name="images")
    path = layers.Flatten(name="flat")(layers.MaxPooling2D(3, 1, name="overlaps")(given))
    model = keras.Model(given, layers.Dense(2, name="head")(path))
    x = np.random.default_rng(2).uniform(-1, 1, (30, 6, 6, 2)).astype("float32")
    design = replace(fp.make_design(model, PARALLEL, x), io_type="io_stream")
    with pytest.raises(HlsError, match=r"layer 'overlaps' \(Pooling2D\): pooling .* has no template in io_stream"):
        render(design, STREAM, tmp_path / "hls")


def test_an_operation_without_a_layer_is_refused_by_name(tmp_path):
    design = changed(designed(PARALLEL), "head", operation=Unknown())
    with pytest.raises(HlsError, match=r"layer 'head' has operation Unknown.*Verilog"):
        render(design, PARALLEL, tmp_path / "hls")


def test_a_design_for_another_target_is_refused_and_nothing_is_written(tmp_path):
    for target, said in (
        (STREAM, "io_type io_parallel; the target has io_stream"),
        (replace(PARALLEL, clock_ns=7.0), "clock_ns 5.0; the target has 7.0"),
    ):
        with pytest.raises(HlsError, match=said):
            fp.to_hls(designed(PARALLEL), target, tmp_path / "hls")
    assert list(tmp_path.iterdir()) == []


def test_a_padding_of_the_model_stays_a_layer():
    design = designed(STREAM)
    assert isinstance(design["around"].operation, Pad)
    assert "around" in layer_list.layer_list(design).layers
    assert isinstance(layer_list.layer_list(design).layers["head"].operation, Dense)


def test_a_project_of_a_design_opens_with_its_advice(tmp_path: Path):
    design = designed(PARALLEL)
    project = fp.to_hls(design, PARALLEL, tmp_path / "hls")
    assert project.advice is not None
    assert HlsProject.open(tmp_path / "hls").design.to_json() == design.to_json()
