"""The Lattice ECP5's own rules for place and route: carries, macros, floorplan, anchors, bitstreams."""
