"""`place_and_route`: a Verilog project on a named ECP5, with several seeds, and what it reaches there."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from fpgaprune.documents import read_json
from fpgaprune.errors import FpgaPruneError, RtlError, TargetError, ToolError, ToolTimeoutError, shown
from fpgaprune.fabric import harness
from fpgaprune.fabric.ecp5.family import (
    PLACER,
    SITES,
    SMALLER,
    anchored_netlist,
    check_fits,
    device_flag,
    digest_of,
    ecp5_netlist,
    find_ecp5,
    smallest_ecp5,
)
from fpgaprune.fabric.ecp5.floorplan import partitioner
from fpgaprune.fabric.open_tools import NEXTPNR_ECP5, Found, find_open_tool
from fpgaprune.fabric.side_by_side import Stop, Told, run_side_by_side
from fpgaprune.files import make_folder, write_bytes
from fpgaprune.measure import Cells, PlaceAndRoute, Resources, Routed, Stage, capacity_of, from_plain, to_plain
from fpgaprune.processes import run_tool
from fpgaprune.rtl.project import VerilogProject

PACKAGE, SPEED = "CABGA381", 6


def place_and_route(
    project: VerilogProject,
    family: str = "ecp5",
    device: str | None = None,
    *,
    seeds: int | Sequence[int] = 5,
    package: str = PACKAGE,
    speed: int = SPEED,
    target_mhz: float | None = None,
    timeout_s: float = 3600.0,
    cache: str | os.PathLike[str] | None = None,
    workers: int | None = None,
    on_step: Told | None = None,
) -> PlaceAndRoute:
    """Where `project` goes on an ECP5, and the clock frequency that it reaches there.

    Ports are wider than a package has pins, so a harness of shift registers stands around the design; what it takes is
    known by itself and left out of the figures. Registers tied to tiles (`anchors`), the same for
    every seed, show nextpnr a floorplan. Each seed runs in a process of its own and is kept by content, as for
    `synthesize`. A frequency of an ECP5 says nothing about another family.

    Args:
        project: as `to_verilog` writes it.
        family: `ecp5`; there is open place and route for no other one here.
        device: as `lfe5u-45f`; the smallest LFE5U with room to spare (two fifths of its LUTs, three tenths of its
            registers) unless given.
        seeds: how many (1, 2, ...), or which.
        package: of the device.
        speed: grade, 6 (slowest) to 8.
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
    if family != "ecp5":
        raise TargetError(f"place and route for family {family!r} is not offered; wanted 'ecp5'")
    numbers = list(range(1, seeds + 1)) if isinstance(seeds, int) else list(seeds)
    if not numbers or speed not in (6, 7, 8):
        raise TargetError(f"seeds {seeds!r} and speed grade {speed}; wanted one seed or more and a grade of 6 to 8")
    part = None if device is None else find_ecp5(device)
    router = find_open_tool(NEXTPNR_ECP5)
    partitioner()  # Named before synthesis where it is missing.
    netlist = ecp5_netlist(project, harness.TOP, harness.harness_of(project), cache=cache, timeout_s=timeout_s)
    part = part or smallest_ecp5(netlist.cells)
    check_fits(project, netlist.cells, part)
    asked = target_mhz or 1e3 / project.clock_ns
    options = (device_flag(part), "--package", package, "--speed", str(speed), "--freq", f"{asked:g}", *PLACER)
    anchored = anchored_netlist(netlist, part, timeout_s)
    place = netlist.folder / f"{part.name}-{digest_of(router.version, anchored.name, *options)}"
    make_folder(place)
    tasks = [
        partial(_route, place, anchored.name, netlist.around, router, options, seed, timeout_s) for seed in numbers
    ]
    runs = tuple(run_side_by_side(tasks, workers, on_step, _tell))
    offered = capacity_of(part)
    capacity: Resources[int] = Resources(**{name: offered[name] for name in SITES})
    stage = Stage(f"route({family})")
    return PlaceAndRoute(part.name, package, speed, router.version, asked, runs, capacity, stage)


def _route(
    folder: Path,
    netlist: str,
    around: Cells,
    router: Found,
    options: tuple[str, ...],
    seed: int,
    timeout_s: float,
    stop: Stop,
) -> Routed:
    result = folder / f"seed{seed}.json"
    if not result.is_file():
        written = folder / f"new_seed{seed}.json"
        # YoWASP's tools see /tmp as a folder of their own: every name is relative.
        files = ("--json", f"../{netlist}", "--report", written.name)
        command = (*router.command, *options, "--seed", str(seed), "--timing-allow-fail", *files)
        try:
            run = run_tool(
                command,
                folder,
                timeout_s,
                name=NEXTPNR_ECP5.program,
                log_name=f"seed{seed}.log",
                product=NEXTPNR_ECP5.product,
                stop=stop,
            )
        except ToolTimeoutError:
            return Routed(seed, left_out=f"place and route did not end within {timeout_s:g} s: {SMALLER}")
        report = _read_report(written, around)
        text = json.dumps({**report, "seconds": round(run.seconds, 2)}, indent=1, sort_keys=True) + "\n"
        write_bytes(result, text.encode())
        written.unlink()
    found = read_json(result, RtlError, "a record of place and route", "delete it")
    try:
        used = from_plain(found["used"], Resources[int], "a count of sites")
        return Routed(seed, float(found["fmax_mhz"]), used, float(found["seconds"]))
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise RtlError(f"{result} is not a record of place and route: {shown(error)}; delete it") from error


def _read_report(path: Path, around: Cells) -> dict[str, Any]:
    try:
        report = read_json(path, RtlError, "a report of nextpnr", "run it again", strict=False)
        (clock,) = report["fmax"].values()
        used = {name: int(report["utilization"][site]["used"]) for name, site in SITES.items()}
        return {"fmax_mhz": round(float(clock["achieved"]), 2), "used": to_plain(Resources(**used).less(around))}
    except FileNotFoundError:
        raise ToolError(f"nextpnr ended without its report in {path.parent}; its logs are there") from None
    except FpgaPruneError:
        raise
    except (AttributeError, LookupError, OverflowError, TypeError, ValueError) as error:
        raise RtlError(f"{path} is no report of nextpnr on one clock: {shown(error)}") from error


def _tell(found: Routed) -> str:
    return f"seed {found.seed}: {found.left_out or f'{found.fmax_mhz:.1f} MHz'}"
