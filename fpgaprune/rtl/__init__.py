"""Streaming Verilog of a `Design`: generated, simulated, certified, and handed to open and vendor tools."""

from fpgaprune.rtl.generate import to_verilog
from fpgaprune.rtl.options import Options
from fpgaprune.rtl.project import RtlLayer, RtlPort, VerilogProject
from fpgaprune.rtl.read_back import check_verilog

__all__ = ["Options", "RtlLayer", "RtlPort", "VerilogProject", "check_verilog", "to_verilog"]
