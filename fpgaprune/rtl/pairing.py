"""`pair`: two streams get equal beats and become one stream; `Pair.room` says how many beats wait for that."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from fpgaprune.design import Concatenate
from fpgaprune.emulate import Step
from fpgaprune.errors import UnsupportedLayerError
from fpgaprune.rtl.chain import Chain
from fpgaprune.rtl.links import Module, Need


@dataclass(frozen=True)
class Pair:
    """Pairing of two streams whose beats meet.

    Attributes:
        befores: the modules of each stream before they meet.
        module: `fp_join`, or `fp_append` with its parameters.
        chain: begins where they have met.
        places: for each beat of each stream, the number of the beat behind the meeting that contains it.
    """

    befores: tuple[Chain, Chain]
    module: Module
    chain: Chain
    places: tuple[NDArray[np.int64], NDArray[np.int64]]

    def needs(self, sources: tuple[Mapping[str, Need], Mapping[str, Need]]) -> dict[str, Need]:
        """Return for each network input and fork how many of its beats each beat behind the meeting waits for."""
        found: dict[str, Need] = {}
        count = self.chain.stream.beats
        for place, before, needs in zip(self.places, self.befores, sources, strict=True):
            for name, need in needs.items():
                row = found.setdefault(name, np.zeros(count, np.int64))
                np.maximum.at(row, place, need[before.need - 1])
        return {name: np.maximum.accumulate(row) for name, row in found.items()}

    def room(self, number: int, own: Mapping[str, Need], together: Mapping[str, Need]) -> int:
        """Return the most beats of stream `number` that wait for the other stream at one time."""
        before, place = self.befores[number], self.places[number]
        most = 0
        for name, need in own.items():
            # What has come just before a beat of the input or the fork, and what has met by then. What one such beat
            # sets off comes without another; a fork behind it counts for itself.
            come = np.searchsorted(need, together[name])
            met = np.searchsorted(place, np.searchsorted(together[name], together[name]))
            # Beats are counted where they enter `before`, which may make one beat of several.
            gone = np.concatenate([[0], before.need])[met]
            most = max(most, int((come - gone).max(initial=0)) + 1)
        return most


def pair(step: Step, befores: tuple[Chain, Chain]) -> Pair:
    """Return how the streams that leave `befores` meet in the layer of `step`; `befores` get the modules that it takes.

    Raises:
        UnsupportedLayerError: no Verilog joins streams of these shapes.
    """
    joined = step.layer.operation
    if isinstance(joined, Concatenate):
        rank = len(befores[0].stream.shape)
        axis = joined.axis
        if axis < rank:
            return _appended(step, befores, axis)
        for chain in befores:
            chain.relaid(chain.stream.shape[-1])
    else:
        _same_beats(befores)
    _same_values(befores)
    one, two = (chain.stream for chain in befores)
    shape = one.shape if math.prod(one.shape) >= math.prod(two.shape) else two.shape
    both = replace(
        one,
        shape=step.layer.output_shape if isinstance(joined, Concatenate) else shape,
        lanes=one.lanes + two.lanes,
        low=min(one.low, two.low),
        high=max(one.high, two.high),
        each=one.each + two.each if one.each and two.each else None,
    )
    every = np.arange(one.beats)
    module = Module.of("fp_join", 0, both.bits, WIDTH_A=one.bits, WIDTH_B=two.bits)
    return Pair(befores, module, Chain.begin(both), (every, every))


def _appended(step: Step, befores: tuple[Chain, Chain], axis: int) -> Pair:
    """Return the streams alternate: a run of pixels of the first, then a run of the second."""
    counts = []
    for chain in befores:
        shape = chain.stream.shape
        chain.relaid(shape[-1])
        chain.assign(step.result)
        counts.append(math.prod(shape[axis - 1 : -1]))
    one, two = (chain.stream for chain in befores)
    both = replace(
        one,
        shape=step.layer.output_shape,
        beats=one.beats + two.beats,
        low=min(one.low, two.low),
        high=max(one.high, two.high),
        each=None,
    )
    first = np.arange(both.beats) % sum(counts) < counts[0]
    module = Module.of("fp_append", 0, both.bits, WIDTH=one.bits, BEATS_A=counts[0], BEATS_B=counts[1])
    return Pair(befores, module, Chain.begin(both), (np.flatnonzero(first), np.flatnonzero(~first)))


def _same_beats(befores: tuple[Chain, Chain]) -> None:
    """Give both streams equal beats; one with a value for each channel is sent for every pixel."""
    one, two = befores
    sizes = [math.prod(chain.stream.shape) for chain in befores]
    if sizes[0] == sizes[1]:
        # What is computed in turns costs less where values come one by one.
        lanes = 1 if two.stream.lanes == 1 else one.stream.lanes
        one.relaid(lanes)
        two.relaid(lanes)
        return
    small, large = (one, two) if sizes[0] < sizes[1] else (two, one)
    channels = large.stream.shape[-1]
    if min(sizes) != channels:
        shapes = " with ".join("x".join(map(str, chain.stream.shape)) for chain in befores)
        raise UnsupportedLayerError(
            f"a merge of {shapes} has no Verilog; the smaller input must have one value for each channel"
        )
    if channels % large.stream.lanes:
        large.relaid(channels)
    beats = channels // large.stream.lanes
    if beats == 1:
        small.gather(small.stream.beats)
        small.repeat(large.stream.beats)
    else:
        # The beats of one pixel, as a row of an image that is sent again for every pixel.
        small.renamed((1, beats, large.stream.lanes))
        small.upsample((large.stream.beats // beats, 1))
        small.renamed(large.stream.shape)


def _same_values(befores: tuple[Chain, Chain]) -> None:
    """Give the values of both streams one width and one fraction."""
    kinds = [chain.stream.kind() for chain in befores]
    if kinds[0] == kinds[1]:
        return
    fraction = max(kind.fraction for kind in kinds)
    for chain in befores:
        chain.compute_lanes("align", lambda x: x.at_fraction(fraction))
    width = max(chain.stream.width for chain in befores)
    for chain in befores:
        chain.widened(width)
