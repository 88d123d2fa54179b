"""A small Verilog project written by hand: two layers between AXI4-Streams, y = 3 * a - b, then relu."""

from pathlib import Path

from fpgaprune.rtl import RtlLayer, RtlPort, VerilogProject
from fpgaprune.values import FixedType

_STREAM = """
module {name} (
    input  wire        clk,
    input  wire        rst,
    input  wire [15:0] s_axis_tdata,
    input  wire        s_axis_tvalid,
    output wire        s_axis_tready,
    input  wire        s_axis_tlast,
    output {kind}  [{high}:0] m_axis_tdata,
    output {kind}         m_axis_tvalid,
    input  wire        m_axis_tready,
    output {kind}         m_axis_tlast
);
{body}
endmodule
"""

_LINEAR = _STREAM.format(
    name="linear",
    kind="reg ",
    high=15,
    body="""    wire signed [7:0] a = s_axis_tdata[7:0];
    wire signed [7:0] b = s_axis_tdata[15:8];
    assign s_axis_tready = m_axis_tready || !m_axis_tvalid;
    always @(posedge clk)
        if (rst) m_axis_tvalid <= 1'b0;
        else if (s_axis_tready) begin
            m_axis_tvalid <= s_axis_tvalid;
            m_axis_tlast  <= s_axis_tlast;
            m_axis_tdata  <= a + (a <<< 1) - b;
        end""",
)

_RELU = _STREAM.format(
    name="relu",
    kind="wire",
    high=14,
    body="""    assign s_axis_tready = m_axis_tready;
    assign m_axis_tvalid = s_axis_tvalid;
    assign m_axis_tlast  = s_axis_tlast;
    assign m_axis_tdata  = s_axis_tdata[15] ? 15'd0 : s_axis_tdata[14:0];""",
)

_TOP = _STREAM.format(
    name="tiny",
    kind="wire",
    high=14,
    body="""    wire [15:0] link_tdata;
    wire link_tvalid, link_tready, link_tlast;
    linear linear_i (
        .clk(clk), .rst(rst), .s_axis_tdata(s_axis_tdata), .s_axis_tvalid(s_axis_tvalid),
        .s_axis_tready(s_axis_tready), .s_axis_tlast(s_axis_tlast), .m_axis_tdata(link_tdata),
        .m_axis_tvalid(link_tvalid), .m_axis_tready(link_tready), .m_axis_tlast(link_tlast));
    relu relu_i (
        .clk(clk), .rst(rst), .s_axis_tdata(link_tdata), .s_axis_tvalid(link_tvalid),
        .s_axis_tready(link_tready), .s_axis_tlast(link_tlast), .m_axis_tdata(m_axis_tdata),
        .m_axis_tvalid(m_axis_tvalid), .m_axis_tready(m_axis_tready), .m_axis_tlast(m_axis_tlast));""",
)

SOURCES = {"rtl/linear.v": _LINEAR, "rtl/relu.v": _RELU, "rtl/tiny.v": _TOP}


def tiny_project(folder: Path) -> VerilogProject:
    """The project, written to `folder`."""
    for name, text in SOURCES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    byte, wide = FixedType(8, 8), FixedType(15, 15, signed=False)
    project = VerilogProject(
        path=folder,
        name="tiny",
        top="tiny",
        clock_ns=10.0,
        files=tuple(SOURCES),
        layers=(
            RtlLayer("linear", "linear", ("rtl/linear.v",), "2 -> 1", {"result": "fixed<16,16>"}, kept=2, dropped=1),
            RtlLayer("relu", "relu", ("rtl/relu.v",), "1 -> 1", {"result": "ufixed<15,15>"}, note="by hand"),
        ),
        inputs=(RtlPort("input", "s_axis", (2,), 1, 2, byte),),
        outputs=(RtlPort("relu", "m_axis", (1,), 1, 1, wide),),
    )
    project.save()
    return project
