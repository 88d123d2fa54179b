"""`place_and_route`: a Verilog project on a named device, with several seeds, and the clock that it reaches."""

from __future__ import annotations

import json
import os
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

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
from fpgaprune.measure import Stage
from fpgaprune.rtl.project import VerilogProject


@dataclass(frozen=True, slots=True)
class Routed:
    """One run of place and route.

    Attributes:
        seed: of its random numbers.
        fmax_mhz: highest clock frequency by static timing analysis, at the speed grade's slowest corner.
        used: sites taken, by figure, without the harness.
        seconds: that it took.
        left_out: why there is nothing of it; empty where there is.
    """

    seed: int
    fmax_mhz: float | None = None
    used: dict[str, int] | None = None
    seconds: float | None = None
    left_out: str = ""

    def to_json(self) -> dict[str, Any]:
        """The run as JSON data."""
        return {name: getattr(self, name) for name in ("seed", "fmax_mhz", "used", "seconds", "left_out")}


@dataclass(frozen=True, slots=True)
class PlaceAndRoute:
    """A project placed and routed with several seeds; its stage names the family, as `route(ecp5)`.

    Attributes:
        family: of the device.
        device: part.
        package: of the part.
        speed: grade; None where the part's name has it.
        tool: nextpnr with its version.
        target_mhz: frequency asked for.
        runs: by seed.
        capacity: of the device, by figure.
    """

    family: str
    device: str
    package: str
    speed: int | None
    tool: str
    target_mhz: float
    runs: tuple[Routed, ...]
    capacity: dict[str, int | None]

    @property
    def fmax_mhz(self) -> float | None:
        """Median over the seeds that ended; None where none did."""
        reached = self._reached()
        return statistics.median(reached) if reached else None

    @property
    def fmax_range_mhz(self) -> tuple[float, float] | None:
        """Lowest and highest over the seeds that ended."""
        reached = self._reached()
        return (min(reached), max(reached)) if reached else None

    @property
    def used(self) -> dict[str, int] | None:
        """Sites taken by figure; packing does not depend on the seed."""
        return next((run.used for run in self.runs if run.used is not None), None)

    def to_json(self) -> dict[str, Any]:
        """Everything as JSON data."""
        plain = ("device", "package", "speed", "tool", "target_mhz", "fmax_mhz", "used", "capacity")
        limits = self.fmax_range_mhz
        return {
            "stage": self.stage,
            **{name: getattr(self, name) for name in plain},
            "fmax_range_mhz": None if limits is None else list(limits),
            "runs": [run.to_json() for run in self.runs],
        }

    @property
    def stage(self) -> Stage:
        """Of its figures, as `route(ecp5)`."""
        return Stage(f"route({self.family})")

    def _reached(self) -> list[float]:
        return [run.fmax_mhz for run in self.runs if run.fmax_mhz is not None]


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
    return PlaceAndRoute(
        family,
        part.name,
        package or devices.devices[part.name].package,
        grade,
        tool.version,
        asked,
        runs,
        {name: getattr(part, name) for name in devices.sites},
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
        used = {str(kind): int(number) for kind, number in found["used"].items()}
        return Routed(seed, float(found["fmax_mhz"]), used, float(found["seconds"]))
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise RtlError(f"{result} is not a record of place and route: {shown(error)}; delete it") from error


def _tell(found: Routed) -> str:
    return f"seed {found.seed}: {found.left_out or f'{found.fmax_mhz:.1f} MHz'}"
