"""A fixed-point network as plain data, and the scalar functions that its layers compute."""

from fpgaprune.design.network import (
    FORMAT,
    IO_TYPES,
    STRATEGIES,
    Design,
    LayerSpec,
)

__all__ = ["FORMAT", "IO_TYPES", "STRATEGIES", "Design", "LayerSpec"]
