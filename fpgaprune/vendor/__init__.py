"""Vendor tools: this package finds and runs them, and reads their reports into one vocabulary."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
