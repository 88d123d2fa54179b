"""iCE40: the bits of a bitstream become a netlist by the chip database of nextpnr."""
