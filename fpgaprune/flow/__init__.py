"""The staged flow: configuration, run directory, and the stages composed from the stage packages."""
