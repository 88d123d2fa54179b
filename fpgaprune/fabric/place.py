"""`place_and_route`: a Verilog project on a named device, with several seeds, and the frequency that it reaches."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from msgspec import Struct

from fpgaprune.errors import TargetError, ToolTimeoutError
from fpgaprune.fabric import harness
from fpgaprune.fabric.devices import SMALLER, Devices
from fpgaprune.fabric.families import find_router
from fpgaprune.fabric.nextpnr import run_nextpnr
from fpgaprune.fabric.open_tools import Found, find_open_tool
from fpgaprune.fabric.records import digest_of, read_record, write_record
from fpgaprune.fabric.side_by_side import Stop, run_side_by_side
from fpgaprune.fabric.wrapped import WrappedNetlist, wrapped_netlist
from fpgaprune.files import make_folder
from fpgaprune.measure import PlaceAndRoute, Resources, Routed, Stage, capacity_of
from fpgaprune.processes import OnStep
from fpgaprune.rtl import VerilogProject


class _Record(Struct):
    fmax_mhz: float
    used: Resources[int]
    seconds: float


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
    on_step: OnStep | None = None,
) -> PlaceAndRoute:
    """Return what `project` takes on a device of `family`, and the clock frequency that it reaches there.

    A package has fewer pins than the ports have wires, so a harness of shift registers stands around the design; the
    figures leave the harness out. On an ECP5, registers tied to tiles, the same for every seed, show nextpnr a
    floorplan. Each seed runs in a process of its own and is kept by content, as for `synthesize`. The frequency on one
    family says nothing about another family.

    Args:
        project: as `to_verilog` writes it.
        family: one that `fpgaprune.fabric.families` lists, as `ecp5`.
        device: as `lfe5u-45f`; the smallest one with room to spare unless given (on an ECP5, two fifths of its LUTs and
            three tenths of its registers stay free).
        seeds: how many (1, 2, ...), or which.
        package: the device's package; its usual one unless given.
        speed: speed grade, on an ECP5 6 (slowest) to 8; the slowest unless given.
        target_mhz: frequency to aim at; the project's own clock unless given.
        timeout_s: most seconds for the synthesis, and for each seed.
        cache: as for `synthesize`.
        workers: processes at a time; one for each processor unless given.
        on_step: is told the seeds done, the seeds in all, and what was just found.

    Raises:
        TargetError: the family or the device is unknown, or the design does not fit.
        ToolTimeoutError: synthesis did not end in time. (A seed that does not end in time is left out instead.)
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
    options = (*devices.selecting(part, package, grade, netlist.cells), "--freq", f"{asked:g}")
    prepared = netlist.prepared(router, part, timeout_s)
    place = netlist.folder / f"{part.name}-{digest_of(tool.version, prepared.name, *options)}"
    make_folder(place)
    tasks = [partial(_route, tool, place, prepared, options, seed, timeout_s, netlist, devices) for seed in numbers]
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
            f"{devices.name} has no speed grade {speed}; wanted "
            + (f"one of {', '.join(map(str, devices.speeds))}" if devices.speeds else "none: the part's name has it")
        )
    return speed


def _route(
    tool: Found,
    folder: Path,
    prepared: Path,
    options: tuple[str, ...],
    seed: int,
    timeout_s: float,
    netlist: WrappedNetlist,
    devices: Devices,
    stop: Stop,
) -> Routed:
    result = folder / f"seed{seed}.json"
    if not result.is_file():
        try:
            report = run_nextpnr(tool, folder, prepared, options, seed, timeout_s, stop)
        except ToolTimeoutError:
            return Routed(seed, left_out=f"place and route did not end within {timeout_s:g} s: {SMALLER}")
        used = Resources(**devices.used(report.sites, netlist.around, netlist.cells))
        write_record(result, _Record(report.fmax_mhz, used, report.seconds))
    found = read_record(result, _Record, "a record of place and route", "delete it")
    return Routed(seed, found.fmax_mhz, found.used, found.seconds)


def _tell(found: Routed) -> str:
    return f"seed {found.seed}: {found.left_out or f'{found.fmax_mhz:.1f} MHz'}"
