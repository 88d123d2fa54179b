"""The families that open tools place and route, and every open tool."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from math import inf

from fpgaprune.errors import TargetError, ToolError
from fpgaprune.fabric.cells import family_of
from fpgaprune.fabric.devices import Placed
from fpgaprune.fabric.ecp5.router import ECP5
from fpgaprune.fabric.gatemate import GATEMATE
from fpgaprune.fabric.gowin import GOWIN
from fpgaprune.fabric.ice40 import ICE40
from fpgaprune.fabric.nexus import NEXUS
from fpgaprune.fabric.open_tools import YOSYS, OpenTool, find_open_tool
from fpgaprune.fabric.router import Router
from fpgaprune.fabric.verilator import simulator_version
from fpgaprune.target import Part

ROUTERS = {router.family: router for router in (ECP5, *ICE40, *GOWIN, NEXUS, GATEMATE)}
# Families that share a program name it once.
OPEN_TOOLS = tuple(dict.fromkeys((YOSYS, *(tool for router in ROUTERS.values() for tool in router.tools))))


def find_router(family: str) -> Router:
    """Return the router of `family`.

    Raises:
        TargetError: no open tool places and routes that family.
    """
    if family not in ROUTERS:
        raise TargetError(f"place and route for family {family!r} is not offered; wanted one of {', '.join(ROUTERS)}")
    return ROUTERS[family]


def price_family_of(part: Part) -> str | None:
    """Return the family whose price of Verilog stands for `part`; None if open synthesis does not know the part."""
    family = family_of(part)
    return None if family is None else priced_as(family)


def priced_as(family: str) -> str:
    """Return the family whose estimate of our Verilog stands for `family`: that itself, or one with such cells."""
    router = ROUTERS.get(family)
    return family if router is None else router.devices.priced_as or family


def placed_on(part: Part, counts: Mapping[str, float | None], memories: int) -> tuple[Placed, ...]:
    """Return what place and route takes of `part` for estimated `counts` and small `memories`, which are made of LUTs.

    Nothing if no open tool places it.
    """
    router = ROUTERS.get(family_of(part) or "")
    if router is None or part.name not in router.devices.devices:
        return ()
    return router.devices.placed_by_estimate({name: count or 0 for name, count in counts.items()}, memories, part)


def most_small_memories(part: Part) -> float:
    """Return how many small memories, made of LUTs, place and route bears on `part`; `inf` without a limit."""
    router = ROUTERS.get(family_of(part) or "")
    device = None if router is None else router.devices.devices.get(part.name)
    if router is None or device is None:
        return inf
    return min((router.devices.memory_room * places for places in device.memories.values()), default=inf)


def versions_found(family: str) -> list[str]:
    """Return one line for each tool that serves `family`: synthesis, place and route, bitstreams, simulation.

    A line is the tool's version, or the error message if the tool is missing.
    """
    router = find_router(family)
    asked: list[Callable[[], str]] = [partial(_version, tool) for tool in (YOSYS, *router.tools)]
    if router.prepare is not None:
        asked.append(lambda: " ".join(router.made_by()))
    found = []
    for ask in (*asked, simulator_version):
        try:
            found.append(ask())
        except ToolError as error:
            found.append(str(error))
    return found


def _version(tool: OpenTool) -> str:
    return find_open_tool(tool).version
