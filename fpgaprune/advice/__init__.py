"""Suggests changes to a design that does not fit its part; each is priced, and the best stands first.

`advise(design, target)` reads a `Design`, changes a copy of it as each knob would (`layout`, `narrower`, `sparser`,
`structure`, `part`), prices the copies with `fpgaprune.estimate`, and puts them in order (`order`).
"""

from fpgaprune.advice.advise import advise

__all__ = ["advise"]
