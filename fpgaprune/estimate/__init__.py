"""Estimates of resources and latency, without a vendor tool.

`estimate(design, target)` prices a `Design`. `features` describes its layers. `multiplications`, `window` and
`layer_hardware` turn them into quantities of hardware, which `compose` puts together. `coefficients`, fitted to vendor
reports by `fit`, turn the quantities into LUTs and flip-flops.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
