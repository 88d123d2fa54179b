"""Design: saved and loaded whole; malformed ones refused."""

import json

import numpy as np
import pytest

from fpgaprune.design import Design, LayerSpec
from fpgaprune.errors import DesignError
from fpgaprune.fixed import FixedType

KIND = FixedType(8, 2, True, "RND", "SAT")


def design(seed=0):
    raw = np.random.default_rng(seed).integers(-128, 128, (4, 3))
    return Design(
        "net",
        (
            LayerSpec("x", "Input", (), (4,), {"result": KIND}),
            LayerSpec(
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
        ),
        ("fc",),
        part="xc7z020",
    )


def test_round_trip_is_exact_and_reproducible(tmp_path):
    original = design()
    original.save(tmp_path / "a.json")
    loaded = Design.load(tmp_path / "a.json")
    assert loaded.to_json() == original.to_json()
    assert loaded["fc"].types == original["fc"].types
    assert np.array_equal(loaded["fc"].weights["weight"], original["fc"].weights["weight"])
    loaded.save(tmp_path / "b.json")
    for suffix in (".json", ".npz"):
        assert (tmp_path / f"a{suffix}").read_bytes() == (tmp_path / f"b{suffix}").read_bytes()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.update(format=99), "not a design of format 1"),
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


def test_unknown_layer_is_named():
    with pytest.raises(DesignError, match="has no layer 'conv'; it has x, fc"):
        design()["conv"]
