"""Trained networks of the hardware benchmark as `Design`s, whatever trained them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from mnist_network import Arrays

import fpgaprune as fp
from fpgaprune.comparison import share_lost
from fpgaprune.design import LayerSpec
from fpgaprune.design.from_hls4ml import layer_of
from fpgaprune.fixed import FixedType

# Of the training images, those that show in which range the values lie that training rounds.
CALIBRATION = 2048
NO_PAD = {"pad_top": 0, "pad_bottom": 0, "pad_left": 0, "pad_right": 0}
WINDOW = {"filt_height": 3, "filt_width": 3, "stride_height": 1, "stride_width": 1, "n_filt": 32, **NO_PAD}
POOL = {"pool_op": "Max", "pool_height": 2, "pool_width": 2, "stride_height": 2, "stride_width": 2, **NO_PAD}


def target() -> Any:
    """One pixel a clock, products by adders; the part decides nothing that is measured here."""
    return fp.Target.of("xc7z020clg400-1", clock_ns=10.0, io_type="io_stream", strategy="latency")


def auto_design(model: Any, data: Arrays, loss: float, name: str, layers: Mapping[str, Any] | None = None) -> fp.Design:
    """`model` with the fewest bits that precision `auto` finds for a loss of `loss` (fraction) on held-out images."""
    precision = fp.AutoPrecision(max_loss=loss, samples=len(data["x_valid"]))
    return fp.make_design(model, target(), data["x_valid"], precision, name, labels=data["y_valid"], layers=layers)


def rounded_design(
    model: Any, trained: Any, data: Arrays, loss: float, name: str, layers: Mapping[str, Any]
) -> fp.Design:
    """`model` with the types that training settled, and the fewest bits for the Dense layer that lose as little.

    Precision `auto` would compare with `model`, in which nothing is rounded, and which nobody trained.

    Args:
        model: without the roundings. trained: with them: the reference.
        data: the held-out images judge, with a standard error to spare, as for precision `auto`.
        loss: accuracy that may be lost, a fraction. name: of the design. layers: the settled types.

    Raises:
        ValueError: 8 bits lose more.
    """
    x, truth = data["x_valid"], data["y_valid"]
    right = trained.predict(x, batch_size=500, verbose=0).argmax(axis=-1) == truth
    found = None
    for bits in range(8, 1, -1):
        given = {**layers, "out": {"weight_bits": bits}}
        design = fp.make_design(model, target(), x, fp.Precision(), name, layers=given)
        lost, error = share_lost(right, fp.emulate(design, x).reshape(len(x), -1).argmax(axis=-1) == truth)
        if lost + error > loss:
            break
        found = design
    if found is None:
        raise ValueError(f"{name}: 8 bits of the Dense layer lose {lost:.2%} with a standard error of {error:.2%}")
    return found


def hgq_design(found: Arrays, name: str) -> fp.Design:
    """What HGQ2 trained, number by number: weights on one grid for each layer, and the types that its layers read.

    What a layer reads is rounded and wrapped before the pooling, which gives the same numbers where nothing wraps.

    Args:
        found: `conv1/kernel` and so on as values, `conv1/reads` and so on as (sign, integer bits without it, fraction).
        name: of the design.
    """
    reads = {layer: _read_type(found[f"{layer}/reads"]) for layer in ("conv1", "conv2", "out")}
    layers = [layer_of("image", "Input", (), (28, 28, 1), {"result": reads["conv1"]})]
    for number, after in ((1, "conv2"), (2, "out")):
        size = layers[-1].output_shape[0]
        layers.append(_exact(f"conv{number}", "Conv2D", layers[-1], (size - 2, size - 2, 32), found, WINDOW))
        attributes = {"activation": "relu", "table_size": 1024}
        kind = reads[after]
        shape = layers[-1].output_shape
        source = (f"conv{number}",)
        relu = layer_of(f"relu{number}", "Activation", source, shape, {"result": kind}, attributes=attributes)
        layers.append(relu)
        # The template begins with the smallest number of a signed type.
        begin = kind if kind.signed else FixedType(kind.width + 1, kind.integer + 1)
        half = ((size - 2) // 2, (size - 2) // 2, 32)
        types = {"result": kind, "accum": begin}
        layers.append(layer_of(f"pool{number}", "Pooling2D", (relu.name,), half, types, attributes=POOL))
    layers.append(layer_of("flat", "Reshape", ("pool2",), (800,), {"result": reads["out"]}))
    layers.append(_exact("out", "Dense", layers[-1], (10,), found, {}))
    return fp.Design(name, tuple(layers), ("out",), clock_ns=10.0)


def _read_type(kif: np.ndarray) -> FixedType:
    sign, integer, fraction = (int(part) for part in kif)
    return FixedType(sign + integer + fraction, sign + integer, bool(sign), "RND", "WRAP")


def _exact(
    name: str, kind: str, source: LayerSpec, shape: tuple[int, ...], found: Arrays, attributes: Mapping[str, Any]
) -> LayerSpec:
    """A layer with those weights and with sums that keep every bit."""
    kernel, bias, reads = found[f"{name}/kernel"], found[f"{name}/bias"], source.types["result"]
    weight, starts = _type_of(kernel), _type_of(bias)
    fraction = max(weight.fraction + reads.fraction, starts.fraction)
    largest = max(abs(reads.raw_min), reads.raw_max) * 2.0**-reads.fraction
    bound = float((np.abs(kernel).reshape(-1, kernel.shape[-1]).sum(axis=0) * largest + np.abs(bias)).max())
    integer = math.floor(math.log2(max(bound, 2.0**-fraction))) + 2
    accum = FixedType(integer + fraction, integer)
    types = {"weight": weight, "bias": starts, "accum": accum, "result": accum}
    raws = {"weight": weight.to_raw(kernel), "bias": starts.to_raw(bias)}
    return layer_of(name, kind, (source.name,), shape, types, raws, attributes=attributes, strategy="latency")


def _type_of(values: np.ndarray) -> FixedType:
    """The narrowest signed type that holds `values` exactly."""
    fraction = 0
    while not np.array_equal(np.round(values * 2.0**fraction), values * 2.0**fraction):
        fraction += 1
    raws = np.abs(np.round(values * 2.0**fraction)).max(initial=0)
    width = int(raws).bit_length() + 1
    return FixedType(max(width, 2), max(width, 2) - fraction)


def power_of_two(values: np.ndarray, lowest: int, highest: int) -> np.ndarray:
    """`values` at the nearest power of two, sign kept, exponents from `lowest` to `highest`; zeros stay zero."""
    sizes = np.abs(values)
    exponents = np.clip(np.ceil(np.log2(np.where(sizes > 0, sizes, 1.0) / 1.5)), lowest, highest)
    return (np.sign(values) * 2.0**exponents).astype(values.dtype)


def highest_power(values: np.ndarray) -> int:
    """The exponent nearest to the largest of `values`."""
    return int(np.ceil(np.log2(np.abs(values).max() / 1.5)))
