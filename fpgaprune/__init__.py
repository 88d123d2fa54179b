"""fpgaprune: prune a trained Keras network kernel by kernel, prove it, and price it for a named FPGA.

`import fpgaprune as fp` loads no TensorFlow; each public name loads what it needs on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from fpgaprune.keras_hook import register_with_keras

__version__ = "0.1.0"

_HOMES = {
    "Design": "fpgaprune.design",
    "FixedType": "fpgaprune.fixed",
    "LayerSpec": "fpgaprune.design",
    "MaskSet": "fpgaprune.masks",
    "Part": "fpgaprune.target",
    "Target": "fpgaprune.target",
    "FpgaPruneError": "fpgaprune.errors",
    "Frozen": "fpgaprune.train",
    "LockedOptimizer": "fpgaprune.train",
    "finetune": "fpgaprune.train",
    "find_part": "fpgaprune.target",
    "freeze": "fpgaprune.train",
    "list_parts": "fpgaprune.target",
    "lock": "fpgaprune.train",
    "relock": "fpgaprune.train",
    "unlock": "fpgaprune.train",
}

__all__ = sorted(_HOMES)

register_with_keras()


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'fpgaprune' has no attribute {name!r}; it has {', '.join(__all__)}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
