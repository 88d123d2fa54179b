"""The vocabulary of measurement: what hardware takes and offers, at which stage, and the results that state it."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
