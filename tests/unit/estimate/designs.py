"""Small designs for the tests, made of synthetic integer weights."""

from __future__ import annotations

import numpy as np

from fpgaprune.design import Design
from fpgaprune.hls import layer_of
from fpgaprune.values import FixedType

T16 = FixedType(16, 6)
U8 = FixedType(8, 0, signed=False, rounding="RND_CONV", overflow="SAT")


def weights(rng: np.random.Generator, shape: tuple[int, ...], zeros: float = 0.5, bits: int = 8) -> np.ndarray:
    raw = rng.integers(-(1 << (bits - 1)) + 1, 1 << (bits - 1), size=shape)
    raw = np.where(raw == 0, 1, raw)
    return np.where(rng.random(shape) < zeros, 0, raw).astype(np.int64)


def product_types(weight: FixedType) -> dict[str, FixedType]:
    return {"result": T16, "weight": weight, "bias": weight, "accum": T16}


def cnn(
    io_type: str = "io_stream",
    strategy: str = "latency",
    reuse: int = 1,
    seed: int = 0,
    backend: str = "Vitis",
    zeros: float = 0.5,
    width: int = 8,
) -> Design:
    """Padding, convolution, batch normalisation, ReLU, pooling, flatten, dense, softmax on 8 x 8 x 2 images."""
    rng = np.random.default_rng(seed)
    kind = FixedType(width, 1)

    def layer(name, kind_name, source, shape, types=None, arrays=None, attributes=None, **rest):
        inputs = (source,) if source else ()
        return layer_of(
            name, kind_name, inputs, shape, types or {"result": T16}, arrays or {}, {}, attributes or {}, **rest
        )

    products = {"reuse_factor": reuse, "strategy": strategy}
    conv = {"weight": weights(rng, (3, 3, 2, 4), zeros, width), "bias": weights(rng, (4,), 0, width)}
    scale = {"scale": weights(rng, (4,), 0, width), "bias": weights(rng, (4,), 0, width)}
    dense = {"weight": weights(rng, (64, 5), zeros, width), "bias": weights(rng, (5,), 0, width)}
    return Design(
        name="cnn",
        layers=(
            layer("in", "Input", None, (8, 8, 2)),
            layer("pad", "ZeroPadding2D", "in", (10, 10, 2)),
            layer(
                "conv",
                "Conv2D",
                "pad",
                (8, 8, 4),
                product_types(kind),
                conv,
                {"in_width": 10, "in_height": 10, "filt_width": 3, "filt_height": 3, "implementation": "linebuffer"},
                **products,
            ),
            layer("bn", "BatchNormalization", "conv", (8, 8, 4), {"result": T16, "scale": kind, "bias": kind}, scale),
            layer("relu", "Activation", "bn", (8, 8, 4), {"result": U8}, attributes={"activation": "relu"}),
            layer(
                "pool",
                "Pooling2D",
                "relu",
                (4, 4, 4),
                {"result": U8},
                attributes={"pool_op": "Max", "pool_height": 2, "pool_width": 2, "in_width": 8},
            ),
            layer("flat", "Reshape", "pool", (64,), {"result": U8}),
            layer("dense", "Dense", "flat", (5,), product_types(kind), dense, **products),
            layer(
                "softmax",
                "Softmax",
                "dense",
                (5,),
                {"result": T16, "exp_table": FixedType(18, 8)},
                attributes={"table_size": 1024},
            ),
        ),
        outputs=("softmax",),
        io_type=io_type,
        backend=backend,
        part="xc7z020clg400-1",
    )


def mlp(
    reuse: int = 1,
    strategy: str = "latency",
    seed: int = 0,
    zeros: float = 0.5,
    backend: str = "Vivado",
    width: int = 8,
) -> Design:
    """Two dense layers with a ReLU between them and a softmax, in parallel."""
    rng = np.random.default_rng(seed)
    kind = FixedType(width, 1)
    rest = {"reuse_factor": reuse, "strategy": strategy}

    def dense(name, source, n_in, n_out):
        arrays = {"weight": weights(rng, (n_in, n_out), zeros, width), "bias": weights(rng, (n_out,), 0, width)}
        return layer_of(name, "Dense", (source,), (n_out,), product_types(kind), arrays, {}, {}, **rest)

    return Design(
        name="mlp",
        layers=(
            layer_of("in", "Input", (), (16,), {"result": T16}),
            dense("fc1", "in", 16, 12),
            layer_of("relu", "Activation", ("fc1",), (12,), {"result": T16}, attributes={"activation": "relu"}),
            dense("fc2", "relu", 12, 4),
            layer_of("softmax", "Softmax", ("fc2",), (4,), {"result": T16}),
        ),
        outputs=("softmax",),
        io_type="io_parallel",
        backend=backend,
        part="xc7z020clg400-1",
    )
