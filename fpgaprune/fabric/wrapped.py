"""`WrappedNetlist`: a project's netlist inside another top module, as nextpnr takes it."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

from fpgaprune.errors import FpgaPruneError, RtlError, shown
from fpgaprune.fabric.cells import Family, find_family
from fpgaprune.fabric.harness import stub_of
from fpgaprune.fabric.open_tools import YOSYS, find_open_tool
from fpgaprune.fabric.records import digest_of
from fpgaprune.fabric.router import Router
from fpgaprune.fabric.synthesis import read_sources
from fpgaprune.fabric.yosys import NETLIST, SCRIPT, make_netlist, read_statistics, run_yosys
from fpgaprune.files import read_json, write_bytes
from fpgaprune.measure import Cells
from fpgaprune.processes import countdown
from fpgaprune.rtl import VerilogProject
from fpgaprune.target import Part

_JOINED = "joined.json"
_AROUND = "around_cells.json"


@dataclass(frozen=True, slots=True)
class WrappedNetlist:
    """A project's netlist inside a top module of other Verilog.

    Attributes:
        folder: the folder that holds it.
        top: name of the module around the project.
        cells: cells of the project alone.
        around: cells of what stands around the project.
    """

    folder: Path
    top: str
    cells: Cells
    around: Cells

    @property
    def joined(self) -> Path:
        """The file with the netlist as yosys made it."""
        return self.folder / _JOINED

    def prepared(self, router: Router, part: Part, timeout_s: float) -> Path:
        """Return the file in the netlist's folder that nextpnr places on `part`; its name depends on what made it.

        Raises:
            RtlError: yosys wrote no netlist.
            ToolError: a tool that prepares the netlist is missing, failed or ran longer than `timeout_s`.
        """
        joined = self.joined
        if router.prepare is None:
            return joined
        path = self.folder / f"{part.name}-{digest_of(*router.made_by())}.json"
        if path.is_file():
            return path
        try:
            document = read_json(joined, RtlError, "a netlist of yosys", "synthesise again", strict=False)
            router.prepare(document, self.top, part, timeout_s)
        except FpgaPruneError:
            raise
        except (AttributeError, LookupError, OverflowError, TypeError, ValueError) as error:
            raise RtlError(f"{joined} is no netlist of yosys with a module {self.top}: {shown(error)}") from error
        return write_bytes(path, json.dumps(document, separators=(",", ":")).encode())


def wrapped_netlist(
    project: VerilogProject,
    router: Router,
    top: str,
    verilog: str,
    *,
    cache: str | os.PathLike[str] | None = None,
    timeout_s: float = 3600.0,
) -> WrappedNetlist:
    """Return the project's own netlist, unchanged, inside module `top` of `verilog`, flattened for nextpnr.

    Raises:
        ToolTimeoutError, ToolError, RtlError: as for `synthesize`.
    """
    family, yosys = find_family(router.family), find_open_tool(YOSYS)
    home = project.path / "synth" if cache is None else Path(cache)
    left = countdown(timeout_s)
    own = make_netlist(read_sources(project, project.files), project.top, family, home, yosys, left())
    stub, script = stub_of(project), _script(family, project.top, top)
    folder = home / family.family / f"{top}-{digest_of(own.folder.name, verilog, stub, script)}"
    if not (folder / _JOINED).is_file():
        for name, content in family.maps.items():
            write_bytes(folder / name, content)
        write_bytes(folder / "around.v", verilog.encode())
        write_bytes(folder / "stub.v", stub.encode())
        write_bytes(folder / NETLIST, (own.folder / NETLIST).read_bytes())
        write_bytes(folder / SCRIPT, script.encode())
        run_yosys(folder, yosys, left())
    counts = read_statistics(folder / _AROUND)
    around = family.count({cell: number for cell, number in counts.items() if cell != project.top})
    return WrappedNetlist(folder, top, family.count(own.types), around)


def _script(family: Family, project_top: str, top: str) -> str:
    synthesis = "\n".join(command.format(top=top) for command in family.pins)
    return f"""read_verilog around.v stub.v
{synthesis}
tee -q -o {_AROUND} stat -json
delete ={project_top}
read_json {NETLIST}
hierarchy -top {top}
flatten
opt_clean
write_json {_JOINED}
"""
