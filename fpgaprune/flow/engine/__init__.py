"""Reads a flow file, runs its stages in order, and verifies what a run claims."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
