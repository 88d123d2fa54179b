"""HGQ2's networks in hardware: Verilog and C simulation give the bits of HGQ2."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fpgaprune as fp
from fpgaprune.quantise import import_hgq
from tests.quick import quick

pytest.importorskip("hgq")


def trained(kind: str) -> tuple[Any, np.ndarray]:
    """A small network of HGQ2's with bits that differ, and samples for it."""
    import keras
    from hgq.config import QuantizerConfig
    from hgq.layers import QConv2D, QDense

    keras.utils.set_random_seed(3)
    rng = np.random.default_rng(3)
    entry = keras.Input((6,) if kind == "dense" else (6, 6, 2), name="values")
    x = entry
    if kind == "image":
        by_channel = QuantizerConfig("kif", "datalane", heterogeneous_axis=(-1,), homogeneous_axis=None)
        x = QConv2D(3, 3, activation="relu", iq_conf=by_channel, name="conv")(x)
        x = keras.layers.MaxPooling2D(2, name="pool")(x)
        x = keras.layers.Flatten(name="flat")(x)
    else:
        x = QDense(5, activation="relu", name="first")(x)
    model = keras.Model(entry, QDense(3, name="last")(x))
    for layer in model.layers:
        if not hasattr(layer, "kq"):
            continue
        inner = layer.iq.quantizer
        inner._k.assign(rng.integers(0, 2, inner._k.shape))
        inner._i.assign(rng.integers(0, 3, inner._i.shape))
        inner._f.assign(rng.integers(-1, 4, inner._f.shape))
        layer.kq.quantizer._b.assign(rng.integers(0, 5, layer.kernel.shape))
        layer.kernel.assign(rng.normal(0, 1, layer.kernel.shape))
    return model, (rng.integers(-300, 300, (24, *entry.shape[1:])) / 64).astype(np.float32)


KINDS = [("dense", "io_parallel"), ("image", "io_stream")]


@pytest.mark.parametrize(("kind", "io_type"), quick(KINDS, product(["dense", "image"], ["io_parallel", "io_stream"])))
def test_verilog_of_an_imported_network_has_the_bits_of_hgq2(kind: str, io_type: str, tmp_path: Path) -> None:
    model, x = trained(kind)
    found = import_hgq(model)
    design = fp.make_design(found.model, fp.Target.of("xc7a35t", io_type=io_type))
    wanted = np.asarray(model(x, training=False))
    np.testing.assert_array_equal(fp.emulate(design, x), wanted)
    simulated = fp.to_verilog(design, tmp_path / "rtl").simulate(x)
    np.testing.assert_array_equal(simulated.output, wanted)


@pytest.mark.parametrize(("kind", "io_type"), quick(KINDS[:1], KINDS))
def test_the_hls_project_of_an_imported_network_has_the_bits_of_hgq2(kind: str, io_type: str, tmp_path: Path) -> None:
    model, x = trained(kind)
    target = fp.Target.of("xc7a35t", io_type=io_type)
    project = fp.to_hls(import_hgq(model).model, target, output_dir=tmp_path / "hls")
    np.testing.assert_array_equal(project.predict(x), np.asarray(model(x, training=False)))
