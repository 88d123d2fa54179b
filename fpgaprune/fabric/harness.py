"""`harness_of`: a top module with three pins around a design with hundreds of ports, for place and route.

A shift register feeds every input. Every output goes into a register, and from there into a signature register that
is shifted out. So nextpnr can leave out no logic, and no wide port needs pins. All paths of the design start and end
in a register beside it.
"""

from __future__ import annotations

from collections.abc import Iterator

from fpgaprune.rtl import RtlPort, VerilogProject

TOP = "fpgaprune_harness"


def harness_of(project: VerilogProject) -> str:
    """Write Verilog of module `TOP` (pins `clk`, `d`, `q`) with the project's top module inside."""
    feeds, seen = list(_inputs(project)), list(_outputs(project))
    ports = [("clk", "clk"), *_slices("feed", feeds), *_slices("seen", seen)]
    wires = ",\n".join(f"        .{name}({bus})" for name, bus in ports)
    ins, outs = sum(width for _, width in feeds), sum(width for _, width in seen)
    return f"""// Three pins around {project.top}: {ins} inputs from a shift register, {outs} outputs into a signature.
module {TOP} (
    input  wire clk,
    input  wire d,
    output wire q
);
    reg  [{ins - 1}:0] feed;
    wire [{outs - 1}:0] seen;
    reg  [{outs - 1}:0] held;
    reg  [{outs - 1}:0] signature;
    always @(posedge clk) begin
        feed      <= {{feed[{ins - 2}:0], d}};
        held      <= seen;
        signature <= {{signature[{outs - 2}:0], 1'b0}} ^ held;
    end
    assign q = signature[{outs - 1}];
    {project.top} dut (
{wires}
    );
endmodule
"""


def stub_of(project: VerilogProject) -> str:
    """Write Verilog of the project's top module without a body; its netlist takes the module's place."""
    ports = ["    input wire clk"]
    ports += [f"    input wire [{width - 1}:0] {name}" for name, width in _inputs(project)]
    ports += [f"    output wire [{width - 1}:0] {name}" for name, width in _outputs(project)]
    return f"(* blackbox *)\nmodule {project.top} (\n" + ",\n".join(ports) + "\n);\nendmodule\n"


def _inputs(project: VerilogProject) -> Iterator[tuple[str, int]]:
    """Yield name and width of every input but the clock."""
    yield "rst", 1
    for port in _streams_in(project):
        yield f"{port.prefix}_tdata", port.width_bits
        yield f"{port.prefix}_tvalid", 1
        yield f"{port.prefix}_tlast", 1
    for port in project.outputs:
        yield f"{port.prefix}_tready", 1


def _outputs(project: VerilogProject) -> Iterator[tuple[str, int]]:
    for port in _streams_in(project):
        yield f"{port.prefix}_tready", 1
    for port in project.outputs:
        yield f"{port.prefix}_tdata", port.width_bits
        yield f"{port.prefix}_tvalid", 1
        yield f"{port.prefix}_tlast", 1


def _streams_in(project: VerilogProject) -> tuple[RtlPort, ...]:
    return project.inputs if project.loads is None else (*project.inputs, project.loads.port)


def _slices(bus: str, ports: list[tuple[str, int]]) -> Iterator[tuple[str, str]]:
    low = 0
    for name, width in ports:
        yield name, f"{bus}[{low + width - 1}:{low}]"
        low += width
