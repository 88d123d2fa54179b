"""Layers that multiply a few kernels a cycle by a schedule made beforehand, in which no locked kernel stands.

The layer's values come one by one, channel after channel; its multipliers take all taps of a kernel at once. Zeros
take no cycle, so a layer with a quarter of its kernels needs a quarter of the cycles.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from fpgaprune.design import Convolution, Dense, Design, LayerSpec, Pad, Recurrent
from fpgaprune.errors import RtlError
from fpgaprune.rtl.bus import Lane
from fpgaprune.rtl.chain import Chain, window_parameters
from fpgaprune.rtl.gate_weights import joined_weights
from fpgaprune.rtl.loaded import Loaded
from fpgaprune.rtl.node import width_of
from fpgaprune.rtl.number import Number
from fpgaprune.rtl.program import Program
from fpgaprune.rtl.scheduled_sums import ScheduledSums
from fpgaprune.rtl.solve import Context
from fpgaprune.rtl.sums import Weights

# Bits of the wider factor of AMD's DSP48E1, with its sign (UG479).
_FACTOR_BITS = 25
# Bits of the narrower factor of `hw/rtl/fp_product.v`.
MOST_LUT_BITS = 8
NO_PAD = (0, 0, 0, 0)
ORDER_COUNTS = (
    "the layout gives it multipliers, but its accumulator rounds or saturates, so that the order of additions counts: "
    "take it out of `multipliers`, or make the accumulator wide enough for every sum"
)


def scheduled_sums(
    context: Context,
    chain: Chain,
    weights: Weights,
    size: tuple[int, int] = (1, 1),
    stride: tuple[int, int] = (1, 1),
    pad: tuple[int, int, int, int] = NO_PAD,
) -> bool:
    """Make the sums of every window of `size` by a schedule, if the layout gives the layer multipliers.

    Raises:
        RtlError: the layout gives it some, and the order of additions counts.
    """
    layer = context.step.layer
    wanted = context.layout.multipliers.get(layer.name)
    if wanted is None:
        return False
    made = program_of(layer, wanted)
    chain.unpack()
    # A layer that pads values one by one has a queue before it; one that pads whole pixels has none.
    comes_serially = chain.stream.lanes == 1
    chain.relaid(1)
    if size != (1, 1) or stride != (1, 1):
        _rows_wait(context, chain, size, pad, comes_serially)
    chain.pad(pad, 0)
    s = chain.stream
    loaded = Loaded.of(layer, context.load_bits) if context.load_bits else None
    always = loaded is None or weights.accum.overflow == "WRAP"
    if not (weights.any_order(s.low, s.high, s.fraction).all() and always):
        raise RtlError(ORDER_COUNTS)
    low, high = loaded.bounds(made, s.low, s.high) if loaded else weights.bounds(s.low, s.high)
    channels = s.shape[-1]
    _windows(chain, size, stride)
    places = chain.stream.beats // channels
    bits, pause = max(2, width_of(low, high)), (size[1] - 1) * channels
    together, in_luts = 2 if layer.name in context.layout.paired else 1, layer.name in context.layout.in_luts
    sums = ScheduledSums(made, channels, s.width, s.signed, bits, places, pause, together, loaded, in_luts)
    if together == 2:
        _require_room_for_two(sums)
    if in_luts and min(sums.width, sums.weight_bits) > MOST_LUT_BITS:
        raise RtlError(
            f"the layout makes its multipliers of LUTs, and values of {sums.width} bits meet weights of "
            f"{sums.weight_bits}; wanted one of them with at most {MOST_LUT_BITS} bits: take it out of `in_luts`"
        )
    multiplied(chain, sums, layer.output_shape, (low, high))

    def finished(total: Number, start: Number) -> list[Number]:
        return [(start + total.scaled(-weights.kind.fraction)).into(weights.accum).into(context.step.result)]

    if loaded is None:
        chain.compute_numbered(
            "finish",
            lambda values, output: finished(values[0], output.looked_up(weights.starts, weights.accum.fraction)),
            context.step.result,
            made.outputs,
        )
    else:
        bias, half = loaded.bias, 1 << bits - 1
        each = (Lane(-half, half - 1, 0), Lane(bias.raw_min, bias.raw_max, 0))
        chain.stream = replace(chain.stream, lanes=2, each=each, packed=True)
        chain.compute(
            "finish",
            lambda values: finished(values[0], replace(values[1], fraction=bias.fraction).into(weights.accum)),
            context.step.result,
        )
    # Each weight of a kernel that is kept can be loaded, also one that is zero now.
    chain.kept = len(made.places) * made.taps if loaded else weights.kept
    chain.dropped = made.taps * made.all - chain.kept
    whole = "kernels" if made.split == 1 else f"parts of {made.taps} taps"
    place = "two places" if together == 2 else "place"
    made_of = " of LUTs" if in_luts else ""
    can = ", weights and biases can be loaded" if loaded else ""
    chain.notes.append(
        f"scheduled: {made.multipliers} multipliers{made_of} in {made.groups} groups, "
        f"{len(made.places)} of {made.all} {whole} kept, {sums.period} cycles for every {place}, "
        f"the busiest group {made.balance:.3f} of the mean{can}"
    )
    return True


def _windows(chain: Chain, size: tuple[int, int], stride: tuple[int, int]) -> None:
    """Turn beats of single values into windows of one channel, the taps row by row."""
    if size == (1, 1) and stride == (1, 1):
        return
    rows, columns, channels = chain.pixels()
    high, wide = (rows - size[0]) // stride[0] + 1, (columns - size[1]) // stride[1] + 1
    shape = (*(high, wide)[3 - len(chain.stream.shape) :], channels)
    taps = size[0] * size[1]
    after = replace(chain.stream, shape=shape, beats=high * wide * channels, lanes=taps, each=None)
    places = chain.need.reshape(rows, columns, channels)[size[0] - 1 :: stride[0], size[1] - 1 :: stride[1]]
    parameters = {"CHANNELS": channels, **window_parameters(rows, columns, size, stride)}
    chain.module("fp_channel_window", after, places[:high, :wide].reshape(-1), 0, **parameters)


def multiplied(chain: Chain, sums: ScheduledSums, shape: tuple[int, ...], bounds: tuple[int, int]) -> None:
    """Turn the beats of each place into the raw sums of its outputs, one a beat, between `bounds`."""
    outputs = sums.program.outputs
    chain.links.append(sums)
    chain.held += sums.together * (sums.sides * sums.channels + sums.buffers * outputs)
    ends = chain.need[sums.channels - 1 :: sums.channels]
    # A place waits for the one that is multiplied together with it.
    last = np.arange(len(ends)) // sums.together * sums.together + sums.together - 1
    chain.need = np.repeat(ends[np.minimum(last, len(ends) - 1)], outputs)
    low, high = bounds
    after = replace(chain.stream, shape=shape, beats=chain.need.size, lanes=1, width=sums.bits, signed=True, each=None)
    chain.stream = replace(after, low=low, high=high)


def program_of(layer: LayerSpec, multipliers: int) -> Program:
    """Return what `multipliers` do for a Dense layer, a convolution or a recurrent layer."""
    weight = layer.weights["weight"]
    if isinstance(layer.operation, Recurrent):
        return Program.of(joined_weights(layer)[None], multipliers)
    if layer.is_depthwise:
        return Program.depthwise(weight.reshape(-1, layer.output_shape[-1]), multipliers)
    return Program.of(weight.reshape(-1, *weight.shape[-2:]), multipliers)


def is_schedulable(design: Design, layer: LayerSpec) -> bool:
    """Return whether a schedule can make a layer's sums: it has weights, and any order gives the same bits."""
    if not isinstance(layer.operation, Dense | Convolution | Recurrent) or not layer.weights["weight"].any():
        return False
    types, source = layer.types, design[layer.inputs[0]].types["result"]
    fractions = [source.fraction + types["weight"].fraction]
    if isinstance(layer.operation, Recurrent):
        fractions.append(types["result"].fraction + types["recurrent_weight"].fraction)
    return types["accum"].overflow == "WRAP" and types["accum"].fraction >= max(fractions)


def may_be_paired(design: Design, layer: LayerSpec) -> bool:
    """Return whether a multiplier of a scheduled layer can take the values of two places at once."""
    source, weight = design[layer.inputs[0]].types["result"], layer.types["weight"]
    return (
        not isinstance(layer.operation, Recurrent)
        and math.prod(layer.output_shape[:-1]) > 1
        and _pair_bits(source.width, source.signed, weight.width) <= _FACTOR_BITS
    )


def may_be_in_luts(design: Design, layer: LayerSpec) -> bool:
    """Return whether the multipliers of a scheduled layer can be made of LUTs."""
    source, weight = design[layer.inputs[0]].types["result"], layer.types["weight"]
    return not isinstance(layer.operation, Recurrent) and min(source.width, weight.width) <= MOST_LUT_BITS


def _pair_bits(width: int, signed: bool, weight_bits: int) -> int:
    """Count the bits of a factor that holds two values and the room for the product of one."""
    return 2 * width + weight_bits + (0 if signed else 1)


def _require_room_for_two(sums: ScheduledSums) -> None:
    """Check that the values of two places and the products of one fit beside each other into a multiplier's factor."""
    bits = _pair_bits(sums.width, sums.signed, sums.weight_bits)
    if sums.places == 1 or bits > _FACTOR_BITS:
        raise RtlError(
            f"the layout pairs its places, but it has {sums.places}, and two values of {sums.width} bits beside a "
            f"weight of {sums.weight_bits} take {bits} bits; wanted two places or more, and at most {_FACTOR_BITS}: "
            "take it out of `paired`"
        )


def _rows_wait(
    context: Context, chain: Chain, size: tuple[int, int], pad: tuple[int, int, int, int], comes_serially: bool
) -> None:
    """Let as many rows of the image wait as complete no window, so that the multipliers have work meanwhile."""
    padded_before = comes_serially and isinstance(context.step.sources[0].operation, Pad) and not any(pad)
    if not padded_before:
        chain.queue_rows(max(1, size[0] - 1 - pad[0]), max(1, size[1] - 1 - pad[2]))
