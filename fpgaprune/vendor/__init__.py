"""Vendor tools: they are found and run here, and their reports are read into one vocabulary."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
