"""`place_and_route`: a Verilog project on a named device, with several seeds, and the frequency that it reaches."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from fpgaprune.documents import read_json
from fpgaprune.errors import RtlError, TargetError, ToolTimeoutError, shown
from fpgaprune.fabric import harness
from fpgaprune.fabric.devices import SMALLER, Devices
from fpgaprune.fabric.families import find_router
from fpgaprune.fabric.nextpnr import run_nextpnr
from fpgaprune.fabric.open_tools import Found, find_open_tool
from fpgaprune.fabric.router import Router
from fpgaprune.fabric.side_by_side import Stop, Told, run_side_by_side
from fpgaprune.fabric.wrapped import WrappedNetlist, digest_of, wrapped_netlist
from fpgaprune.files import make_folder, write_bytes
from fpgaprune.measure import PlaceAndRoute, Resources, Routed, Stage, capacity_of, from_plain
from fpgaprune.rtl import VerilogProject


def place_and_route(
    project: VerilogProject,
    family: str = "ecp5",
    device: str | None = None,
    *,
    seeds: int | Sequence[int] = 5,
    package: str | None = None,
    speed: int | None = None,
    target_mhz: float | None = None,
    timeout_s: float = 3600.0,
    cache: str | os.PathLike[str] | None = None,
    workers: int | None = None,
    on_step: Told | None = None,
) -> PlaceAndRoute:
    """The places of `project` on a device of `family`, and the clock frequency that it reaches there.

    Ports are wider than a package has pins, so a harness of shift registers stands around the design; what it takes is
    known by itself and left out of the figures. On an ECP5, registers tied to tiles, the same for every seed, show
    nextpnr a floorplan. Each seed runs in a process of its own and is kept by content, as for `synthesize`. A frequency
    of one family says nothing about another one.

    Args:
        project: as `to_verilog` writes it.
        family: one that `fpgaprune.fabric.families` lists, as `ecp5`.
        device: as `lfe5u-45f`; the smallest one with room to spare unless given (on an ECP5 two fifths of its LUTs,
            three tenths of its registers).
        seeds: how many (1, 2, ...), or which.
        package: of the device; its usual one unless given.
        speed: grade, on an ECP5 6 (slowest) to 8; the slowest unless given.
        target_mhz: frequency to aim at; the project's own clock unless given.
        timeout_s: most seconds for the synthesis, and for each seed.
        cache: as for `synthesize`.
        workers: processes at a time; one a processor unless given.
        on_step: told of seeds done, seeds in all, and what was just found.

    Raises:
        TargetError: the family or the device is unknown, or the design does not fit.
        ToolTimeoutError: synthesis did not end in time; a seed that does not is left out instead.
        ToolError: a tool is missing (the message says how it is installed), or died; logs and results so far are kept.
        RtlError: as for `synthesize`.
    """
    router = find_router(family)
    devices = router.devices
    numbers = list(range(1, seeds + 1)) if isinstance(seeds, int) else list(seeds)
    if not numbers:
        raise TargetError(f"seeds are {seeds!r}; wanted one seed or more")
    part = None if device is None else devices.find(device)
    grade = _grade(devices, speed)
    tool = find_open_tool(router.tool)
    router.made_by()  # A package that is missing is named before synthesis.
    netlist = wrapped_netlist(
        project, router, harness.TOP, harness.harness_of(project), cache=cache, timeout_s=timeout_s
    )
    part = part or devices.smallest(netlist.cells)
    devices.check_fits(project.name, netlist.cells, part)
    asked = target_mhz or 1e3 / project.clock_ns
    options = (*devices.selecting(part, package, grade), "--freq", f"{asked:g}")
    prepared = netlist.prepared(router, part, timeout_s)
    place = netlist.folder / f"{part.name}-{digest_of(tool.version, prepared.name, *options)}"
    make_folder(place)
    tasks = [partial(_route, place, prepared, netlist, router, tool, options, seed, timeout_s) for seed in numbers]
    runs = tuple(run_side_by_side(tasks, workers, on_step, _tell))
    offered = capacity_of(part)
    return PlaceAndRoute(
        part.name,
        package or devices.devices[part.name].package,
        grade,
        tool.version,
        asked,
        runs,
        Resources(**{name: offered[name] for name in devices.sites}),
        Stage(f"route({family})"),
    )


def _grade(devices: Devices, speed: int | None) -> int | None:
    if speed is None:
        return devices.speeds[0] if devices.speeds else None
    if speed not in devices.speeds:
        raise TargetError(
            f"speed grade {speed} of {devices.name}; wanted "
            + (f"one of {', '.join(map(str, devices.speeds))}" if devices.speeds else "none: the part's name has it")
        )
    return speed


def _route(
    folder: Path,
    prepared: Path,
    netlist: WrappedNetlist,
    router: Router,
    tool: Found,
    options: tuple[str, ...],
    seed: int,
    timeout_s: float,
    stop: Stop,
) -> Routed:
    result = folder / f"seed{seed}.json"
    if not result.is_file():
        try:
            report = run_nextpnr(router.tool, tool, folder, prepared, options, seed, timeout_s, stop)
        except ToolTimeoutError:
            return Routed(seed, left_out=f"place and route did not end within {timeout_s:g} s: {SMALLER}")
        used = router.devices.used(report.sites, netlist.around, netlist.cells)
        kept = {"fmax_mhz": report.fmax_mhz, "used": used, "seconds": report.seconds}
        write_bytes(result, (json.dumps(kept, indent=1, sort_keys=True) + "\n").encode())
    found = read_json(result, RtlError, "a record of place and route", "delete it")
    try:
        sites = from_plain(found["used"], Resources[int], "a count of sites")
        return Routed(seed, float(found["fmax_mhz"]), sites, float(found["seconds"]))
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise RtlError(f"{result} is not a record of place and route: {shown(error)}; delete it") from error


def _tell(found: Routed) -> str:
    return f"seed {found.seed}: {found.left_out or f'{found.fmax_mhz:.1f} MHz'}"
