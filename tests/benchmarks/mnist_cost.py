"""What a design of the hardware benchmark takes: synthesis by layers, and the adders' cost where that does not end.

The cost of a layer is the bits that its adders add, as da4ml counts cost: a full adder for each bit at which both
operands stand. Layers whose synthesis ended say how many LUTs go with it.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

import fpgaprune as fp
from fpgaprune.design import LayerSpec
from fpgaprune.emulate.kinds import steps_of
from fpgaprune.fabric.synthesis import synthesize
from fpgaprune.fixed import FixedType
from fpgaprune.rtl.adders import AdderGraph
from fpgaprune.rtl.solve import Solver, solve

FIGURES = ("lut", "ff", "dsp", "bram18")


def measure(
    design: fp.Design, place: Path, family: str, timeout_s: float, cache: Path, given: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """A row for each layer with a module: products kept, cost of its adders, cells (None where synthesis did not end).

    The Dense layer is folded over the cycles that a sample takes, in every design alike; `given` are further arguments
    of `to_verilog`.
    """
    inputs = int(design["out"].weights["weight"].shape[0])
    solver = Solver(given.get("adders", "shared"), cache / "adders", given.get("solver_seconds", 600.0))
    project = fp.to_verilog(design, place, fold={"out": min(28 * 28, inputs)}, cache=solver.cache, **given)
    found = synthesize(project, family, whole=False, timeout_s=timeout_s, cache=cache / "synth", workers=1)
    sources = {step.layer.name: step.sources[0].types["result"] for step in steps_of(design) if step.sources}
    rows = []
    for module in found.layers:
        layer = design[str(module.layer)]
        cost = adder_bits(layer, sources[layer.name], solver) if layer.kind == "Conv2D" else None
        cells = None if module.cells is None else {name: getattr(module.cells, name) for name in FIGURES}
        row = {"layer": layer.name, "kept": module.kept, "cost": cost, "cells": cells, "seconds": module.seconds}
        rows.append(row)
    return rows


def adder_bits(layer: LayerSpec, reads: FixedType, solver: Solver) -> int:
    """Full adders of a convolution's window: the cost of its constant matrix."""
    weight = layer.weights["weight"]
    matrix = weight.reshape(-1, weight.shape[-1])
    graph = solve(matrix, 0 if not reads.signed else reads.raw_min, reads.raw_max, solver).graph
    return graph_cost(graph, 0 if not reads.signed else reads.raw_min, reads.raw_max)


def graph_cost(graph: AdderGraph, low: int, high: int) -> int:
    """Full adders of `graph`, whose inputs lie from `low` to `high`."""
    bounds = [(low, high)] * graph.inputs
    total = 0
    for item in graph.sums:
        a = (0, 0) if item.a < 0 else bounds[item.a]
        b = (0, 0) if item.b < 0 else bounds[item.b]
        a, b = (a[0] << item.p, a[1] << item.p), (b[0] << item.q, b[1] << item.q)
        found = (a[0] - b[1], a[1] - b[0]) if item.subtract else (a[0] + b[0], a[1] + b[1])
        bounds.append(found)
        # Below the higher operand's last place the other one is the sum, unless it is taken away.
        wires = 0 if item.subtract and item.q < item.p else abs(item.p - item.q)
        total += max(_width(*found) - wires, 0)
    return total


def _width(low: int, high: int) -> int:
    return max((-low - 1).bit_length() if low < 0 else 0, max(high, 0).bit_length()) + (low < 0)


def luts_of_cost(rows: Iterable[dict[str, Any]]) -> tuple[float, float, float] | None:
    """Median, least and largest LUTs for a unit of cost, over the layers whose synthesis ended."""
    ratios = [row["cells"]["lut"] / row["cost"] for row in rows if row["cost"] and row["cells"] and row["cells"]["lut"]]
    return (statistics.median(ratios), min(ratios), max(ratios)) if ratios else None


def total(rows: Iterable[dict[str, Any]], figure: str, ratio: float | None = None) -> tuple[float | None, bool]:
    """The sum over the layers, None if one is unknown, and whether a layer's LUTs are its cost times `ratio`."""
    rows = list(rows)
    if not rows:
        return None, False
    found, stands_in = 0.0, False
    for row in rows:
        if row["cells"] is not None:
            found += row["cells"][figure] or 0
        elif figure == "lut" and ratio and row["cost"]:
            found, stands_in = found + ratio * row["cost"], True
        else:
            return None, False
    return found, stands_in


def kept_weights(design: fp.Design) -> dict[str, int]:
    """Weights that are not zero in hardware, by convolution."""
    return {
        layer.name: int(np.count_nonzero(layer.weights["weight"])) for layer in design.layers if layer.kind == "Conv2D"
    }
