"""Layouts of our own Verilog for a part: what is promised is what the hardware takes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import fpgaprune as fp
from fpgaprune.design import Design, Input, VerilogLayout
from fpgaprune.target import find_part
from tests.benchmarks.layout_networks import concatenate, network_of, random_laid, rn07, stride_of_four, strided_row

from ._asking import refused


def _simulated(design: Design, layout: VerilogLayout, folder: Path) -> tuple[int | None, int]:
    """Interval and latency that a simulation of the Verilog counts."""
    shape = next(layer.output_shape for layer in design.layers if isinstance(layer.operation, Input))
    x = np.random.default_rng(0).uniform(0, 1, (5, *shape)).astype(np.float32)
    found = fp.to_verilog(design, folder, layout=layout).simulate(x)
    return found.interval_cycles, found.latency_cycles


def _kept(design: Design, part: str, folder: Path) -> None:
    """Check that the layout for `part` aims at, answers, prices and takes the same cycles."""
    chosen = fp.choose_layout(design, find_part(part), "xc7")
    layout = VerilogLayout(**chosen.settings)
    price = fp.verilog_price(design, layout=layout)
    assert chosen.interval == price.interval_cycles == pytest.approx(chosen.allowed, rel=0.03)
    assert max(chosen.used.values()) <= 0.8
    assert _simulated(design, layout, folder) == (price.interval_cycles, price.latency_cycles)


def a_stride_of_four_over_many_channels(folder: Path) -> None:
    """She lays out a network with a stride of 4: values that complete no window take cycles, and they are counted."""
    _kept(network_of(stride_of_four), "xc7s6", folder)


def branches_of_different_depths(folder: Path) -> None:
    """She joins branches of no, one and two convolutions: the interval that she is told is the one that she gets."""
    _kept(network_of(concatenate), "xc7s6", folder)


def a_row_of_samples_with_strides(folder: Path) -> None:
    """She lays out a strided 1-D network: the interval that she is told is the one that she gets."""
    _kept(network_of(strided_row), "xc7s6", folder)


def the_shape_of_rn07(folder: Path) -> None:
    """She lays out a network of RN07's shape for a Pynq-Z2: answer and price are one number, also layer by layer."""
    design = network_of(rn07)
    chosen = fp.choose_layout(design, find_part("xc7z020clg400-1"), "xc7")
    price = fp.verilog_price(design, layout=VerilogLayout(**chosen.settings))
    assert chosen.interval == price.interval_cycles == pytest.approx(chosen.allowed, rel=0.03)
    assert all(row.cycles is None or row.cycles <= chosen.interval for row in chosen.layers)


def multipliers_of_her_own(folder: Path) -> None:
    """She gives two layers multipliers by hand: the estimate has the cycles of simulation, to the cycle."""
    design, layout = random_laid(3)
    price = fp.verilog_price(design, layout=layout)
    assert (price.interval_cycles, price.latency_cycles) == _simulated(design, layout, folder)


def an_interval_that_no_layout_keeps(folder: Path) -> None:
    """She asks for more samples than the part can take: it is refused, and no slower layout is passed off as one."""
    design, part = network_of(stride_of_four), find_part("xc7s6")
    refused(
        lambda: fp.choose_layout(design, part, "xc7", interval=300),
        "no layout of 'stride_of_four' with 300 cycles for each sample fits 80% of xc7s6",
        "give a sample more cycles",
    )
