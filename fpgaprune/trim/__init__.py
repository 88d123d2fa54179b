"""Fewer bits for single channels, and fewer weights, in a row of Dense layers that is trained."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
