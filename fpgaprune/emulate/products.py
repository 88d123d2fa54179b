"""Layers of weighted sums: Dense layers and convolutions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fpgaprune.design import Convolution
from fpgaprune.emulate.exact import Exact, carrier
from fpgaprune.emulate.pooling import Windows, as_image
from fpgaprune.emulate.step import Step
from fpgaprune.emulate.sums import Kernel, summed, weighted_sum
from fpgaprune.errors import DesignError

_MANY_CHANNELS = 8


def dense(step: Step, x: Exact) -> Exact:
    """Compute `nnet::dense`: each output is a weighted sum of all inputs."""
    kernel = step.keep("kernel", lambda: Kernel.of(step.weight("weight"), step.type("weight")))
    return _accumulated(step, [x.flat()], kernel)


def convolution(step: Step, x: Exact) -> Exact:
    """Compute `nnet::conv_1d_cl` or `conv_2d_cl`, also pointwise and depthwise: a Dense layer at every window."""
    if step.operation(Convolution).depthwise:
        return _depthwise(step, x)
    windows = Windows.of(step.operation(Convolution).window)
    weight = step.weight("weight")
    kernel = step.keep("kernel", lambda: Kernel.of(weight.reshape(-1, weight.shape[-1]), step.type("weight")))
    low, high = kernel.partial_bounds(x.low, x.high)
    # Converted before the windows are laid out, because they repeat the data.
    small = x.raw.astype(carrier(min(low, x.low), max(high, x.high)), copy=False)
    image = windows.padded(as_image(small), 0)
    bounds = x.fraction, min(x.low, 0), max(x.high, 0)
    # With few channels, a product for each place in the window would cost more in calls than in arithmetic.
    parts = list(windows.views(image)) if image.shape[3] >= _MANY_CHANNELS else [windows.columns(image)]
    total = _accumulated(step, [Exact(part, *bounds) for part in parts], kernel)
    return total.reshape(x.raw.shape[0], *step.layer.output_shape)


def _depthwise(step: Step, x: Exact) -> Exact:
    """Compute `nnet::depthwise_conv_1d_cl` or `depthwise_conv_2d_cl`: one kernel for each channel."""
    windows = Windows.of(step.operation(Convolution).window)
    channels = x.raw.shape[-1]
    if step.layer.output_shape[-1] != channels:
        raise DesignError("the depth multiplier is not 1; the templates of hls4ml have no other")
    weight = step.keep("taps", lambda: Exact.of(step.weight("weight").reshape(-1, channels), step.type("weight")))
    image = x.on(windows.padded(as_image(x.raw), 0))
    image = Exact(image.raw, x.fraction, min(x.low, 0), max(x.high, 0))
    products = [
        (image.on(tap) * weight.on(row)).into(step.type("accum"))
        for tap, row in zip(windows.views(image.raw), weight.raw, strict=True)
    ]
    if step.order == "unknown":
        reach = np.abs(weight.raw.astype(np.int64)).sum(axis=0) * max(-image.low, image.high)
        ends = [(-most, most) for most in reach.tolist()]
        _require_exact(step, image.fraction + weight.fraction, ends, "bias")
    bias = step.constants("bias").into(step.type("accum"))
    orders = channel_orders(step, len(products), channels)
    if orders is None:
        total = summed([bias, *products], step.type("accum"), tree=False)
    else:
        stack = np.stack([product.raw.astype(np.int64) for product in products])
        bounds = min(p.low for p in products), max(p.high for p in products)
        ordered = [
            Exact(
                np.stack([stack[order[place], ..., c] for c, order in enumerate(orders)], axis=-1),
                bias.fraction,
                *bounds,
            )
            for place in range(len(products))
        ]
        total = summed([bias, *ordered], step.type("accum"), tree=False)
    return total.into(step.result).reshape(x.raw.shape[0], *step.layer.output_shape)


def channel_orders(step: Step, taps: int, channels: int) -> list[NDArray[np.int64]] | None:
    """Return the taps of each channel in the order in which they are added; None if that is the usual order."""
    if step.layer.strategy != "resource":
        return None
    order = input_order(step, taps * channels)
    return [order[order % channels == channel] // channels for channel in range(channels)]


def _accumulated(step: Step, parts: Sequence[Exact], kernel: Kernel) -> Exact:
    return accumulated(step, parts, kernel, "bias").into(step.result)


def accumulated(step: Step, parts: Sequence[Exact], kernel: Kernel, bias: str) -> Exact:
    """Multiply `parts` by `kernel`, add the weights of role `bias`; sum in type `accum` as the strategy does."""
    inputs = kernel.weight.raw.shape[0]
    order = step.keep(f"order of {inputs}", lambda: input_order(step, inputs))
    accum, x = step.type("accum"), parts[0]
    total = weighted_sum(parts, kernel, step.constants(bias), accum, order)
    if step.order == "unknown":
        bounds = kernel.output_bounds(x.low, x.high)
        _require_exact(step, x.fraction + kernel.weight.fraction, bounds, bias)
    return total


def _require_exact(step: Step, fraction: int, bounds: Sequence[tuple[int, int]], role: str) -> None:
    """Check that the accumulator loses no bit of the bias of an output plus any of its partial sums.

    Args:
        step: the layer.
        fraction: bits right of the point of the products.
        bounds: for each output, the bounds of its partial sums.
        role: of the bias.
    """
    bias, accum = step.constants(role), step.type("accum")
    places = max(fraction, bias.fraction)
    sums = []
    for (low, high), start in zip(bounds, bias.integers().tolist(), strict=True):
        start <<= places - bias.fraction
        sums += [(low << places - fraction) + min(start, 0), (high << places - fraction) + max(start, 0)]
    if not Exact(np.zeros(0), places, min(sums), max(sums)).fits(accum):
        raise DesignError(
            f"strategy {step.layer.strategy!r} adds in an order that is not known here, and accumulator {accum} may "
            "round or overflow: widen the accumulator"
        )


def input_order(step: Step, inputs: int) -> NDArray[np.int64]:
    """Return the indices of the inputs in the order in which they are added to an output."""
    indices = np.arange(inputs)
    reuse = step.layer.reuse_factor
    if step.layer.strategy != "resource" or reuse == 1:
        return indices
    if reuse < inputs and inputs % reuse:
        raise DesignError(
            f"reuse factor {reuse} does not divide its {inputs} inputs, so the C simulation reads past the weights: "
            "choose a divisor"
        )
    # A cycle takes every reuse-th input; the next cycle takes their neighbours.
    return indices[np.lexsort((indices, indices % reuse))]
