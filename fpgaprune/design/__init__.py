"""A fixed-point network as plain data, and the scalar functions that its layers compute."""

from fpgaprune.design.network import (
    FORMAT,
    IO_TYPES,
    STRATEGIES,
    Design,
    LayerSpec,
)
from fpgaprune.design.verilog_layout import VerilogLayout

__all__ = ["FORMAT", "IO_TYPES", "STRATEGIES", "Design", "LayerSpec", "VerilogLayout"]
