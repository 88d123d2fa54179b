"""`testbench_of`: a Verilog test bench that feeds golden vectors, stalls at random, and checks every word."""

from __future__ import annotations

from fpgaprune.fabric.vectors import Vectors
from fpgaprune.rtl import RtlPort, VerilogProject

TOP = "testbench"
PASS, FAIL = "TEST PASSED", "TEST FAILED"


def testbench_of(project: VerilogProject, vectors: Vectors) -> str:
    """Write Verilog-2001 of module `TOP`, which runs beside the vectors' files, prints `PASS` or `FAIL` and ends.

    A shift register with a fixed seed stalls each stream a quarter of the time. The test bench also fails if the last
    word of a sample is not marked, and if nothing has moved for 100,000 cycles.
    """
    inputs = [_source(port, len(vectors.words[port.prefix]), at) for at, port in enumerate(project.inputs)]
    sinks = [_sink(port, len(vectors.words[port.prefix]), at) for at, port in enumerate(project.outputs)]
    ports = [*project.inputs, *project.outputs]
    wires = ["        .clk(clk), .rst(rst)"]
    for port in ports:
        names = [f"{port.prefix}_{signal}" for signal in ("tdata", "tvalid", "tready", "tlast")]
        wires.append("        " + ", ".join(f".{name}({name})" for name in names))
    if project.loads is not None:
        # Nothing is loaded.
        w = project.loads.port.prefix
        wires.append(f"        .{w}_tdata({project.loads.port.width_bits}'d0), .{w}_tvalid(1'b0), .{w}_tlast(1'b0)")
    connections = ",\n".join(wires)
    finished = " && ".join(f"{port.prefix}_count == {len(vectors.words[port.prefix])}" for port in project.outputs)
    moves = " || ".join(f"({port.prefix}_tvalid && {port.prefix}_tready)" for port in ports)
    return f"""// {vectors.samples} samples through {project.top}, with stalls, against what the emulation gives.
`timescale 1ns / 1ps
module {TOP};
    reg clk = 1'b0;
    reg rst = 1'b1;
    always #{project.clock_ns / 2:g} clk = !clk;
    initial begin
        repeat (8) @(posedge clk);
        rst <= 1'b0;
    end

    // Maximal-length shift register: where the stalls are is the same in every simulator.
    reg [22:0] noise = 23'd1;
    always @(posedge clk) noise <= {{noise[21:0], noise[22] ^ noise[17]}};

    integer errors = 0;
    integer idle = 0;
{"".join([*inputs, *sinks])}
    {project.top} dut (
{connections}
    );

    always @(posedge clk) begin
        idle <= (rst || {moves}) ? 0 : idle + 1;
        if (!rst && ({finished})) begin
            if (errors == 0) $display("{PASS}: {vectors.samples} samples");
            else $display("{FAIL}: %0d errors", errors);
            $finish;
        end else if (idle > 100000) begin
            $display("{FAIL}: nothing has moved for 100000 cycles");
            $finish;
        end
    end
endmodule
"""


def vector_file(port: RtlPort) -> str:
    """Return the name of the file that holds the words of `port`."""
    return f"{port.prefix}.hex"


def _source(port: RtlPort, words: int, number: int) -> str:
    name, tap = port.prefix, number % 17
    return f"""
    reg  [{port.width_bits - 1}:0] {name}_words [0:{words - 1}];
    integer {name}_count = 0;
    reg  {name}_tvalid = 1'b0;
    wire {name}_tready;
    wire [{port.width_bits - 1}:0] {name}_tdata = {name}_words[{name}_count];
    wire {name}_tlast = {name}_count % {port.beats} == {port.beats - 1};
    initial $readmemh("{vector_file(port)}", {name}_words);
    always @(posedge clk)
        if (!rst) begin
            // Once offered, a word stays until it is taken.
            if ({name}_tvalid && {name}_tready) begin
                {name}_count  <= {name}_count + 1;
                {name}_tvalid <= {name}_count + 1 < {words} && (noise[{tap}] || noise[{tap + 3}]);
            end else if (!{name}_tvalid)
                {name}_tvalid <= {name}_count < {words} && (noise[{tap}] || noise[{tap + 3}]);
        end
"""


def _sink(port: RtlPort, words: int, number: int) -> str:
    name, tap = port.prefix, (number + 7) % 17
    return f"""
    reg  [{port.width_bits - 1}:0] {name}_words [0:{words - 1}];
    integer {name}_count = 0;
    reg  {name}_tready = 1'b0;
    wire {name}_tvalid, {name}_tlast;
    wire [{port.width_bits - 1}:0] {name}_tdata;
    initial $readmemh("{vector_file(port)}", {name}_words);
    always @(posedge clk) begin
        {name}_tready <= noise[{tap}] || noise[{tap + 5}];
        if (!rst && {name}_tvalid && {name}_tready) begin
            {name}_count <= {name}_count + 1;
            if ({name}_tdata !== {name}_words[{name}_count]) begin
                errors = errors + 1;
                $display("{name} word %0d is %h, wanted %h", {name}_count, {name}_tdata, {name}_words[{name}_count]);
            end
            if ({name}_tlast !== ({name}_count % {port.beats} == {port.beats - 1})) begin
                errors = errors + 1;
                $display("{name} word %0d has tlast %b", {name}_count, {name}_tlast);
            end
        end
    end
"""
