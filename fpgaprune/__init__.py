"""fpgaprune: prune a trained Keras network kernel by kernel, prove it, and price it for a named FPGA.

`import fpgaprune as fp` loads no TensorFlow; each public name loads what it needs on first use.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import Any

from fpgaprune.keras_hook import register_with_keras

__version__ = "0.1.0"

_HOMES = {
    "Adders": "fpgaprune.select.cost",
    "Advice": "fpgaprune.measure",
    "AutoPrecision": "fpgaprune.hls.width_search",
    "Block": "fpgaprune.select.units",
    "Check": "fpgaprune.report",
    "ConstantSparsity": "fpgaprune.select.schedules",
    "Design": "fpgaprune.design",
    "DesignDifference": "fpgaprune.hls.differences",
    "Difference": "fpgaprune.emulate",
    "Equivalence": "fpgaprune.comparison",
    "Estimate": "fpgaprune.measure",
    "FixedType": "fpgaprune.fixed",
    "FpgaPruneError": "fpgaprune.errors",
    "Frozen": "fpgaprune.train",
    "GradualHold": "fpgaprune.select.gradual_hold",
    "GradualLock": "fpgaprune.select.gradual",
    "HeldValues": "fpgaprune.held",
    "HlsProject": "fpgaprune.hls.hls_project",
    "LayerSpec": "fpgaprune.design",
    "LinkSummary": "fpgaprune.report",
    "LockCertificate": "fpgaprune.certificate",
    "LockedOptimizer": "fpgaprune.train",
    "MaskSet": "fpgaprune.masks",
    "Metric": "fpgaprune.report",
    "Multiplier": "fpgaprune.select.units",
    "OneShot": "fpgaprune.select.schedules",
    "Part": "fpgaprune.target",
    "PolynomialDecay": "fpgaprune.select.schedules",
    "Precision": "fpgaprune.hls.precision",
    "Protection": "fpgaprune.select.protection",
    "RemovalPlan": "fpgaprune.remove.plan",
    "ReuseWarning": "fpgaprune.design.reuse_factors",
    "RtlProject": "fpgaprune.fabric",
    "RunReport": "fpgaprune.report",
    "SecondOpinion": "fpgaprune.hls.onnx_opinion",
    "SelectionWarning": "fpgaprune.select.guard",
    "StrategyWarning": "fpgaprune.hls.strategy_advice",
    "Target": "fpgaprune.target",
    "advise": "fpgaprune.advice",
    "apply_removal": "fpgaprune.remove.apply",
    "certify": "fpgaprune.certify.link_checks",
    "check_verilog": "fpgaprune.rtl",
    "close": "fpgaprune.select.closure",
    "design_differences": "fpgaprune.hls.differences",
    "design_from_onnx": "fpgaprune.hls.onnx_route",
    "emulate": "fpgaprune.emulate",
    "equivalence": "fpgaprune.remove.proof",
    "estimate": "fpgaprune.estimate",
    "export_onnx": "fpgaprune.export.onnx_file",
    "find_groups": "fpgaprune.remove.splitting",
    "find_part": "fpgaprune.target",
    "finetune": "fpgaprune.train",
    "first_difference": "fpgaprune.emulate",
    "freeze": "fpgaprune.train",
    "from_fixed": "fpgaprune.select.explicit",
    "from_zeros": "fpgaprune.select.explicit",
    "golden_vectors": "fpgaprune.fabric",
    "guard": "fpgaprune.select.guard",
    "hold_largest": "fpgaprune.select.cheap_values",
    "hold_schedule": "fpgaprune.select.gradual_hold",
    "import_hgq": "fpgaprune.quantise.hgq",
    "import_tfmot": "fpgaprune.select.tfmot_model",
    "layer_reports": "fpgaprune.report",
    "list_parts": "fpgaprune.target",
    "lock": "fpgaprune.train",
    "make_design": "fpgaprune.hls.hls_project",
    "plan_removal": "fpgaprune.remove.planning",
    "prune_rounds": "fpgaprune.select.rounds",
    "quantize": "fpgaprune.hls.quantize",
    "regrow": "fpgaprune.select.regrowth",
    "relock": "fpgaprune.train",
    "rewind": "fpgaprune.select.rounds",
    "second_opinion": "fpgaprune.hls.onnx_opinion",
    "select": "fpgaprune.select.choose",
    "sensitivity": "fpgaprune.select.sensitivity",
    "snapshot": "fpgaprune.select.rounds",
    "split_groups": "fpgaprune.remove.splitting",
    "tfmot_schedule": "fpgaprune.select.schedules",
    "to_hls": "fpgaprune.hls.hls_project",
    "to_verilog": "fpgaprune.fabric",
    "trace": "fpgaprune.emulate",
    "unlock": "fpgaprune.train",
    "weight_arrays": "fpgaprune.weights",
    "write_handoff": "fpgaprune.fabric",
    "write_report": "fpgaprune.report",
}

__all__ = sorted(_HOMES)


class _Package(ModuleType):
    """This package: a public function wins over the subpackage of the same name."""

    def __setattr__(self, name: str, value: object) -> None:
        # Importing `fpgaprune.estimate` binds the module on its parent, which would hide the function `estimate`.
        # The module stays reachable: `from fpgaprune.estimate import ...` and `sys.modules` do not look here.
        if not (name in _HOMES and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'fpgaprune' has no attribute {name!r}; it has {', '.join(__all__)}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]


register_with_keras()
