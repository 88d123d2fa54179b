"""From a Keras model to a `Design`: fold, ranges, types, layouts and operations, without hls4ml."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
