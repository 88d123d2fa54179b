"""fpgaprune: prune a trained Keras network kernel by kernel, prove it, and price it for a named FPGA.

`import fpgaprune as fp` loads no TensorFlow. `__init__.pyi` lists the public names; each is loaded on first use. Where
a function and a subpackage share a name, as `estimate` does, `fp.estimate` is the function.
"""

from __future__ import annotations

from typing import Any

import lazy_loader

from fpgaprune.keras_hook import register_with_keras

__version__ = "0.1.0"

_load, _, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> Any:
    if name in __all__:
        return _load(name)
    raise AttributeError(f"module 'fpgaprune' has no attribute {name!r}; it has {', '.join(__all__)}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]


register_with_keras()
