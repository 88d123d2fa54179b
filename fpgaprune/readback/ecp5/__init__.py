"""Bitstreams of a Lattice ECP5, by Project Trellis's database."""
