"""The stage `measure`: the network as Verilog, through open tools."""

from __future__ import annotations

from typing import Any

from fpgaprune.design import Design
from fpgaprune.errors import RtlError, TargetError, ToolError, UnsupportedLayerError
from fpgaprune.flow.context import Context
from fpgaprune.flow.facts import proven
from fpgaprune.flow.samples import at, for_keras


def measure(context: Context) -> dict[str, Any]:
    """`measure.json` says what open tools made of the network as Verilog, where the flow asks for it.

    The Verilog is the certificate's last link: no product of a locked weight is in it.
    """
    settings = context.config.measure
    if not settings.asks:
        context.run.write_json("measure.json", None)
        return {"left_out": "the flow names no family, no seeds and no board in [measure]"}
    from fpgaprune.flow.measuring import check_measured, measure_project
    from fpgaprune.flow.simulating import simulate_verilog
    from fpgaprune.rtl import to_verilog

    design, part = Design.load(context.run.file("design.json")), context.config.target.target().part
    links: dict[str, Any] = {}
    try:
        project = to_verilog(design, context.run.file("rtl"), interval=settings.interval)
        link = check_measured(project, design, context.masks("removed_masks.npz"))
        links = {"not_read": link} if isinstance(link, str) else proven(link)
        some = for_keras(at(context.data.x_test, slice(settings.simulate)))
        simulation = simulate_verilog(project, design, some, settings.timeout_s, context.progress.step)
        found = measure_project(project, design, part, settings, context.run.path, context.progress.step, simulation)
    except (ToolError, RtlError, TargetError, UnsupportedLayerError) as error:
        context.run.write_json("measure.json", None)
        return {"left_out": str(error), **links}
    context.run.write_json("measure.json", found.to_json())
    return links
