"""Place and route of a Verilog project on a Lattice ECP5: carries, macros, floorplan, anchors, bitstreams."""
