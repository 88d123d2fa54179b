"""Reports of a run: one HTML page and JSON; and heat maps of kernels."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
