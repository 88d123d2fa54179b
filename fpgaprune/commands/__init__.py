"""Groups of commands, thin: each reads its arguments, calls one function, and prints."""
