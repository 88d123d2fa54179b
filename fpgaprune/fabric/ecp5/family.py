"""The ECP5 side of place and route: a project's netlist inside another top module, and the devices it may go on."""

from __future__ import annotations

import hashlib
import inspect
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from fpgaprune.errors import TargetError
from fpgaprune.fabric.cells import find_family
from fpgaprune.fabric.ecp5 import anchors, carries, floorplan, macros
from fpgaprune.fabric.ecp5.anchors import anchor_registers
from fpgaprune.fabric.ecp5.carries import free_unread_carries
from fpgaprune.fabric.harness import stub_of
from fpgaprune.fabric.open_tools import YOSYS, find_open_tool
from fpgaprune.fabric.synthesis import read_sources
from fpgaprune.fabric.yosys import NETLIST, SCRIPT, make_netlist, read_statistics, run_yosys
from fpgaprune.files import write_bytes
from fpgaprune.measure import Cells, capacity_of
from fpgaprune.rtl.project import VerilogProject
from fpgaprune.target import Part, find_part

# What nextpnr calls the sites of each figure.
SITES: Mapping[str, str] = {"lut": "TRELLIS_COMB", "ff": "TRELLIS_FF", "dsp": "MULT18X18D", "bram18": "DP16KD"}
# What helps where a design is too large.
SMALLER = "choose a larger device, prune more, or give an image more clocks (interval)"
_WHOLE = "whole.json"
_JOINED = "joined.json"
_AROUND = "around_cells.json"
# However long a cell takes to place among tied ones: nextpnr's own limit wraps around to little for many cells.
PLACER = ("--placer-heap-cell-placement-timeout", "0")
_DEVICES = ("lfe5u-25f", "lfe5u-45f", "lfe5u-85f")
# Beyond these shares of a device, place and route takes long and reaches little; nextpnr adds a seventh to the LUTs. A
# design with 1.3 registers for each LUT, 73 % of the device's, had no legal place for all of them after seven minutes.
_COMFORTABLE = {"lut": 0.6, "ff": 0.7, "dsp": 0.9, "bram18": 0.9}


@dataclass(frozen=True, slots=True)
class Ecp5Netlist:
    """A project's netlist inside a top module of other Verilog.

    Attributes:
        folder: that holds it. top: module. cells: of the project alone. around: of what stands around it.
    """

    folder: Path
    top: str
    cells: Cells
    around: Cells


def ecp5_netlist(
    project: VerilogProject,
    top: str,
    verilog: str,
    *,
    cache: str | os.PathLike[str] | None = None,
    timeout_s: float = 3600.0,
) -> Ecp5Netlist:
    """The project's own netlist, unchanged, within module `top` of `verilog`, flattened for nextpnr.

    Raises:
        ToolTimeoutError, ToolError, RtlError: as for `synthesize`.
    """
    family, yosys = find_family("ecp5"), find_open_tool(YOSYS)
    home = project.path / "synth" if cache is None else Path(cache)
    own = make_netlist(read_sources(project, project.files), project.top, family, home, yosys, timeout_s)
    stub, script = stub_of(project), _joining_script(project.top, top)
    folder = home / "ecp5" / f"{top}-{digest_of(own.folder.name, verilog, stub, script, inspect.getsource(carries))}"
    if not (folder / _WHOLE).is_file():
        write_bytes(folder / "around.v", verilog.encode())
        write_bytes(folder / "stub.v", stub.encode())
        write_bytes(folder / NETLIST, (own.folder / NETLIST).read_bytes())
        write_bytes(folder / SCRIPT, script.encode())
        run_yosys(folder, yosys, timeout_s)
        free_unread_carries(folder / _JOINED, folder / _WHOLE)
        (folder / _JOINED).unlink()
    counts = read_statistics(folder / _AROUND)
    around = family.count({cell: number for cell, number in counts.items() if cell != project.top})
    return Ecp5Netlist(folder, top, family.count(own.types), around)


def anchored_netlist(netlist: Ecp5Netlist, part: Part, timeout_s: float) -> Path:
    """The file in `netlist`'s folder that nextpnr places on `part`; its name tells what made it.

    Raises:
        RtlError, ToolError: as for `anchor_registers`.
    """
    rules = (inspect.getsource(module) for module in (anchors, floorplan, macros))
    path = netlist.folder / f"{part.name}-{digest_of(floorplan.partitioner(), *rules)}.json"
    if not path.is_file():
        anchor_registers(netlist.folder / _WHOLE, path, netlist.top, part, timeout_s)
    return path


def device_flag(part: Part) -> str:
    """What selects `part` in nextpnr, as `--25k` or `--um5g-85k`.

    Raises:
        TargetError: it is no ECP5.
    """
    found = re.fullmatch(r"lfe5(u|um|um5g)-(\d+)f", part.name)
    if found is None:
        raise TargetError(f"device {part.name!r} is no ECP5; wanted one such as {', '.join(_DEVICES)}")
    kind = "" if found[1] == "u" else f"{found[1]}-"
    return f"--{kind}{found[2]}k"


def check_fits(project: VerilogProject, cells: Cells, part: Part) -> None:
    """`part` has as many of everything as `cells` take.

    Raises:
        TargetError: it has not; nextpnr would end in the midst of placing.
    """
    for name, wanted, there in cells.against(capacity_of(part)):
        if wanted > there:
            raise TargetError(f"{project.name} takes {wanted:,} {name} on {part.name}, which has {there:,}; {SMALLER}")


def find_ecp5(device: str) -> Part:
    """The ECP5 called `device`.

    Raises:
        TargetError: there is no such part, or it is no ECP5.
    """
    part = find_part(device)
    device_flag(part)
    return part


def smallest_ecp5(cells: Cells) -> Part:
    """The smallest LFE5U that holds `cells` with room to spare; the largest where none does."""
    parts = [find_part(name) for name in _DEVICES]
    return next(
        (p for p in parts if all((cells[n] or 0) <= _COMFORTABLE[n] * (capacity_of(p)[n] or 0) for n in SITES)),
        parts[-1],
    )


def _joining_script(project_top: str, top: str) -> str:
    return f"""read_verilog around.v stub.v
synth_ecp5 -top {top}
tee -q -o {_AROUND} stat -json
delete ={project_top}
read_json {NETLIST}
hierarchy -top {top}
flatten
opt_clean
write_json {_JOINED}
"""


def digest_of(*parts: str) -> str:
    """Sixteen hex digits over `parts`."""
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]
