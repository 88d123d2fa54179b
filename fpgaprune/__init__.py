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
    "FpgaPruneError": "fpgaprune.errors",
    "LayerSpec": "fpgaprune.design",
    "LockCertificate": "fpgaprune.certificate",
    "LockedOptimizer": "fpgaprune.train",
    "MaskSet": "fpgaprune.masks",
    "Part": "fpgaprune.target",
    "RemovalPlan": "fpgaprune.remove.plan",
    "Target": "fpgaprune.target",
    "apply_removal": "fpgaprune.remove.apply",
    "certify": "fpgaprune.certify.links",
    "equivalence": "fpgaprune.remove.proof",
    "find_part": "fpgaprune.target",
    "finetune": "fpgaprune.train",
    "list_parts": "fpgaprune.target",
    "lock": "fpgaprune.train",
    "plan_removal": "fpgaprune.remove.planning",
    "relock": "fpgaprune.train",
    "unlock": "fpgaprune.train",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'fpgaprune' has no attribute {name!r}; it has {', '.join(__all__)}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
