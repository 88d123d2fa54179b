"""yosys: synthesis of one module, and the netlist that it makes."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from msgspec import Struct

from fpgaprune.errors import ToolError
from fpgaprune.fabric.cells import Family
from fpgaprune.fabric.open_tools import Found
from fpgaprune.fabric.records import digest_of, read_record, write_record
from fpgaprune.files import write_bytes

RESULT = "result.json"
NETLIST = "netlist.json"
SCRIPT = "synth.ys"
LOG = "yosys.log"
_STATISTICS = "statistics.json"


@dataclass(frozen=True, slots=True)
class Netlist:
    """A synthesised module.

    Attributes:
        folder: holds the Verilog, the script, the log and `NETLIST`; yosys run there on `SCRIPT` makes it again.
        types: cell type -> number of cells.
        seconds: time of the synthesis.
    """

    folder: Path
    types: Mapping[str, int]
    seconds: float


class _Record(Struct):
    family: str
    top: str
    tool: str
    types: dict[str, int]
    seconds: float


class _Counted(Struct):
    num_cells_by_type: dict[str, int]


class _Statistics(Struct):
    design: _Counted


def make_netlist(
    sources: Mapping[str, bytes],
    top: str,
    family: Family,
    cache: Path,
    yosys: Found,
    timeout_s: float,
    stop: Callable[[], bool] | None = None,
    *,
    named: bool = True,
) -> Netlist:
    """Return the flattened netlist of module `top` for `family`; if `cache` holds it already, yosys is not run.

    Args:
        sources: name -> bytes of every file; yosys reads those that end in `.v`, in this order.
        top: the module.
        family: device family.
        cache: folder; each netlist has a folder there, named after a digest of sources, family, script and tool.
        yosys: as `find_open_tool(YOSYS)` gives it.
        timeout_s: most wall-clock seconds.
        stop: as for `run_tool`.
        named: give the cells readable names, which reports of place and route show; counting needs none.

    Raises:
        ToolTimeoutError: yosys ran too long. Its log is kept.
        ToolError: yosys died, or was stopped. Its log is kept.
        RtlError: yosys wrote no netlist of hardware cells.
    """
    script = _script(sources, top, family.synthesis if named else family.unnamed)
    files = {**family.maps, **sources}
    contents = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    folder = cache / family.family / f"{top}-{digest_of(yosys.version, script, contents)}"
    result = folder / RESULT
    if result.is_file():
        kept = read_record(result, _Record, "a netlist's record", f"delete {folder}")
        return Netlist(folder, kept.types, kept.seconds)
    for name, content in files.items():
        write_bytes(folder / name, content)
    write_bytes(folder / SCRIPT, script.encode())
    seconds = run_yosys(folder, yosys, timeout_s, stop)
    types = read_statistics(folder / _STATISTICS)
    family.count(types)  # A cell that the family does not list is refused before the result is kept.
    # Written last: without it, the folder is not yet a result.
    write_record(result, _Record(family.family, top, yosys.version, types, seconds))
    return Netlist(folder, types, seconds)


def run_yosys(folder: Path, yosys: Found, timeout_s: float, stop: Callable[[], bool] | None = None) -> float:
    """Run the script `SCRIPT` in `folder`, with its log in `LOG`; return the seconds that it took.

    Raises:
        ToolTimeoutError: yosys ran too long.
        ToolError: yosys died, or was stopped.
    """
    # The packaged yosys takes no options.
    return yosys.run(("-s", SCRIPT) if len(yosys.command) == 1 else (SCRIPT,), folder, timeout_s, LOG, stop)


def read_statistics(path: Path) -> dict[str, int]:
    """Read the number of cells by cell type from what yosys's `stat -json` wrote to `path`.

    Raises:
        ToolError: yosys wrote no such file.
        RtlError: the file has another form.
    """
    try:
        found = read_record(path, _Statistics, "a table of cells", "use yosys 0.20 or newer, and run it again")
    except FileNotFoundError:
        raise ToolError(f"yosys ended without {path.name}; its output is in {path.parent / LOG}") from None
    return dict(sorted(found.design.num_cells_by_type.items()))


def _script(sources: Mapping[str, bytes], top: str, commands: Iterable[str]) -> str:
    # -defer: a module is elaborated only where it is used, with the parameters that it has there.
    reads = [f'read_verilog -defer "{name}"' for name in sources if name.endswith(".v")]
    steps = [
        *reads,
        *(command.format(top=top) for command in commands),
        f"tee -q -o {_STATISTICS} stat -json",
        # Without the models of yosys's library, so that another netlist can include this one.
        f"select {top}",
        f"write_json -selected {NETLIST}",
    ]
    return "\n".join(steps) + "\n"
