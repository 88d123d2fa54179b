"""A small Verilog project written by hand: two layers between AXI4-Streams, y = 3 * a - b, then relu."""

from pathlib import Path

from fpgaprune.rtl import RtlLayer, VerilogProject
from fpgaprune.values import FixedType

from ..by_hand import project_by_hand, stream_module

_LINEAR = stream_module(
    "linear",
    16,
    """    wire signed [7:0] a = s_axis_tdata[7:0];
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

_RELU = stream_module(
    "relu",
    15,
    """    assign s_axis_tready = m_axis_tready;
    assign m_axis_tvalid = s_axis_tvalid;
    assign m_axis_tlast  = s_axis_tlast;
    assign m_axis_tdata  = s_axis_tdata[15] ? 15'd0 : s_axis_tdata[14:0];""",
    "wire",
)

_TOP = stream_module(
    "tiny",
    15,
    """    wire [15:0] link_tdata;
    wire link_tvalid, link_tready, link_tlast;
    linear linear_i (
        .clk(clk), .rst(rst), .s_axis_tdata(s_axis_tdata), .s_axis_tvalid(s_axis_tvalid),
        .s_axis_tready(s_axis_tready), .s_axis_tlast(s_axis_tlast), .m_axis_tdata(link_tdata),
        .m_axis_tvalid(link_tvalid), .m_axis_tready(link_tready), .m_axis_tlast(link_tlast));
    relu relu_i (
        .clk(clk), .rst(rst), .s_axis_tdata(link_tdata), .s_axis_tvalid(link_tvalid),
        .s_axis_tready(link_tready), .s_axis_tlast(link_tlast), .m_axis_tdata(m_axis_tdata),
        .m_axis_tvalid(m_axis_tvalid), .m_axis_tready(m_axis_tready), .m_axis_tlast(m_axis_tlast));""",
    "wire",
)

_MODULES = {"linear": _LINEAR, "relu": _RELU, "tiny": _TOP}


def tiny_project(folder: Path) -> VerilogProject:
    """The project, written to `folder`."""
    layers = (
        RtlLayer("linear", "linear", ("rtl/linear.v",), "2 -> 1", {"result": "fixed<16,16>"}, kept=2, dropped=1),
        RtlLayer("relu", "relu", ("rtl/relu.v",), "1 -> 1", {"result": "ufixed<15,15>"}, note="by hand"),
    )
    return project_by_hand(folder, "tiny", _MODULES, layers, FixedType(15, 15, signed=False))
