"""Open tools, played by small scripts on a PATH of their own."""

import stat
import sys
from pathlib import Path

# Plays yosys: counts are read off the top module's name, and `behaviour` may make it fail for one module.
YOSYS = """#!{python}
import json, pathlib, re, sys, time
if "-V" in sys.argv:
    print("Yosys 9.9 (played)")
    sys.exit()
script = pathlib.Path(sys.argv[-1]).read_text()
top = re.search(r"-top (\\S+)", script)[1]
print("synthesising", top, flush=True)
with open({calls!r}, "a") as calls:
    calls.write(top + "\\n")
{behaviour}
cells = {{"LUT4": 10 * len(top), "TRELLIS_FF": len(top), "CCU2C": 3}}
cells.update({extra!r})
pathlib.Path("statistics.json").write_text(json.dumps({{"design": {{"num_cells_by_type": cells}}}}))
pathlib.Path("netlist.json").write_text("{{}}")
"""


def fake_yosys(folder: Path, behaviour: str = "", extra: dict[str, int] | None = None) -> Path:
    """`yosys` in `folder`/bin; each module it synthesises is a line of the file returned."""
    calls = folder / "calls"
    calls.touch()
    write_program(
        folder,
        "yosys",
        YOSYS.format(python=sys.executable, calls=str(calls), behaviour=behaviour, extra=extra or {}),
    )
    return calls


def write_program(folder: Path, name: str, text: str) -> Path:
    """An executable file `name` of `text` in `folder`/bin."""
    path = folder / "bin" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path
