"""The weights of every link, read without the library that wrote them, and their locked elements compared with zero."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
