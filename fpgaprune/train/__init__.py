"""Exact locks in any optimizer, frozen variables and layers, and fine-tuning under a lock."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
