"""Removes dead and unread channels from a Keras network, and shows that the smaller network computes the same.

`planning` writes the `plan` from what `fpgaprune.network` finds needed, `rebuilding` makes the small model, and `proof`
compares the two.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
