"""Decides which elements are locked: by score and granularity, or because a user names them."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
