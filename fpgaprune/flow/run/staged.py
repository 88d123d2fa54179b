"""`counts_of_run`: what the network of a run takes as our Verilog, stage by stage, in the layout that was measured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from fpgaprune.design import Design
from fpgaprune.estimate import verilog_price
from fpgaprune.fabric import family_of, priced_as
from fpgaprune.flow.run.run_directory import RunDirectory
from fpgaprune.flow.run.run_verilog import measured_fields
from fpgaprune.measure import Measured, StagedCounts, VerilogPrice
from fpgaprune.target import find_part


def counts_of_run(path: Path) -> Iterator[StagedCounts]:
    """The counts of the run at `path` for each family that it was measured for; none if it was not measured."""
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
    fields: Mapping[str, Any],
    bitstream: Mapping[str, Any] | None = None,
) -> StagedCounts:
    """The counts of the design that `made` estimates for `family`, with what tools counted of the same layout.

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


def _family_of(bitstream: Mapping[str, Any]) -> str:
    return str(family_of(find_part(str(bitstream["device"]))))
