"""Verilog text of the port through which weights are loaded, and of what keeps loads and samples apart."""

from __future__ import annotations

from collections.abc import Sequence

from fpgaprune.rtl.planned import Instance
from fpgaprune.rtl.project import RtlPort

PREFIX = "w_axis"
_PARTS = ("data", "valid", "end")


def gate_text(port: RtlPort, inputs: Sequence[RtlPort], outputs: Sequence[RtlPort], layers: int) -> str:
    """The body of the top module before its layers: loads on their way through `layers` of them, and the gate."""
    p = port.prefix
    bits = {"data": f"[{port.width_bits - 1}:0] ", "valid": "", "end": ""}
    first = {
        "data": f"{p}_tdata",
        "valid": f"{p}_tvalid & {p}_tready",
        "end": f"{p}_tvalid & {p}_tready & {p}_tlast",
    }
    wires = "".join(f"    wire {bits[part]}{_wire(0, layers, part)} = {first[part]};\n" for part in _PARTS)
    wires += "".join(
        f"    wire {bits[part]}{_wire(number, layers, part)};\n" for number in range(1, layers + 1) for part in _PARTS
    )
    taken = ", ".join(f"{one.prefix}_tvalid & {one.prefix}_tready" for one in reversed(inputs))
    left = ", ".join(f"{one.prefix}_tvalid & {one.prefix}_tready & {one.prefix}_tlast" for one in reversed(outputs))
    counted = "".join(
        f"    fp_last #(.BEATS({one.beats})) {one.prefix}_counted (\n        .clk(clk), .rst(reset_gate), "
        f".valid({one.prefix}_tvalid), .ready({one.prefix}_tready), .last(gate_lasts[{number}])\n    );\n"
        for number, one in enumerate(inputs)
    )
    count = len(inputs)
    return (
        f"    // Samples and loads of weights take turns.\n{wires}    wire gate_ready;\n"
        f"    wire [{count - 1}:0] gate_open;\n    wire [{count - 1}:0] gate_lasts;\n"
        f"    assign {p}_tready = gate_ready & ~starting;\n"
        f"    fp_gate #(.INPUTS({count}), .OUTPUTS({len(outputs)})) gate (\n        .clk(clk), .rst(reset_gate),\n"
        f"        .beats({{{taken}}}), .lasts(gate_lasts), .open(gate_open),\n        .ends({{{left}}}),\n"
        f"        .valid({p}_tvalid & ~starting), .last({p}_tlast), .ready(gate_ready),\n"
        f"        .arrived({_wire(layers, layers, 'end')})\n    );\n{counted}"
    )


def gate_parts(inputs: Sequence[RtlPort], outputs: Sequence[RtlPort]) -> list[Instance]:
    """The modules of that text."""
    gate = Instance("fp_gate", {"INPUTS": len(inputs), "OUTPUTS": len(outputs), "COUNT": 16})
    return [gate, *(Instance("fp_last", {"BEATS": port.beats}) for port in inputs)]


def open_input(number: int) -> str:
    """The condition under which input `number` takes a beat."""
    return f"gate_open[{number}]"


def passed_on(number: int, layers: int) -> str:
    """The connections of a layer, the one with `number` of those that take loads, to the loads that come and go."""
    ends = ((prefix, number + way) for way, prefix in enumerate("ln"))
    return ",\n".join(
        "        " + ", ".join(f".{prefix}_{part}({_wire(at, layers, part)})" for part in _PARTS) for prefix, at in ends
    )


def _wire(number: int, layers: int, part: str) -> str:
    """What comes to the layer with `number`; behind the last one only the end is read."""
    return f"{'unused_' if number == layers and part != 'end' else ''}load{number}_{part}"
