"""Writes the README of a project: what it is, and what to run on the machine with the vendor's tool."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fpgaprune.backends import BACKENDS
from fpgaprune.design import Design, Input
from fpgaprune.hls.build import build_commands, shown, steps_of
from fpgaprune.hls.golden import GOLDEN_INPUTS, GOLDEN_OUTPUTS

_DOES = {
    "csim": "C simulation, compared with the golden outputs",
    "synth": "high-level synthesis: C to Verilog or VHDL",
    "cosim": "simulation of the synthesised hardware, compared with the golden outputs",
    "validation": "the logs of the two simulations are equal; after both",
    "export": "an IP core",
    "vsynth": "logic synthesis",
    "bitfile": "place and route, and a bitstream",
}
_AMD = ("Vitis", "Vivado", "VivadoAccelerator")


def readme(design: Design, golden: int = 0) -> str:
    """Write the README in Markdown for a design's project, with `golden` samples; the same for the same design."""
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
        f"- inputs: {_ports(design, [layer.name for layer in design.layers if isinstance(layer.operation, Input)])}",
        f"- outputs: {_ports(design, design.outputs)}",
        f"- weights: {total}, of which {zeros} are zero in hardware",
        "",
        "## What to run",
        "",
        f"On a machine with {first[0].product} ({first[0].advice}), in this folder:",
        "",
        *_commands(design),
        *_golden(design, golden),
        *_handed_over(design),
    ]
    if BACKENDS[design.backend].compiles:
        lines += [
            "## C simulation without the vendor's tool",
            "",
            f"`bash build_lib.sh` compiles `firmware/{design.name}-*.so` with g++ alone, and a program of the same",
            "name that reads samples from standard input and writes outputs, as raw float32 numbers.",
            "",
        ]
    lines += [
        "## With fpgaprune",
        "",
        "```python",
        "import fpgaprune as fp",
        "from fpgaprune.hls import HlsProject",
        "",
        'project = HlsProject.open(".")',
        "project.build()  # runs the tool that is on PATH, with a log and a limit of time",
        "fp.emulate(project.design, x)  # the hardware's bits, without a compiler",
        "```",
        "",
        "`design.json` and `design.npz` hold every type and every integer weight of the network.",
        "",
    ]
    return "\n".join(lines)


def _commands(design: Design) -> list[str]:
    steps = steps_of(design)
    if design.backend == "Vitis":
        return [
            "```",
            *(shown(command) for command in build_commands(design)),
            "```",
            "",
            "`build_opt.tcl` says which steps that runs, 1 or 0 for each:",
            "",
            *(f"- `{step}`: {_DOES[step]}" for step in steps),
            "",
        ]
    lines = ["```"]
    for step in steps:
        lines += [f"# {step}: {_DOES[step]}", *(shown(command) for command in build_commands(design, (step,)))]
    return [*lines, "```", ""]


def _golden(design: Design, golden: int) -> list[str]:
    lines = ["## Golden samples", ""]
    if not golden:
        lines += [
            "There are none: no samples were given, or this backend is not emulated. The test bench runs what is put",
            f"into `{GOLDEN_INPUTS}` and `{GOLDEN_OUTPUTS}`, one sample a line.",
        ]
    else:
        lines += [
            f"`{GOLDEN_INPUTS}` holds {golden} samples, `{GOLDEN_OUTPUTS}` what fpgaprune's emulation gives for",
            "them, bit for bit. The test bench ends with an error where the simulation gives another number.",
        ]
    if design.backend == "Catapult":
        lines += [
            "`build_prj.tcl` simulates random inputs as it stands: its line with `INVOKE_ARGS` that is a comment names",
            "these files and belongs in the place of the one below it.",
        ]
    return [*lines, ""]


def _handed_over(design: Design) -> list[str]:
    """Say where the IP core, the bitstream and the driver are."""
    if design.backend not in _AMD:
        return []
    lines = [
        "## The IP core",
        "",
        f"`export` leaves it in `{design.name}_prj/solution1/impl/ip`: add that folder to the IP repositories of a",
        "Vivado project (Settings, IP, Repository), or unpack the zip file in it elsewhere.",
        "",
    ]
    if design.backend == "VivadoAccelerator":
        lines += [
            "## The accelerator",
            "",
            "`design.tcl` puts the core behind a DMA; after `synth` and `export`, `bitfile` makes",
            f"`{design.name}_vivado_accelerator/project_1.runs/impl_1/design_1_wrapper.bit`. Copy it to the board, and",
            "`design_1.hwh` of the same Vivado project, under one name; the driver for PYNQ is `axi_stream_driver.py`.",
            "",
        ]
    return lines


def _ports(design: Design, names: Sequence[str]) -> str:
    layers = [design[name] for name in names]
    return ", ".join(f"{x.name} ({' x '.join(map(str, x.output_shape))}) {x.types['result']}" for x in layers)
