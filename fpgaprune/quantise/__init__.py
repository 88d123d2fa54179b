"""Keras layers that round as the hardware does, and train through the rounding."""
