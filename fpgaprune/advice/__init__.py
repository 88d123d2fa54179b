"""Suggests changes to a design that does not fit its part; each is priced, and the best stands first.

`advise(design, target)` reads a `Design` and changes a copy of it as each knob would (`narrower`, `sparser`,
`structure`, `part`, `verilog`, and the layouts of `fpgaprune.layout`). It prices the copies with `fpgaprune.estimate`
and puts them in order (`order`). Where a flow made the design, a suggestion is an edit of that flow (`flow_file`), and
its estimate is that of the design which the changed flow makes.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
