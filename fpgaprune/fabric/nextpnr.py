"""nextpnr: one run of it on a netlist, and what its report says."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from msgspec import Struct

from fpgaprune.errors import RtlError, ToolError, ToolExitError
from fpgaprune.fabric.open_tools import Found
from fpgaprune.fabric.records import read_record
from fpgaprune.fabric.side_by_side import Stop
from fpgaprune.processes import OnStep, countdown

# What nextpnr's lines say of how far it is, in their order; each group of a pattern is a number for the words.
_STEPS = (
    (re.compile(r"Info: Pack"), "packing"),
    (re.compile(r"Info:\s+at initial placer iter (\d+)"), "placing, round {} of the first"),
    (re.compile(r"Info:\s+at iteration #(\d+), type"), "placing, round {}"),
    (re.compile(r"Info:\s+at iteration #(\d+): temp"), "refining the placement, round {}"),
    (re.compile(r"Info: Routing (\d+) arcs"), "routing {} connections"),
    (re.compile(r"Info:\s+\d+ \|(?:[^|]*\|){2}\s*(\d+)\|"), "routing, {} connections to go"),
    (re.compile(r"Info:\s+iter=(\d+) wires=\d+ overused=(\d+)"), "routing, round {}, {} wires used twice"),
)
# A seed that nobody asks for, and bytes at the end of a log that say how a run ended.
_OTHER_SEED, _TAIL = 1000, 4096


@dataclass(frozen=True, slots=True)
class Report:
    """What nextpnr reports of a design with one clock.

    Attributes:
        fmax_mhz: highest clock frequency by static timing analysis, at the slowest corner.
        sites: nextpnr's name of a kind of site -> how many are used.
        seconds: wall-clock time of the run.
    """

    fmax_mhz: float
    sites: dict[str, int]
    seconds: float


class _Clock(Struct):
    achieved: float


class _Sites(Struct):
    used: int


class _Written(Struct):
    fmax: dict[str, _Clock]
    utilization: dict[str, _Sites]


def run_nextpnr(
    program: Found,
    folder: Path,
    netlist: Path,
    options: Sequence[str],
    seed: int,
    timeout_s: float,
    stop: Stop | None = None,
    on_step: OnStep | None = None,
) -> Report:
    """Run nextpnr in `folder` on `netlist`, a file beside it; return its report. It logs to `seed{seed}.log`.

    Where nextpnr itself crashes, it runs once more with another seed, with which it may not: that of GateMate 0.11 runs
    out of its stack after some routings of a design.

    `on_step` is told how far nextpnr is; how many steps are left is not known.

    Raises:
        ToolTimeoutError: nextpnr ran too long.
        ToolError: nextpnr died, was stopped, or wrote no report. Its log is kept.
        RtlError: its report has another form, or counts several clocks or none.
    """
    name, log = f"report{seed}.json", f"seed{seed}.log"
    # YoWASP's tools see /tmp as a folder of their own: every name is relative.
    files = ("--json", f"../{netlist.name}", "--report", name)
    left = countdown(timeout_s)

    def tell(line: str) -> None:
        said = _how_far(line)
        if on_step is not None and said is not None:
            on_step(0, 0, f"place and route: {said}")

    def run(number: int, allowed: float) -> float:
        arguments = (*options, "--seed", str(number), "--timing-allow-fail", *files)
        return program.run(arguments, folder, allowed, log, stop, tell)

    try:
        seconds = run(seed, timeout_s)
    except ToolExitError as error:
        if not _crashed(folder / log, error.code):
            raise
        seconds = run(seed + _OTHER_SEED, left())
    path = folder / name
    try:
        report = read_record(path, _Written, "a report of nextpnr", "run it again")
    except FileNotFoundError:
        raise ToolError(f"nextpnr ended without its report in {folder}; its log is there") from None
    if len(report.fmax) != 1:
        raise RtlError(f"{path} reports {len(report.fmax)} clocks; wanted a design with one")
    path.unlink()
    (clock,) = report.fmax.values()
    return Report(round(clock.achieved, 2), {site: row.used for site, row in report.utilization.items()}, seconds)


def _crashed(log: Path, code: int) -> bool:
    """Return whether a signal or a trap of WebAssembly ended nextpnr, and not an error that it names."""
    return code < 0 or b"wasm trap" in log.read_bytes()[-_TAIL:]


def _how_far(line: str) -> str | None:
    """Return what a line of nextpnr says of how far it is; None if it says nothing."""
    for pattern, words in _STEPS:
        found = pattern.match(line)
        if found:
            return words.format(*(f"{int(number):,}" for number in found.groups()))
    return None
