"""nextpnr: one run of it on a netlist, and what its report says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fpgaprune.documents import read_json
from fpgaprune.errors import FpgaPruneError, RtlError, ToolError, shown
from fpgaprune.fabric.open_tools import Found, OpenTool
from fpgaprune.fabric.side_by_side import Stop
from fpgaprune.processes import run_tool


@dataclass(frozen=True, slots=True)
class Report:
    """What nextpnr reports of a design with one clock.

    Attributes:
        fmax_mhz: highest clock frequency by static timing analysis, at the slowest corner.
        sites: nextpnr's name of a kind of site -> how many are used.
        seconds: of wall-clock time that it took.
    """

    fmax_mhz: float
    sites: dict[str, int]
    seconds: float


def run_nextpnr(
    tool: OpenTool,
    program: Found,
    folder: Path,
    netlist: Path,
    options: Sequence[str],
    seed: int,
    timeout_s: float,
    stop: Stop | None = None,
) -> Report:
    """What nextpnr reports of `netlist`, a file beside `folder`, in which it runs; its log is `seed{seed}.log` there.

    Raises:
        ToolTimeoutError: it ran too long.
        ToolError: it died, was stopped, or wrote no report. Its log is kept.
        RtlError: its report is not one on one clock.
    """
    name, log = f"report{seed}.json", f"seed{seed}.log"
    # YoWASP's tools see /tmp as a folder of their own: every name is relative.
    files = ("--json", f"../{netlist.name}", "--report", name)
    command = (*program.command, *options, "--seed", str(seed), "--timing-allow-fail", *files)
    run = run_tool(command, folder, timeout_s, name=tool.program, log_name=log, product=tool.product, stop=stop)
    path = folder / name
    try:
        report = read_json(path, RtlError, "a report of nextpnr", "run it again", strict=False)
        (clock,) = report["fmax"].values()
        sites = {str(name): int(row["used"]) for name, row in report["utilization"].items()}
        found = Report(round(float(clock["achieved"]), 2), sites, round(run.seconds, 2))
    except FileNotFoundError:
        raise ToolError(f"nextpnr ended without its report in {folder}; its log is there") from None
    except FpgaPruneError:
        raise
    except (AttributeError, LookupError, OverflowError, TypeError, ValueError) as error:
        raise RtlError(f"{path} is no report of nextpnr on one clock: {shown(error)}") from error
    path.unlink()
    return found
