"""Verilog text of the top module: layers, forks and queues, and the AXI4-Stream ports around them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fpgaprune.rtl.project import RtlPort


@dataclass(frozen=True)
class Wire:
    """A stream inside the top module, `<name>_data`, `<name>_valid` and `<name>_ready`."""

    name: str
    bits: int

    def text(self) -> str:
        """Write the declaration of the wires of the stream."""
        n = self.name
        return f"    wire [{self.bits - 1}:0] {n}_data;\n    wire {n}_valid;\n    wire {n}_ready;\n"


@dataclass(frozen=True)
class Placed:
    """Part of the top module, as text; `reset` names its own reset register, if it has one."""

    text: str
    reset: str = ""

    @classmethod
    def entry(cls, port: RtlPort, wire: str, gate: str = "") -> Placed:
        """Write what feeds `wire` from an input port, while the condition `gate` holds if there is one."""
        p, is_open = port.prefix, f"~starting & {gate}" if gate else "~starting"
        return cls(
            f"    assign {wire}_data = {p}_tdata;\n    assign {wire}_valid = {p}_tvalid & {is_open};\n"
            f"    assign {p}_tready = {wire}_ready & {is_open};\n    wire unused_{p}_tlast = {p}_tlast;\n"
        )

    @classmethod
    def exit(cls, port: RtlPort, wire: str) -> Placed:
        """Assign the stream `wire` to an output port."""
        p = port.prefix
        return cls(
            f"    assign {p}_tdata = {wire}_data;\n    assign {p}_tvalid = {wire}_valid & ~starting;\n"
            f"    assign {wire}_ready = {p}_tready;\n"
            f"    fp_last #(.BEATS({port.beats})) {p}_last (\n"
            f"        .clk(clk), .rst(reset_{p}), .valid({p}_tvalid), .ready({p}_tready), .last({p}_tlast)\n    );\n",
            f"reset_{p}",
        )

    @classmethod
    def fork(cls, name: str, bits: int, source: str, one: str, two: str) -> Placed:
        """Write the fork of `source` to `one` and `two`."""
        return cls(
            f"    fp_fork #(.WIDTH({bits})) {name} (\n        .clk(clk), .rst(reset_{name}),\n"
            f"{_stream('s', source)},\n{_stream('a', one)},\n{_stream('b', two)}\n    );\n",
            f"reset_{name}",
        )

    @classmethod
    def queue(cls, module: str, name: str, source: str, target: str) -> Placed:
        """Write the queue of `module` in which beats of `source` wait before `target`."""
        return cls(
            f"    {module} {name} (\n        .clk(clk), .rst(reset_{name}),\n"
            f"{_stream('s', source)},\n{_stream('m', target)}\n    );\n",
            f"reset_{name}",
        )

    @classmethod
    def layer(cls, module: str, clocked: bool, sources: Sequence[str], target: str, more: Sequence[str] = ()) -> Placed:
        """Return the module of a layer between `sources` and `target`, with `more` connections."""
        prefixes = ("a", "b") if len(sources) == 2 else ("s",)
        rows = [f"        .clk(clk), .rst(reset_{module})"] if clocked else []
        rows += more
        rows += [_stream(prefix, source) for prefix, source in zip(prefixes, sources, strict=True)]
        joined = ",\n".join([*rows, _stream("m", target)])
        return cls(f"    {module} {module}_layer (\n{joined}\n    );\n", f"reset_{module}" if clocked else "")


def top_text(
    module: str,
    head: str,
    inputs: Sequence[RtlPort],
    outputs: Sequence[RtlPort],
    wires: Sequence[Wire],
    placed: Sequence[Placed],
) -> str:
    """Return the top module."""
    ports = ["    input wire clk", "    input wire rst"]
    ports += [_port(port, "input", "output") for port in inputs]
    ports += [_port(port, "output", "input") for port in outputs]
    joined = ",\n".join(ports)
    body = _reset([part.reset for part in placed if part.reset])
    body += "".join(wire.text() for wire in wires) + "".join(part.text for part in placed)
    return f"{head}module {module} (\n{joined}\n);\n{body}endmodule\n"


def _reset(names: Sequence[str]) -> str:
    """Write a reset that takes each part a cycle after the one before it, so that no net of it spans the device.

    A part gets no old data after its reset, because the part before it was reset earlier. The ports open
    after the last reset.
    """
    bits = len(names).bit_length()
    chain = "".join(f"        {name} <= {before};\n" for before, name in zip(["rst", *names], names, strict=False))
    return (
        f"    // Each part is reset a cycle after the one before it, and the ports wait for the last.\n"
        f"    reg starting;\n    reg [{bits - 1}:0] resets_to_go;\n    reg {', '.join(names)};\n"
        "    always @(posedge clk) begin\n"
        f"        starting <= rst | (resets_to_go != {bits}'d0);\n"
        f"        if (rst) resets_to_go <= {bits}'d{len(names)};\n"
        f"        else if (resets_to_go != {bits}'d0) resets_to_go <= resets_to_go - {bits}'d1;\n"
        f"{chain}    end\n"
    )


def _port(port: RtlPort, forward: str, backward: str) -> str:
    p = port.prefix
    return (
        f"    // {port.layer}: {port.beats} beats of {port.lanes} x {port.type}\n"
        f"    {forward} wire [{port.width_bits - 1}:0] {p}_tdata,\n    {forward} wire {p}_tvalid,\n"
        f"    {backward} wire {p}_tready,\n    {forward} wire {p}_tlast"
    )


def _stream(prefix: str, wire: str) -> str:
    return f"        .{prefix}_data({wire}_data), .{prefix}_valid({wire}_valid), .{prefix}_ready({wire}_ready)"
