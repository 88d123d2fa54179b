"""Estimates of resources and latency, without a vendor tool.

`estimate(design, target)` prices a `Design`. Layers become neutral features (`features`). Features become quantities of
hardware (`multiplications`, `window`, `layer_hardware`; `compose` puts them together). Quantities become LUTs and
flip-flops by coefficients that were fitted to vendor reports (`coefficients`, `fit`).
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
