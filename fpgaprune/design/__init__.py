"""A fixed-point network as plain data, and the scalar functions that its layers compute."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
