"""The Verilog of a run: that of its measurement, and that which was written for boards."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from fpgaprune.design import Design, Input
from fpgaprune.flow.run.run_directory import RunDirectory
from fpgaprune.measure import Measured
from fpgaprune.rtl import VerilogProject, to_verilog

_LIST = "project.json"


def layout_was_asked_for(run: RunDirectory) -> bool:
    """Whether the run has Verilog for an interval or a part that its measurement was asked for."""
    asked = run.manifest["config"].get("measure", {})
    return _was_measured(run) and bool(asked.get("interval") or asked.get("part"))


def measured_fields(run: RunDirectory) -> dict[str, Any] | None:
    """The fields of `VerilogLayout` that the run was measured in; None if it was not measured."""
    if not _was_measured(run):
        return None
    content = run.read_json("measure.json")
    chosen = None if content is None else Measured.from_json(content).layout
    asked = run.manifest["config"].get("measure", {})
    return {"interval": asked.get("interval", 0)} if chosen is None else chosen.settings


def verilog_of(run: RunDirectory, design: Design, **asked: Any) -> VerilogProject:
    """The Verilog in the layout `asked` for (fields of `VerilogLayout`); else that of the run's measurement.

    Raises:
        UnsupportedLayerError, DesignError, RtlError: as for `fpgaprune.to_verilog`.
    """
    if not asked and _was_measured(run):
        return VerilogProject.load(run.file("rtl"))
    # Beats of a sample are no field of a layout: a board's samples may come in narrower ones.
    inputs = [layer.output_shape for layer in design.layers if isinstance(layer.operation, Input)]
    name = hashlib.sha256(json.dumps([asked, inputs], sort_keys=True, default=list).encode()).hexdigest()[:16]
    return to_verilog(design, _written(run) / name, **asked)


def known_verilog(run: RunDirectory) -> list[VerilogProject]:
    """Every Verilog that there is of the run's design."""
    written = sorted(path.parent for path in _written(run).glob(f"*/{_LIST}"))
    return [VerilogProject.load(folder) for folder in ([run.file("rtl")] if _was_measured(run) else []) + written]


def _was_measured(run: RunDirectory) -> bool:
    return run.file("rtl").joinpath(_LIST).is_file()


def _written(run: RunDirectory) -> Path:
    """The folder of Verilog for boards, one for each design that the run ever had."""
    design = "".join(str(digest) for digest in run.digests(("design.json", "design.npz")).values())
    return run.file("synth") / "verilog" / hashlib.sha256(design.encode()).hexdigest()[:16]
