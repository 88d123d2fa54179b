"""Our own Verilog of a design, with as many multipliers as its part has room for."""

from __future__ import annotations

from fpgaprune.advice.flow_file import OwnFlow
from fpgaprune.design import Design
from fpgaprune.errors import DesignError, EstimateError, RtlError, TargetError, UnsupportedLayerError
from fpgaprune.fabric import family_of
from fpgaprune.layout import DesignLayout, Edit, choose_layout
from fpgaprune.target import Target, find_part

KNOB = "our Verilog"


def own_verilog(design: Design, target: Target, flow: OwnFlow) -> tuple[Edit, DesignLayout] | None:
    """The sections of a flow file that lay `design` out as our Verilog on the part of `target`, and its estimate.

    None if open synthesis does not know the part, if there is no such Verilog, or if the flow asks for it already.
    """
    family, asked = family_of(target.part), flow.document.get("measure", {})
    named = str(flow.document.get("target", {}).get("part", target.order_number))
    if family is None or asked.get("part") is not None:
        return None
    try:
        find_part(named)
        chosen = choose_layout(design, target.part, **{name: asked[name] for name in ("share",) if name in asked})
    except (TargetError, EstimateError, RtlError, UnsupportedLayerError, DesignError):
        return None
    keys = {"families": list(dict.fromkeys([*asked.get("families", ()), family])), "part": named}
    # With an interval the layout would be the smallest that keeps it.
    still = {"interval": 0} if asked.get("interval") else {}
    return Edit((KNOB,), {"measure": {**keys, **still}}, design), DesignLayout.of_chosen(chosen, target.part)
