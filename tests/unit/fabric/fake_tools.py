"""Open tools, played by small scripts on a PATH of their own."""

import sys
from pathlib import Path

from ..programs import write_program

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
if "synth_ice40" in script:
    cells = {{"SB_LUT4": 10 * len(top), "SB_DFF": len(top), "SB_CARRY": 3}}
if "synth_gowin" in script:
    cells = {{"LUT4": 10 * len(top), "DFF": len(top), "ALU": 3}}
if "synth_nexus" in script:
    cells = {{"LUT4": 10 * len(top), "FD1P3IX": len(top), "CCU2": 3}}
if "synth_gatemate" in script:
    cells = {{"CC_L2T4": 10 * len(top), "CC_DFF": len(top), "CC_ADDF": 3}}
cells.update({extra})
counts = json.dumps({{"design": {{"num_cells_by_type": cells}}}})
pathlib.Path(re.search(r"-o (\\S+) stat", script)[1]).write_text(counts)
pathlib.Path(re.search(r"write_json(?: -selected)? (\\S+)", script)[1]).write_text(
    json.dumps({{"modules": {{top: {{"ports": {{}}, "cells": {{}}}}}}}})
)
"""

# Plays a nextpnr: its frequency is a hundred and the seed.
NEXTPNR = """#!{python}
import json, pathlib, sys, time
if "--version" in sys.argv:
    print("nextpnr -- Next Generation Place and Route (Version played)")
    sys.exit()
options = dict(zip(sys.argv[1:], sys.argv[2:]))
seed = int(options["--seed"])
print("placing", *sys.argv[1:], flush=True)
with open({calls!r}, "a") as calls:
    calls.write(" ".join(sys.argv[1:]) + "\\n")
assert pathlib.Path(options["--json"]).is_file()
{behaviour}
sites = {{"ICESTORM_LC": 900, "TRELLIS_COMB": 1000, "TRELLIS_FF": 800, "MULT18X18D": 2, "DP16KD": 1}}
sites.update({{"ICESTORM_DSP": 4, "ICESTORM_RAM": 1, "LUT4": 700, "ALU": 50, "DFF": 600, "BSRAM": 3, "MULT18X18": 1}})
sites.update({{"OXIDE_COMB": 500, "OXIDE_FF": 400, "OXIDE_EBR": 2, "MULT18_CORE": 3}})
sites.update({{"CPE_LT": 500, "CPE_ADDF2": 20, "CPE_FF": 300, "RAM_HALF": 2}})
pathlib.Path(options["--report"]).write_text(json.dumps({{
    "fmax": {{"clk": {{"achieved": {base} + seed, "constraint": 100}}}},
    "utilization": {{site: {{"used": used, "available": 1}} for site, used in sites.items()}},
}}))
for written in ("--textcfg", "--asc"):
    if written in options:
        pathlib.Path(options[written]).write_text("configuration " + str(seed))
if "--write" in options:
    pathlib.Path(options["--write"]).write_text(json.dumps({{"modules": {{"top": {{"cells": {{}}}}}}}}))
"""

# Writes the file after -o, else its last argument.
PACKER = """#!{python}
import pathlib, sys
words = sys.argv[1:]
pathlib.Path({told!r}).write_text(" ".join(words))
if words == ["--version"]:
    print("a packer (played)")
    sys.exit()
written = words[words.index("-o") + 1] if "-o" in words else words[-1]
pathlib.Path(written).write_text("bits")
"""

ECPPACK = """#!{python}
import pathlib, sys
if "--version" in sys.argv:
    print("Project Trellis ecppack Version played")
    sys.exit()
pathlib.Path(sys.argv[-1]).write_text("bits of " + pathlib.Path(sys.argv[-2]).read_text())
"""


def fake_nextpnr(folder: Path, behaviour: str = "", base: float = 100.0, family: str = "ecp5") -> Path:
    """`nextpnr-{family}` in `folder`/bin; the arguments of each run are a line of the file returned."""
    calls = folder / "routes"
    calls.touch()
    text = NEXTPNR.format(python=sys.executable, calls=str(calls), behaviour=behaviour, base=base)
    write_program(folder / "bin" / f"nextpnr-{family}", text)
    return calls


def fake_ecppack(folder: Path) -> Path:
    """`ecppack` in `folder`/bin."""
    return write_program(folder / "bin" / "ecppack", ECPPACK.format(python=sys.executable))


def fake_packers(folder: Path) -> Path:
    """The packer of every family in `folder`/bin; the options of the last run are in the file returned."""
    told = folder / "packed"
    for name in ("ecppack", "gmpack", "gowin_pack", "icepack", "prjoxide"):
        write_program(folder / "bin" / name, PACKER.format(python=sys.executable, told=str(told)))
    return told


def fake_yosys(folder: Path, behaviour: str = "", extra: dict[str, int] | str | None = None) -> Path:
    """`yosys` in `folder`/bin; each module it synthesises is a line of the file returned.

    `extra` are cells beyond the usual ones, or an expression that gives them.
    """
    calls = folder / "calls"
    calls.touch()
    write_program(
        folder / "bin" / "yosys",
        YOSYS.format(python=sys.executable, calls=str(calls), behaviour=behaviour, extra=extra or {}),
    )
    return calls
