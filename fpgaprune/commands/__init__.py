"""The commands. Each reads its arguments, calls one function, and prints.

Annotations of a command are values and no texts, which Typer would compile, every one, at each start.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
