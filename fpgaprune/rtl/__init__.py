"""Streaming Verilog of a `Design`, as text and plain data: generated, listed, and read back for the certificate."""

from fpgaprune.rtl.generate import to_verilog
from fpgaprune.rtl.project import RtlLayer, RtlPort, VerilogProject
from fpgaprune.rtl.read_back import VERILOG_LINK, check_verilog

__all__ = ["VERILOG_LINK", "RtlLayer", "RtlPort", "VerilogProject", "check_verilog", "to_verilog"]
