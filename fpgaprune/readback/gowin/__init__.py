"""Gowin: the fuses of a bitstream become a netlist by the database of Apycula."""
