"""fpgaprune: prune a trained Keras network kernel by kernel, prove it, and price it for a named FPGA.

`import fpgaprune as fp` loads no TensorFlow; each public name loads what it needs on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_HOMES = {
    "Design": "fpgaprune.design",
    "Equivalence": "fpgaprune.comparison",
    "FixedType": "fpgaprune.fixed",
    "LayerSpec": "fpgaprune.design",
    "MaskSet": "fpgaprune.masks",
    "Part": "fpgaprune.target",
    "RemovalPlan": "fpgaprune.remove.plan",
    "Target": "fpgaprune.target",
    "FpgaPruneError": "fpgaprune.errors",
    "apply_removal": "fpgaprune.remove.apply",
    "equivalence": "fpgaprune.remove.proof",
    "find_groups": "fpgaprune.remove.splitting",
    "find_part": "fpgaprune.target",
    "list_parts": "fpgaprune.target",
    "plan_removal": "fpgaprune.remove.planning",
    "split_groups": "fpgaprune.remove.splitting",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'fpgaprune' has no attribute {name!r}; it has {', '.join(__all__)}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
