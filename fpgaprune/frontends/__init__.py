"""Networks of somebody else come in: from a file to a Keras model, its masks and its types.

Each format has one file here, or one folder, and all have one contract: `LoadedNetwork`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
