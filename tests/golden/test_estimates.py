"""Prices of designs and of single layers against the ones that were looked at: every quantity, every note.

`FPGAPRUNE_GOLDEN=write python -m pytest tests/golden/test_estimates.py` writes them anew; read the difference before it
is committed: a law or a coefficient that changed moves the figures that it is meant to move, and no others.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest

from fpgaprune.design import Design
from fpgaprune.errors import EstimateError
from fpgaprune.estimate import (
    DesignFeatures,
    LayerFeatures,
    Port,
    build,
    count_products,
    design_features,
    estimate,
    predict_row,
    row_features,
)
from fpgaprune.hls import layer_of
from fpgaprune.target import Target
from fpgaprune.values import FixedType

from ..unit.estimate.designs import T16, cnn, mlp
from ..unit.estimate.test_recurrent import design as recurrent

HERE = Path(__file__).parent / "estimate"
NARROW = FixedType(6, 2, rounding="RND", overflow="SAT")


def zoo(io_type: str, backend: str) -> Design:
    """Layers of the kinds that `cnn` and `mlp` lack, on maps of 6 x 5 x 3."""
    rng = np.random.default_rng(3)
    weight = FixedType(9, 2)
    layers = [layer_of("in", "Input", (), (6, 5, 3), {"result": T16})]

    def add(name, kind, shape, source=None, arrays=None, **attributes):
        roles = dict.fromkeys(arrays or {}, weight)
        more = {name: attributes.pop(name) for name in ("reuse_factor", "strategy") if name in attributes}
        sources = source or (layers[-1].name,)
        types = {"result": NARROW if len(layers) % 3 else T16, "accum": FixedType(20, 8), **roles}
        layers.append(layer_of(name, kind, sources, shape, types, arrays or {}, {}, attributes, **more))

    def raw(*shape):
        return np.where(rng.random(shape) < 0.3, 0, rng.integers(-255, 256, shape))

    add("deep", "DepthwiseConv2D", (6, 5, 3), None, {"weight": raw(3, 3, 3, 1), "bias": raw(3)}, in_width=7)
    add("clone", "Clone", (6, 5, 3))
    add("point", "PointwiseConv2D", (6, 5, 4), None, {"weight": raw(1, 1, 3, 4), "bias": raw(4)}, n_partitions=6)
    add("leaky", "ParametrizedActivation", (6, 5, 4), activation="leaky_relu")
    add("tanh", "Activation", (6, 5, 4), activation="tanh", table_size=512)
    add("linear", "Activation", (6, 5, 4), activation="linear")
    add("join", "Merge", (6, 5, 4), ("linear", "leaky"), op="add")
    add("times", "Merge", (6, 5, 4), ("join", "leaky"), op="multiply")
    add("both", "Concatenate", (6, 5, 8), ("times", "leaky"), axis=3)
    add("average", "Pooling2D", (3, 2, 8), pool_op="Average", pool_height=2, pool_width=2, in_width=5)
    add("bigger", "Resize", (6, 4, 8))
    add("turned", "Transpose", (8, 4, 6), perm=[2, 1, 0])
    add("global", "GlobalPooling2D", (6,), pool_op="Max")
    add("head", "Dense", (4,), None, {"weight": raw(6, 4), "bias": raw(4)}, strategy="latency", reuse_factor=3)
    return Design("zoo", tuple(layers), ("head",), io_type, backend, part="xcku115-flvb2104-2-i")


def designs() -> dict[str, Design]:
    made = {}
    for backend in ("Vivado", "Vitis"):
        for io_type in ("io_parallel", "io_stream"):
            made[f"zoo {backend} {io_type}"] = zoo(io_type, backend)
        made[f"gru {backend}"] = recurrent("GRU", io_type="io_stream", backend=backend, zeros=7)
        made[f"cnn {backend} latency"] = cnn("io_parallel", "latency", 4, backend=backend)
        made[f"mlp {backend}"] = mlp(1, "latency", 1, 0.5, backend, 12)
    for strategy in ("resource", "resource_unrolled"):
        made[f"cnn {strategy}"] = cnn("io_stream", strategy, 4)
        made[f"mlp {strategy}"] = mlp(4, strategy, 1, 0.9, "Vivado", 12)
        made[f"lstm {strategy}"] = recurrent("LSTM", strategy=strategy, reuse=2, backend="Vivado", zeros=60)
    wide = recurrent("GRU", io_type="io_parallel", backend="Vivado")
    layers = [replace(each, types=dict.fromkeys(each.types, FixedType(28, 8))) for each in wide.layers]
    made["gru of wide numbers"] = replace(wide, layers=tuple(layers))
    return {name: each if each.part else replace(each, part="xcvu13p-flga2577-2-e") for name, each in made.items()}


FAMILIES = {
    "dense": "Dense",
    "conv": "Conv2D",
    "depthwise": "DepthwiseConv2D",
    "scale": "BatchNormalization",
    "activation": "Activation",
    "softmax": "Softmax",
    "merge": "Merge",
    "pooling": "Pooling2D",
    "global_pooling": "GlobalPooling",
    "padding": "ZeroPadding2D",
    "resize": "Resize",
    "transpose": "Transpose",
    "clone": "Copy",
}
OPERATIONS = {
    "activation": ("relu", "leakyrelu", "linear", "sigmoid", "hardtanh", ""),
    "merge": ("add", "multiply", "maximum"),
    "pooling": ("max", "average"),
    "global_pooling": ("max", "average"),
}


def random_design(family: str, number: int) -> DesignFeatures:
    """One layer of a family between two activations, all else by chance."""
    rng = np.random.default_rng([list(FAMILIES).index(family), number])

    def one_of(*values):
        return values[int(rng.integers(len(values)))]

    def port():
        bits = one_of(2, 5, 8, 9, 10, 12, 16, 18, 19, 26, 27)
        return Port(bits, one_of(False, True), one_of(False, True), one_of(None, 1, bits // 2))

    channels_in, channels_out = one_of(1, 2, 3, 8, 20), one_of(1, 2, 5, 16)
    weighs = family in ("dense", "conv", "depthwise", "scale")
    if family in ("depthwise", "scale", "activation", "softmax", "pooling", "global_pooling", "padding", "clone"):
        channels_out = channels_in
    kernel = one_of((1, 1), (3, 3), (2, 2), (1, 5))
    positions = one_of(1, 7, 36, 200)
    n_out = channels_out
    n_in = {"scale": 1, "depthwise": kernel[0] * kernel[1]}.get(family, kernel[0] * kernel[1] * channels_in)
    bits = one_of(3, 6, 8, 12, 18)
    raw = rng.integers(-(1 << bits - 1), 1 << bits - 1, (n_in, n_out)) * (rng.random((n_in, n_out)) < 0.7)
    reuse = one_of(1, *(r for r in (2, 3, 4, 6) if n_in * n_out % r == 0))
    strategy = one_of("latency", "resource", "resource_unrolled") if weighs and family != "scale" else None
    layer = LayerFeatures(
        "it", FAMILIES[family], family, one_of(*OPERATIONS.get(family, ("",))), positions,
        1 if family == "global_pooling" else one_of(positions, max(positions // 4, 1)), channels_in, channels_out,
        kernel, one_of(1, 7, 14, 40), n_in if weighs else 0, n_out if weighs else 0, reuse, strategy, port(), port(),
        port(), bits, one_of(bits, max(bits - 2, 1)), count_products(raw) if weighs else None, one_of(256, 1024, 4096),
        one_of(12, 18), one_of(1, 2), one_of(1, 4), max(n_in * n_out // reuse - 2, 0) if strategy else None,
        one_of(False, True), one_of(None, 1, 16, 1030),
    )  # fmt: skip
    ends = [
        LayerFeatures(name, "Activation", "activation", "relu", positions, positions, channels, channels)
        for name, channels in (("first", channels_in), ("last", channels_out))
    ]
    clock = one_of(0.9, 2.5, 4.0, 5.0, 10.0, 25.0)
    io_type = one_of("io_parallel", "io_stream")
    return DesignFeatures(
        "d", (ends[0], layer, ends[1]), io_type == "io_stream", one_of("vivado", "vitis"), clock,
        clock * one_of(0.125, 0.27),
        one_of("xc7z020clg400-1", "xcu250-figd2104-2l-e", "xczu7ev-ffvc1156-2-e", "xcvu13p-flga2577-2-e", ""),
        io_type == "io_parallel" and one_of(False, True), one_of(None, None, "dsp", "fabric"),
        overlaps=one_of(False, True),
    )  # fmt: skip


def random_row(number: int) -> dict[str, object]:
    """A row of counts of one to four layers, of which each field is stated or left open by chance."""
    rng = np.random.default_rng([99, number])

    def one_of(*values):
        return values[int(rng.integers(len(values)))]

    def some(share=0.6, **fields):
        return {key: value for key, value in fields.items() if rng.random() < share}

    def port(first=None):
        bits = first or one_of(4, 6, 7, 8, 12, 14, 16, 20)
        integer = one_of(None, 1, 2, 6, -1)
        return {"W": bits, "I": integer, "str": one_of(f"ap_fixed<{bits},1>", f"ap_fixed<{bits},1,AP_RND,AP_SAT>")}

    layers, side, channels = [], one_of(4, 8, 20), one_of(1, 3, 8)
    for _ in range(int(rng.integers(1, 5))):
        kind = one_of("Conv2D", "Dense", "Activation", "Pooling", "BatchNorm", "Softmax", "Upsampling", "GlobalPooling",
                      "Lambda", "GRU")  # fmt: skip
        layer = {"class": kind, **some(0.7, **{key: port() for key in ("input_t", "output_t", "accum_t", "weight_t")})}
        shape = [side, side, channels]
        layer |= some(
            0.6,
            name=f"layer{len(layers)}",
            **{"in": shape},
            fifo_depth={"first": one_of(2, 9), "data": one_of(4, 16, 36)},
        )
        if kind in ("Conv2D", "Pooling", "Upsampling", "GlobalPooling"):
            side = max(side // 2, 1) if kind == "Pooling" else side
            out = one_of(2, 5, 8) if kind == "Conv2D" else channels
            layer |= some(0.8, kernel=[3, 3], out=[side, side, out], pool_op="Max", implementation="encoded")
            layer |= some(0.5, mult_n_in=9 * channels, mult_n_out=out, n_partitions=one_of(1, 4), n_filt=out)
            channels = out
        if kind in ("Dense", "Lambda"):
            n_in, n_out = one_of(side * side * channels, 16), one_of(3, 8, 10)
            layer |= {"n_in": n_in, "n_out": n_out}
            side, channels = 1, n_out
        size = (layer.get("n_in") or layer.get("mult_n_in") or 1) * (layer.get("n_out") or layer.get("mult_n_out") or 1)
        kinds = rng.multinomial(size, [0.3, 0.2, 0.3, 0.2])
        counts = {"n": size, "zeros_q": int(kinds[0]), "pow2_q": int(kinds[1]), "max_abs_bits": one_of(None, 3, 7)}
        layer |= some(0.6, weights={one_of("w2", "s3"): counts | some(0.8, n_csd_ge3=int(kinds[2]))})
        layer |= some(
            0.3, n_nonzero=max(size - int(kinds[0]), 1), reuse_factor_requested=4, n_elem=side * side * channels
        )
        layer |= some(0.5, reuse_factor=one_of(1, 2, 3, 5, 8), strategy=one_of("latency", "resource"))
        layer |= some(
            0.5, activation=one_of("relu", "quantized_tanh", "hard_sigmoid"), table_size=512, table_t=port(18)
        )
        layers.append(layer)
    row = {
        "id": f"row{number}",
        "tool": one_of("Vivado HLS 2019.2", "Vitis HLS 2023.2"),
        "clock_ns": one_of(2.5, 5, 10),
    }
    row |= some(0.6, strategy=one_of("latency", "resource"), io_type=one_of("io_stream", "io_parallel", "io_stream?"))
    row |= some(0.4, clock_uncertainty_ns=one_of(0.5, 2.25, 4.5, 9), top_pragma=one_of("PIPELINE", "DATAFLOW"))
    row |= some(0.5, mul_impl_forced=one_of("dsp", "fabric"), part=one_of("xc7z020clg400-1", "XCU250"))
    return row | {"layers": layers}


def read(row: dict[str, object]) -> dict[str, object]:
    """What a row is taken for, or why it is refused."""
    try:
        features = row_features(row)
    except EstimateError as error:
        return {"refused": str(error)}
    design = {name: each for name, each in asdict(replace(features, layers=())).items() if each}
    return plain(design | {"layers": [replace_defaults(layer) for layer in features.layers], "made": predict_row(row)})


def plain(value):
    """Numbers with the twelve digits that every machine agrees on."""
    if isinstance(value, dict):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, float | np.floating):
        return float(f"{value:.12g}")
    return int(value) if isinstance(value, np.integer) else value


def quantities(features: DesignFeatures) -> dict[str, object]:
    parts = build(features)
    made = [{name: each for name, each in asdict(hardware).items() if each} for hardware in parts.layers]
    return plain(
        {"layers": made, "between": asdict(parts.between), "cycles": [parts.latency_cycles, parts.interval_cycles]}
    )


def priced(design: Design) -> dict[str, object]:
    result = estimate(design).to_json()
    wider = Target.of("xcvu13p", clock_ns=4.0, io_type="io_stream")
    features = [replace_defaults(layer) for layer in design_features(design).layers]
    other = estimate(design, wider)
    return plain(
        {
            "features": features,
            "quantities": quantities(design_features(design)),
            "estimate": {key: each for key, each in result.items() if key not in ("target", "design", "layers")},
            "other": [other.latency_cycles, other.interval_cycles, other.fits, other.notes],
        }
    )


def replace_defaults(layer: LayerFeatures) -> dict[str, object]:
    """What of a layer's features is not as it is by default."""
    nothing = asdict(LayerFeatures("", "", ""))
    return {name: each for name, each in asdict(replace(layer)).items() if each != nothing[name]}


def compare(name: str, found: object) -> None:
    path = HERE / f"{name}.json"
    # One line for each price: a change is read line by line.
    text = "{\n" + ",\n".join(f"{json.dumps(key)}: {json.dumps(each)}" for key, each in found.items()) + "\n}\n"
    if os.environ.get("FPGAPRUNE_GOLDEN") == "write":
        path.write_text(text)
    wanted = json.loads(path.read_text())
    assert list(wanted) == list(found)
    for key, each in found.items():
        assert json.loads(json.dumps(each)) == wanted[key], key


def test_designs_cost_what_they_did():
    compare("designs", {name: priced(design) for name, design in designs().items()})


def test_rows_of_counts_are_read_and_priced_as_they_were():
    compare("rows", {str(number): read(random_row(number)) for number in range(60)})


@pytest.mark.parametrize("family", FAMILIES)
def test_a_layer_of_a_family_is_made_of_what_it_was(family):
    compare(family, {str(number): quantities(random_design(family, number)) for number in range(24)})
