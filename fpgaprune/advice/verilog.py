"""Our own Verilog of a design, with as many multipliers as its part has room for."""

from __future__ import annotations

from fpgaprune.advice.edit import Edit
from fpgaprune.advice.flow_file import OwnFlow
from fpgaprune.design import Design
from fpgaprune.errors import DesignError, EstimateError, RtlError, TargetError, UnsupportedLayerError
from fpgaprune.estimate import choose_layout
from fpgaprune.fabric import family_of
from fpgaprune.measure import Prediction
from fpgaprune.target import Target, find_part

KNOB = "our Verilog"
# Of each resource of the part, the share that a layout may take unless the flow says otherwise.
_SHARE = 0.8


def own_verilog(design: Design, target: Target, flow: OwnFlow) -> tuple[Edit, Prediction] | None:
    """The sections of a flow file that lay `design` out as our Verilog on the part of `target`, and its estimate.

    None if open synthesis does not know the part, if there is no such Verilog, or if the flow asks for it already.
    """
    family, asked = family_of(target.part), flow.document.get("measure", {})
    named = str(flow.document.get("target", {}).get("part", target.order_number))
    if family is None or asked.get("part") is not None:
        return None
    try:
        find_part(named)
        chosen = choose_layout(design, target.part, family, share=asked.get("share", _SHARE))
    except (TargetError, EstimateError, RtlError, UnsupportedLayerError, DesignError):
        return None
    keys = {"families": list(dict.fromkeys([*asked.get("families", ()), family])), "part": named}
    # With an interval the layout would be the smallest that keeps it.
    still = {"interval": 0} if asked.get("interval") else {}
    return Edit((KNOB,), {"measure": {**keys, **still}}, design), Prediction.of_verilog(chosen.price, target.part)
