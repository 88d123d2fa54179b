"""Place and route of a Verilog project on a Lattice ECP5."""
