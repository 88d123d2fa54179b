"""The cost of our own Verilog that computes every sum bit by bit, counted from the weights."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from fpgaprune.advice.other_layouts import products
from fpgaprune.advice.structure import streamed
from fpgaprune.design import Design
from fpgaprune.signed_digits import count_digits


@dataclass(frozen=True)
class BitSerial:
    """The convolutions of a design, bit by bit.

    Attributes:
        interval: cycles that each sample must have.
        adders: one for each signed digit of a sum except the first.
        luts: the most look-up tables of 4 inputs for these sums: two for an adder, one for each loaded bit. Windows,
            queues, activations and Dense layers are not counted.
    """

    interval: int
    adders: int
    luts: int


def bit_serial(design: Design) -> BitSerial | None:
    """The convolutions of `design` in our own Verilog, with the fewest cycles in which all can be computed bit by bit.

    None if there is no convolution, or if the result depends on the order of additions: such sums take one cycle.

    Source: the rules of `fpgaprune.rtl.in_time` and `fpgaprune.rtl.serial`, without shared adders.
    """
    # A layer that pads a convolution sends the zeros too.
    design = streamed(design)
    convolutions = [layer for layer in products(design) if math.prod(layer.output_shape[:-1]) > 1]
    if not convolutions:
        return None
    interval = adders = luts = 0
    for layer in convolutions:
        source = design[layer.inputs[0]]
        accum, incoming = layer.types.get("accum"), source.types.get("result")
        if accum is None or incoming is None or accum.overflow != "WRAP":
            return None
        if accum.fraction < layer.types["weight"].fraction + incoming.fraction:
            return None
        pixels, windows = (math.prod(shape[:-1]) for shape in (source.output_shape, layer.output_shape))
        # A sum takes a cycle for each of its bits and one more; the last window waits for the whole sample.
        interval = max(interval, windows * (accum.width + 1) + max(pixels - windows, 0))
        raw = layer.weights["weight"]
        per_output = layer.output_axis
        digits = np.moveaxis(count_digits(raw), per_output, -1).reshape(-1, raw.shape[per_output]).sum(axis=0)
        own = int(np.maximum(digits - 1, 0).sum())
        inputs = int(np.count_nonzero(raw.any(axis=-1))) if per_output == -1 else int(np.count_nonzero(raw))
        adders += own
        luts += 2 * own + incoming.width * inputs
    return BitSerial(interval, adders, luts)
