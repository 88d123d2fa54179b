"""What a `Design` computes, bit for bit, in NumPy: its meaning, so it stands just above `design.py`."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
