"""Streaming Verilog of a `Design`: generated, simulated, and handed to open and vendor tools."""

from fpgaprune.rtl.project import RtlLayer, RtlProject

__all__ = ["RtlLayer", "RtlProject"]
