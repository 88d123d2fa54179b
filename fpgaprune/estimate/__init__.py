"""Estimates of resources and latency, without a vendor tool.

`estimate(design, target)` prices a `Design`. Layers become neutral features (`features`), features become quantities of
hardware (`products`, `window`, `elementwise`, put together in `compose`), and quantities become LUTs and flip-flops by
coefficients that were fitted to vendor reports (`coefficients`, `fit`).
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
