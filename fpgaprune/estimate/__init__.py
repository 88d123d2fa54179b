"""Estimates of resources and latency, without a vendor tool.

`estimate(design, target)` prices a `Design`. `features` describes its layers; `products`, `window` and `elementwise`
turn them into quantities of hardware, which `compose` puts together; `coefficients`, fitted to vendor reports by `fit`,
turn the quantities into LUTs and flip-flops.
"""

from fpgaprune.estimate.price import estimate

__all__ = ["estimate"]
