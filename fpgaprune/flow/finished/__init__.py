"""What commands do with a finished run, a saved design or a project: compare, calibrate, advise, hand over."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
