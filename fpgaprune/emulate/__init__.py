"""What a `Design` computes, bit for bit, in NumPy."""

from fpgaprune.emulate.difference import Difference, first_difference
from fpgaprune.emulate.run import emulate, trace

__all__ = ["Difference", "emulate", "first_difference", "trace"]
