"""Plain values: masks, held values, slices, weight paths, fixed-point types, signed digits, arrays of real numbers."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
