"""Suggests changes to a design that does not fit its part; each is priced, and the best stands first.

`advise(design, target)` reads a `Design` and changes a copy of it as each knob would (`other_layouts`, `narrower`,
`sparser`, `structure`, `part`). It prices the copies with `fpgaprune.estimate` and puts them in order (`order`).
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
