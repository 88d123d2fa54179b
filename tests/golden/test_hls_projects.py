"""Whole projects against the ones that were looked at: every generated file, character by character.

`FPGAPRUNE_GOLDEN=write python -m pytest tests/golden` writes them anew; read the difference before it is committed.
What hls4ml copies (its templates) is not part of a golden project, nor are binary files.
"""

import os
from dataclasses import replace
from pathlib import Path

import keras
import numpy as np
import pytest
from keras import layers

import fpgaprune as fp
from fpgaprune.values import named_weights

HERE = Path(__file__).parent / "hls"
COPIED = ("nnet_utils", "ap_types", "ac_types", "ac_math", "ac_simutils")
# What hls4ml generates into the folder of its templates.
GENERATED = ("nnet_code_gen.h",)


def mlp():
    return keras.Sequential(
        [
            keras.Input((4,), name="samples"),
            layers.Dense(3, activation="relu", name="first"),
            layers.Dense(2, name="head"),
        ],
        name="mlp",
    )


def cnn():
    return keras.Sequential(
        [
            keras.Input((5, 5, 1), name="images"),
            layers.Conv2D(2, 3, activation="relu", name="first"),
            layers.DepthwiseConv2D(2, name="second"),
            layers.Flatten(name="flat"),
            layers.Dense(2, name="head"),
        ],
        name="cnn",
    )


PROJECTS = {
    "mlp_vitis_parallel_latency": (mlp, "Vitis", "io_parallel", "latency", 1),
    "mlp_vitis_parallel_distributed": (mlp, "Vitis", "io_parallel", "distributed_arithmetic", 1),
    "cnn_vivado_stream_latency": (cnn, "Vivado", "io_stream", "latency", 1),
    "mlp_libero_parallel_latency": (mlp, "Libero", "io_parallel", "latency", 1),
}


def write(name, folder):
    build, backend, io_type, strategy, reuse = PROJECTS[name]
    model = build()
    for number, variable in enumerate(model.weights):
        # Sixteenths, which every machine holds and prints alike; each third is zero.
        values = (np.arange(variable.numpy().size) * 7 + number) % 29 - 14
        values[::3] = 0
        variable.assign(values.reshape(variable.shape) / 16)
    target = fp.Target.of("xc7z020clg400-1", io_type=io_type, strategy=strategy, reuse_factor=reuse)
    project = fp.to_hls(model, replace(target, backend=backend), None, folder, "fixed<12,4>", name)
    kernels = {path: weight.numpy() for path, weight in named_weights(model).items() if path.endswith("kernel")}
    return project, fp.MaskSet({path: kernel != 0 for path, kernel in kernels.items()})


def as_text(folder):
    """Every generated text file below `folder`, one after another."""
    parts = []
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        place = path.relative_to(folder)
        copied = set(place.parts) & set(COPIED) and path.name not in GENERATED
        if copied or path.suffix in (".keras", ".npz") or "tb_data" in place.parts:
            continue
        parts.append(f"==== {place}\n{path.read_text()}")
    return "\n".join(parts)


@pytest.mark.filterwarnings("ignore::fpgaprune.hls.strategy_advice.StrategyWarning")
@pytest.mark.parametrize("name", PROJECTS)
def test_a_project_is_the_one_that_was_looked_at(name, tmp_path, monkeypatch):
    if "distributed" in name:
        pytest.importorskip("da4ml", reason="da4ml, which makes the adders, is not installed")
    project, masks = write(name, tmp_path / "first")
    assert fp.certify(project, masks).require().links[0].locked == masks.locked_count > 0
    text = as_text(tmp_path / "first")
    golden = HERE / f"{name}.txt"
    if os.environ.get("FPGAPRUNE_GOLDEN") == "write":
        golden.write_text(text)
    assert str(tmp_path) not in text
    assert text.splitlines() == golden.read_text().splitlines()
    # A second write differs in no byte, those of binary files included, whatever stamp hls4ml draws.
    monkeypatch.setattr("uuid.uuid4", lambda: "00000000-0000-0000-0000-000012345678")
    write(name, tmp_path / "second")
    files = [sorted(p for p in (tmp_path / n).rglob("*") if p.is_file()) for n in ("first", "second")]
    assert [p.relative_to(tmp_path / "first") for p in files[0]] == [
        p.relative_to(tmp_path / "second") for p in files[1]
    ]
    assert [a.name for a, b in zip(*files, strict=True) if a.read_bytes() != b.read_bytes()] == []
