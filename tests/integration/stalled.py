"""Simulates Verilog with stalls and resets, and compares every bit of every output with the emulator."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from fpgaprune.design import Design
from fpgaprune.emulate import emulate
from fpgaprune.fabric import lint
from fpgaprune.rtl import VerilogProject
from tests.unit.rtl.networks import samples

# A share of cycles in which the ports stall, or one for each side; the seed of the stalls; the beats before a reset.
Stalls = tuple[float | tuple[float, float], int, int]


def require_bits(project: VerilogProject, design: Design, seed: int, all_stalls: Iterable[Stalls]) -> None:
    """Fail unless `project` gives the bits of `design` for four samples, under each of `all_stalls`."""
    assert lint(project) == []
    x = samples(design, 4, seed)
    wanted = emulate(design, x)
    wanted = wanted if isinstance(wanted, tuple) else (wanted,)
    for stalls, number, reset in all_stalls:
        found = project.simulate(x, stalls=stalls, seed=number, reset_after=reset)
        differing = [
            name
            for name, one, two in zip(design.outputs, found.outputs, wanted, strict=True)
            if (one.astype(np.float32) != two).any()
        ]
        assert differing == [], (stalls, number, reset)
