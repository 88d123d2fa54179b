"""GateMate: the settings of a bitstream become a netlist by the chip database of nextpnr."""
