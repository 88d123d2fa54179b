"""One module through yosys: its result is kept in a folder named after everything that it depends on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from fpgaprune.documents import read_json
from fpgaprune.errors import FpgaPruneError, RtlError, ToolError, shown
from fpgaprune.fabric.cells import Family
from fpgaprune.fabric.open_tools import YOSYS, Found
from fpgaprune.files import write_bytes
from fpgaprune.processes import run_tool

RESULT = "result.json"
NETLIST = "netlist.json"
SCRIPT = "synth.ys"
LOG = "yosys.log"
_STATISTICS = "statistics.json"


@dataclass(frozen=True, slots=True)
class Netlist:
    """A synthesised module.

    Attributes:
        folder: with the Verilog, the script, the log and `NETLIST`; yosys run there on `SCRIPT` makes it again.
        types: cell type to number. seconds: that synthesis took.
    """

    folder: Path
    types: Mapping[str, int]
    seconds: float


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
    """`cache` holds the flattened netlist of module `top` for `family`; an equal one made before is taken as it is.

    Args:
        sources: name to bytes of every file; those that end in `.v` are read, in this order.
        top: the module.
        family: device family.
        cache: folder; each netlist lies in one below it, named after a digest of sources, family, script and tool.
        yosys: as `find_open_tool(YOSYS)` gives it.
        timeout_s: most wall-clock seconds.
        stop: as for `run_tool`.
        named: whether its cells get readable names, as reports of place and route show them; for counting they need
            none.

    Raises:
        ToolTimeoutError: yosys ran too long. Its log is kept.
        ToolError: yosys died, or was stopped. Its log is kept.
        RtlError: what it wrote is no netlist of hardware cells.
    """
    script = _script(sources, top, family.synthesis if named else family.unnamed)
    folder = cache / family.family / f"{top}-{_digest(sources, script, yosys)[:16]}"
    result = folder / RESULT
    if result.is_file():
        return _kept(folder, result)
    for name, content in sources.items():
        write_bytes(folder / name, content)
    write_bytes(folder / SCRIPT, script.encode())
    seconds = run_yosys(folder, yosys, timeout_s, stop)
    types = read_statistics(folder / _STATISTICS)
    family.count(types)  # A cell that the family does not list is refused here, before the result is kept.
    # Written last: while it is missing, the folder is not yet a result.
    report = {"family": family.family, "top": top, "tool": yosys.version, "seconds": seconds, "types": types}
    write_bytes(result, (json.dumps(report, indent=1, sort_keys=True) + "\n").encode())
    return Netlist(folder, types, seconds)


def _kept(folder: Path, result: Path) -> Netlist:
    found = read_json(result, RtlError, "a netlist's record", f"delete {folder}")
    try:
        types = {str(cell): int(number) for cell, number in found["types"].items()}
        return Netlist(folder, types, float(found["seconds"]))
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise RtlError(f"{result} is not a netlist's record: {shown(error)}; delete {folder}") from error


def run_yosys(folder: Path, yosys: Found, timeout_s: float, stop: Callable[[], bool] | None = None) -> float:
    """Seconds that yosys took for the script `SCRIPT` in `folder`; its output is in `LOG` there.

    Raises:
        ToolTimeoutError: it ran too long.
        ToolError: it died, or was stopped.
    """
    command = [*yosys.command, *(("-s", SCRIPT) if len(yosys.command) == 1 else (SCRIPT,))]
    run = run_tool(command, folder, timeout_s, name=YOSYS.program, log_name=LOG, product=YOSYS.product, stop=stop)
    return round(run.seconds, 2)


def read_statistics(path: Path) -> dict[str, int]:
    """Cell type to number, from what yosys's `stat -json` wrote to `path`.

    Raises:
        ToolError: it wrote nothing.
        RtlError: it wrote something else.
    """
    try:
        counted = read_json(path, RtlError, "a table of cells", "run yosys again", strict=False)["design"][
            "num_cells_by_type"
        ]
        return {str(cell): int(number) for cell, number in sorted(counted.items())}
    except FileNotFoundError:
        raise ToolError(f"yosys ended without {path.name}; its output is in {path.parent / LOG}") from None
    except FpgaPruneError:
        raise
    except (AttributeError, LookupError, OverflowError, TypeError, ValueError) as error:
        raise RtlError(f"{path} holds no counts of cells: {shown(error)}; is that yosys 0.20 or newer?") from error


def _script(sources: Mapping[str, bytes], top: str, commands: Iterable[str]) -> str:
    # Deferred: a module is elaborated only where it is used, with the parameters that it has there.
    reads = [f'read_verilog -defer "{name}"' for name in sources if name.endswith(".v")]
    steps = [
        *reads,
        *(command.format(top=top) for command in commands),
        f"tee -q -o {_STATISTICS} stat -json",
        # Without the library's models, so that another netlist can take this one in.
        f"select {top}",
        f"write_json -selected {NETLIST}",
    ]
    return "\n".join(steps) + "\n"


def _digest(sources: Mapping[str, bytes], script: str, yosys: Found) -> str:
    parts = {name: hashlib.sha256(content).hexdigest() for name, content in sources.items()}
    return hashlib.sha256(json.dumps([yosys.version, script, parts]).encode()).hexdigest()
