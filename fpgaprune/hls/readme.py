"""The README of a written project: what it is, and what to run on the machine that has the vendor's tool."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fpgaprune.design import Design
from fpgaprune.hls.backends import BACKENDS
from fpgaprune.hls.build import build_commands, shown


def readme(design: Design) -> str:
    """Markdown for the folder of `design`'s project; the same for the same design."""
    first = build_commands(design)
    weights = {layer.name: layer.weights["weight"] for layer in design.layers if "weight" in layer.weights}
    zeros = sum(int(raw.size - np.count_nonzero(raw)) for raw in weights.values())
    total = sum(raw.size for raw in weights.values())
    lines = [
        f"# {design.name}",
        "",
        f"An hls4ml project for {design.backend}, written by fpgaprune. It needs no other file: copy the whole folder.",
        "",
        f"- part {design.part}, clock period {design.clock_ns:g} ns, {design.io_type}",
        f"- inputs: {_ports(design, [layer.name for layer in design.layers if layer.kind == 'Input'])}",
        f"- outputs: {_ports(design, design.outputs)}",
        f"- weights: {total}, of which {zeros} are zero in hardware",
        "",
        "## Synthesis",
        "",
        f"On a machine with {first[0].product} ({first[0].advice}), in this folder:",
        "",
        "```",
        *(shown(command) for command in first),
        "```",
        "",
    ]
    if design.backend == "Vitis":
        lines += ["`build_opt.tcl` says which steps run: csim, synth, cosim, validation, export, vsynth.", ""]
    if BACKENDS[design.backend].compiles:
        library = f"firmware/{design.name}-*.so"
        lines += ["## C simulation", "", f"`bash build_lib.sh` compiles `{library}` with g++ alone.", ""]
    lines += [
        "## With fpgaprune",
        "",
        "```python",
        "import fpgaprune as fp",
        "",
        'project = fp.HlsProject.open(".")',
        "project.build()  # runs the tool that is on PATH, with a log and a limit of time",
        "fp.emulate(project.design, x)  # the hardware's bits, without a compiler",
        "```",
        "",
        "`design.json` and `design.npz` hold every type and every integer weight of the network.",
        "",
    ]
    return "\n".join(lines)


def _ports(design: Design, names: Sequence[str]) -> str:
    layers = [design[name] for name in names]
    return ", ".join(f"{x.name} ({' x '.join(map(str, x.output_shape))}) {x.types['result']}" for x in layers)
