"""Verilog projects written by hand: modules between AXI4-Streams, the first of which takes two bytes."""

from fpgaprune.rtl import RtlPort, VerilogProject
from fpgaprune.values import FixedType


def stream_module(name, bits, body, kind="reg"):
    """A module that sends words of `bits` bits, whose outputs are a `reg` or a `wire`."""
    return f"""
module {name} (
    input  wire        clk,
    input  wire        rst,
    input  wire [15:0] s_axis_tdata,
    input  wire        s_axis_tvalid,
    output wire        s_axis_tready,
    input  wire        s_axis_tlast,
    output {kind:4} [{bits - 1}:0] m_axis_tdata,
    output {kind:4}        m_axis_tvalid,
    input  wire        m_axis_tready,
    output {kind:4}        m_axis_tlast
);
{body}
endmodule
"""


def project_by_hand(folder, name, modules, layers, kind):
    """The project of `modules`, the top `name` among them, written to `folder`; numbers of type `kind` leave it."""
    for module, text in modules.items():
        path = folder / "rtl" / f"{module}.v"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    project = VerilogProject(
        path=folder,
        name=name,
        top=name,
        clock_ns=10.0,
        files=tuple(f"rtl/{module}.v" for module in modules),
        layers=layers,
        inputs=(RtlPort("input", "s_axis", (2,), 1, 2, FixedType(8, 8)),),
        outputs=(RtlPort(layers[-1].layer, "m_axis", (1,), 1, 1, kind),),
    )
    project.save()
    return project
