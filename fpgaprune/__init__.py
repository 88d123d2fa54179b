"""fpgaprune: prune a trained Keras network kernel by kernel, prove it, and price it for a named FPGA.

`import fpgaprune as fp` loads no TensorFlow. `__init__.pyi` lists the names of `fp`; each is loaded on first use. What
a user needs less often is imported from its room: `from fpgaprune.select import Block`. Where a function and a room
share a name, `fp.select` is the function; `dir(fp)` and type checkers say the same.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import lazy_loader

from fpgaprune.keras_hook import register_with_keras

__version__ = "0.1.0"

_load, _, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> Any:
    if name in __all__:
        return _load(name)
    from pkgutil import iter_modules

    rooms = [room.name for room in iter_modules(__path__) if room.ispkg]
    offering = [f"fpgaprune.{room}" for room in rooms if name in import_module(f"fpgaprune.{room}").__all__]
    known = f"import it from {' or '.join(offering)}" if offering else f"it has {', '.join(__all__)}"
    raise AttributeError(f"module 'fpgaprune' has no attribute {name!r}; {known}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]


register_with_keras()
