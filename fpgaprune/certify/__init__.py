"""Reads the weights of each link without the library that wrote them, and compares the locked elements with zero."""
