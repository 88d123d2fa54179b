"""The Verilog of a run, and its counts: what was measured of it, and what was written for boards."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from fpgaprune.design import Design, Input
from fpgaprune.estimate import verilog_price
from fpgaprune.fabric import family_of, find_family, priced_as
from fpgaprune.flow.run.run_directory import RunDirectory
from fpgaprune.measure import Measured, StagedCounts, VerilogPrice
from fpgaprune.rtl import VerilogProject, to_verilog
from fpgaprune.target import find_part

_LIST = "project.json"


def layout_was_asked_for(run: RunDirectory) -> bool:
    """Return whether the run has Verilog for an interval or a part that its measurement was asked for."""
    asked = run.manifest["config"].get("measure", {})
    return _was_measured(run) and bool(asked.get("interval") or asked.get("part"))


def measured_fields(run: RunDirectory) -> dict[str, Any] | None:
    """Return the fields of `VerilogLayout` that the run was measured in; None if it was not measured."""
    if not _was_measured(run):
        return None
    content = run.read_json("measure.json")
    chosen = None if content is None else Measured.from_json(content).layout
    asked = run.manifest["config"].get("measure", {})
    fields = {"interval": asked.get("interval", 0)} if chosen is None else chosen.settings
    return {**fields, **operands_for(asked.get("families", ()), asked.get("seeds") or asked.get("board"))}


def operands_for(families: Sequence[str], placed: object = None) -> dict[str, Any]:
    """Return the fields of `VerilogLayout` for a measurement: of small LUTs where no family adds three operands.

    Args:
        families: that the Verilog is synthesised for.
        placed: whether it is placed and routed too, which is done for families that add two.
    """
    three = any(find_family(name).adds_three for name in families)
    return {"operands": 2, "tables": 4} if not three and (families or placed) else {}


def verilog_of(run: RunDirectory, design: Design, **asked: Any) -> VerilogProject:
    """Return the Verilog in the layout `asked` for (fields of `VerilogLayout`); else that of the run's measurement.

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
    """Return every Verilog that there is of the run's design."""
    written = sorted(path.parent for path in _written(run).glob(f"*/{_LIST}"))
    return [VerilogProject.load(folder) for folder in ([run.file("rtl")] if _was_measured(run) else []) + written]


def _was_measured(run: RunDirectory) -> bool:
    return run.file("rtl").joinpath(_LIST).is_file()


def _written(run: RunDirectory) -> Path:
    """Return the folder of Verilog for boards, one for each design that the run ever had."""
    design = "".join(str(digest) for digest in run.digests(("design.json", "design.npz")).values())
    return run.file("synth") / "verilog" / hashlib.sha256(design.encode()).hexdigest()[:16]


def counts_of_run(path: Path) -> Iterator[StagedCounts]:
    """Yield the counts of the run at `path` for each family that it was measured for; none if it was not measured."""
    run = RunDirectory.existing(path)
    fields = measured_fields(run)
    content = None if fields is None else run.read_json("measure.json")
    if fields is None or content is None:
        return
    measured, design = Measured.from_json(content), Design.load(run.file("design.json"))
    families = [*measured.synthesis, *([] if measured.route is None else [measured.route.stage.family])]
    if measured.bitstream is not None:
        families.append(_family_of(measured.bitstream))
    for family in dict.fromkeys(families):
        yield staged_counts(run, verilog_price(design, priced_as(family), **fields), family, fields)


def staged_counts(
    run: RunDirectory | None,
    made: VerilogPrice,
    family: str,
    fields: Mapping[str, object],
    bitstream: Mapping[str, Any] | None = None,
) -> StagedCounts:
    """Return the counts of the design that `made` estimates for `family`, with what tools counted of the same layout.

    Args:
        run: the run of the design; None if there is none.
        made: the estimate.
        family: of open synthesis; that of the estimate, or one for which it stands.
        fields: of `VerilogLayout`, in which the design was estimated; counts of another layout stay out.
        bitstream: one of this layout, as JSON data; that of the measurement unless given.
    """
    content = None if run is None or measured_fields(run) != dict(fields) else run.read_json("measure.json")
    if content is None:
        return StagedCounts.of(made, family, bitstream=bitstream)
    found = Measured.from_json(content)
    route = found.route if found.route is not None and found.route.stage.family == family else None
    made_for = bitstream or found.bitstream
    own = made_for if made_for is not None and _family_of(made_for) == family else None
    return StagedCounts.of(made, family, found.synthesis.get(family), route, own)


def _family_of(bitstream: Mapping[str, object]) -> str:
    return str(family_of(find_part(str(bitstream["device"]))))
