"""What a `Design` computes, bit for bit, in NumPy: its meaning, so it stands just above `design.py`."""

from fpgaprune.emulate.difference import Difference, first_difference
from fpgaprune.emulate.run import emulate, trace

__all__ = ["Difference", "emulate", "first_difference", "trace"]
