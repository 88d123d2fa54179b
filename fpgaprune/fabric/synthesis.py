"""`synthesize`: every layer of a Verilog project, and the whole of it, through open synthesis."""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import partial
from pathlib import Path

from msgspec import structs

from fpgaprune.errors import RtlError, ToolTimeoutError
from fpgaprune.fabric.cells import Family, find_family
from fpgaprune.fabric.open_tools import YOSYS, Found, find_open_tool
from fpgaprune.fabric.side_by_side import Stop, run_side_by_side
from fpgaprune.fabric.yosys import make_netlist
from fpgaprune.measure import ModuleSynthesis, Synthesis
from fpgaprune.processes import OnStep
from fpgaprune.rtl import VerilogProject


def synthesize(
    project: VerilogProject,
    family: str,
    *,
    whole: bool = True,
    timeout_s: float = 600.0,
    cache: str | os.PathLike[str] | None = None,
    workers: int | None = None,
    on_step: OnStep | None = None,
) -> Synthesis:
    """Count what each layer of `project` takes on devices of `family`, out of context, and what the whole design takes.

    Each module is flattened and mapped in a process of its own. Its result is kept under a digest of the Verilog, the
    family, the script and the tool: a second call, or one after a stop, does only what is missing.

    Args:
        project: as `to_verilog` writes it.
        family: one of `list_families()`, as `xc7` or `ecp5`.
        whole: also synthesise the whole design; that takes as long as all layers together, and more memory.
        timeout_s: most seconds for one module; a module that takes longer has no cells, and its `left_out` says why.
        cache: folder of results; `synth` in the project's folder unless given.
        workers: processes at a time; one for each processor unless given.
        on_step: is told the modules done, the modules in all, and what was just found.

    Raises:
        TargetError: the family is unknown.
        ToolError: yosys is missing (the message says how it is installed), or died; logs and results so far are kept.
        RtlError: a file of the project is missing, or a cell is not known to the family's list.
    """
    kind = find_family(family)
    yosys = find_open_tool(YOSYS)
    folder = project.path / "synth" if cache is None else Path(cache)
    # The whole design takes longest: it starts first.
    top = ModuleSynthesis(None, project.top, None)
    jobs = [(top, project.files)] if whole else []
    for layer in project.layers:
        blank = ModuleSynthesis(layer.layer, layer.module, None, layer.kept, layer.dropped)
        jobs.append((blank, layer.files))
    tasks = [
        partial(_synthesize, blank, read_sources(project, files), kind, folder, yosys, timeout_s)
        for blank, files in jobs
    ]
    found_in_order = run_side_by_side(tasks, workers, on_step, _tell)
    first = found_in_order.pop(0) if whole else structs.replace(top, left_out="synthesis was not asked for")
    return Synthesis(family, yosys.version, kind.note, tuple(found_in_order), first)


def read_sources(project: VerilogProject, files: Iterable[str]) -> dict[str, bytes]:
    """Return a dict: name -> bytes of the project's `files`, in their order.

    Raises:
        RtlError: a file is missing.
    """
    found = {}
    for name in files:
        try:
            found[name] = (project.path / name).read_bytes()
        except OSError as error:
            raise RtlError(f"{project.path} lists {name!r}, which cannot be read: {error.strerror}") from None
    return found


def _synthesize(
    blank: ModuleSynthesis,
    sources: dict[str, bytes],
    family: Family,
    cache: Path,
    yosys: Found,
    timeout_s: float,
    stop: Stop,
) -> ModuleSynthesis:
    try:
        # Only the whole design is placed and routed, so only its cells need names.
        named = blank.layer is None
        netlist = make_netlist(sources, blank.module, family, cache, yosys, timeout_s, stop, named=named)
    except ToolTimeoutError:
        return structs.replace(blank, left_out=f"synthesis did not end within {timeout_s:g} s")
    cells = family.count(netlist.types)
    return structs.replace(blank, cells=cells, seconds=netlist.seconds)


def _tell(found: ModuleSynthesis) -> str:
    if found.cells is None:
        return f"{found.module}: {found.left_out}"
    return f"{found.module}: {found.cells.lut} LUT, {found.cells.ff} FF"
