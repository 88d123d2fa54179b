"""The staged flow: configuration, run folder, and the stages composed from the stage packages."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
