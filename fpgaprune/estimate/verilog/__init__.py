"""Prices of our own Verilog without synthesis."""
