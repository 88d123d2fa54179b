"""Design: saved and loaded whole; malformed ones refused."""

import json
from typing import get_args

import numpy as np
import pytest

from fpgaprune import design as op
from fpgaprune.design import Design, LayerSpec, LookUp, Pooling, Window, operation_to_json, read_operation
from fpgaprune.errors import DesignError
from fpgaprune.hls import layer_of
from fpgaprune.values import FixedType

KIND = FixedType(8, 2, True, "RND", "SAT")


def design(seed=0):
    raw = np.random.default_rng(seed).integers(-128, 128, (4, 3))
    return Design(
        "net",
        (
            layer_of("x", "Input", (), (4,), {"result": KIND}),
            layer_of(
                "fc",
                "Dense",
                ("x",),
                (3,),
                {"weight": KIND, "result": FixedType(16, 6)},
                {"weight": raw},
                {"weight": "fc/kernel"},
                {"n_in": 4, "n_out": 3},
                2,
                "latency",
            ),
            LayerSpec("pool", ("x",), (4,), {"result": KIND}, operation=Pooling(Window((2, 2)), True)),
            LayerSpec("look", ("fc",), (3,), {"result": KIND}, operation=LookUp("tanh", 1024)),
        ),
        ("look",),
        part="xc7z020",
    )


def test_round_trip_is_exact_and_reproducible(tmp_path):
    original = design()
    original.save(tmp_path / "a.json")
    loaded = Design.load(tmp_path / "a.json")
    assert loaded.to_json() == original.to_json()
    assert loaded["fc"].types == original["fc"].types
    assert [layer.operation for layer in loaded.layers] == [layer.operation for layer in original.layers]
    assert np.array_equal(loaded["fc"].weights["weight"], original["fc"].weights["weight"])
    loaded.save(tmp_path / "b.json")
    for suffix in (".json", ".npz"):
        assert (tmp_path / f"a{suffix}").read_bytes() == (tmp_path / f"b{suffix}").read_bytes()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.update(format=99), "not a design of format 5"),
        (lambda d: d.update(format=3), "not a design of format 5; make it anew"),
        (
            lambda d: d["layers"][1]["operation"].update(type="Denser"),
            "an operation is 'Denser'; wanted one of Input, ",
        ),
        (lambda d: d["layers"][1]["operation"].update(units=4), "a Dense has .*'units'.*; wanted order"),
        (lambda d: d["layers"][1]["operation"].update(order="any"), "Dense.order is 'any', which is no such setting"),
        (lambda d: d["layers"][1].update(strategy=7), "strategy is 7; wanted a strategy, or null"),
        (lambda d: d["layers"][2]["operation"].update(largest=1), "Pooling.largest is 1, which is no such setting"),
        (lambda d: d["layers"][2]["operation"].pop("window"), "a Pooling has .*; wanted window, largest, "),
        (lambda d: d["layers"][2]["operation"]["window"].update(size=[2]), r"Window.size is \[2\], which is no such"),
        (lambda d: d["layers"][2]["operation"]["window"].update(size=[2, 2.5]), "Window.size is 2.5, which is no such"),
        (lambda d: d["layers"][3]["operation"].update(table_size=0), "LookUp.table_size is 0, which is no such"),
        (lambda d: d["layers"][3]["operation"].update(parameter=1e300), r"LookUp.parameter is 1e\+300, which is no"),
        (lambda d: d.pop("layers"), "not a whole design: KeyError"),
        (lambda d: d["layers"][1].update(inputs=["y"]), "reads 'y', which no earlier layer makes"),
        (lambda d: d["layers"][1].update(name="x"), "two layers named 'x'|missing or malformed"),
        (lambda d: d["layers"][1]["types"].update(weight="fixed<200,6>"), "width is 200 bits"),
        (lambda d: d.update(io_type="io_wild"), "io_type 'io_wild'"),
        (lambda d: d.update(outputs=["z"]), "output 'z', which no layer makes"),
        (lambda d: d.update(clock_ns=0), "clock period of 0 ns"),
    ],
)
def test_malformed_designs_are_refused(tmp_path, change, message):
    path = design().save(tmp_path / "a.json")
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))
    with pytest.raises(DesignError, match=message):
        Design.load(path)


def test_missing_and_foreign_files_are_refused(tmp_path):
    with pytest.raises(DesignError, match="no design at"):
        Design.load(tmp_path / "a.json")
    design().save(tmp_path / "a.json")
    (tmp_path / "a.npz").unlink()
    with pytest.raises(DesignError, match=r"a\.npz is missing"):
        Design.load(tmp_path / "a.json")
    (tmp_path / "b.json").write_text("[1]")
    (tmp_path / "b.npz").write_bytes(b"")
    with pytest.raises(DesignError, match="not a design"):
        Design.load(tmp_path / "b.json")


EVERY = (
    op.Input(),
    op.Dense(),
    op.Convolution(Window((3, 2), (1, 2), (0, 1, 2, 3)), depthwise=True, pointwise=False, partitions=4, encoded=True),
    op.Convolution(Window((1, 1)), pointwise=True),
    op.Pooling(None, largest=False, encoded=True),
    op.Recurrent("gru", 4, "tanh", "sigmoid", True, 1024),
    op.Scale(),
    op.Map("leaky_relu", 0.25),
    op.LookUp("elu", 512, 0.25),
    op.LookUp("selu", 512, None, FixedType(16, 1, signed=False), signed_index=True),
    op.Quantise(("fixed<5,2>", "0"), (0, 1, 0)),
    op.Softmax(1024, 2048, 4096),
    op.Merge("add"),
    op.Concatenate(2),
    op.Reshape(repacks=True),
    op.Copy(),
    op.Transpose((1, 0, 2)),
    op.Reverse(),
    op.Pad((1, 0, 2, 3)),
    op.Crop((0, 0, 1, 1)),
    op.Resize(),
    op.Unknown(),
)


@pytest.mark.parametrize("operation", EVERY, ids=lambda operation: type(operation).__name__)
def test_every_operation_is_read_as_it_was_written(operation):
    assert read_operation(json.loads(json.dumps(operation_to_json(operation)))) == operation
    assert {type(each) for each in EVERY} == set(get_args(op.Operation))


def test_unknown_layer_is_named():
    with pytest.raises(DesignError, match="has no layer 'conv'; it has x, fc, pool, look"):
        design()["conv"]
