"""`python -m fpgaprune` is the `fpgaprune` command."""

from fpgaprune.cli import main

main()
