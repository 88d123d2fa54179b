"""The commands. Each reads its arguments, calls one function, and prints."""
