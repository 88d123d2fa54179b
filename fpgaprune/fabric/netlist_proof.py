"""`prove_netlist`: each register and output of a synthesised netlist takes what its Verilog says, for all inputs.

Registers keep their names through synthesis. So both are compared register by register: what each one takes next, as a
function of all registers and inputs, whatever they are. ABC proves the functions equal (A. Mishchenko et al., FRAIGs: A
Unifying Representation for Logic Synthesis and Verification, 2005). Memories and multipliers are taken as they are:
what depends on one is counted, and not claimed. A register that the netlist lacks is constant, or nothing reads it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from fpgaprune.errors import RtlError, ToolError
from fpgaprune.fabric.bitstream import find_board_router
from fpgaprune.fabric.cells import Family, find_family
from fpgaprune.fabric.gate_level import Bit, GateLevel
from fpgaprune.fabric.netlist_miter import CUT, ONE, ZERO, Miter, Pair
from fpgaprune.fabric.open_tools import ABC, YOSYS, Found, find_open_tools
from fpgaprune.fabric.synthesis import read_sources
from fpgaprune.fabric.waiting import MOST_NETLIST_S
from fpgaprune.fabric.yosys import NETLIST, Netlist, make_netlist
from fpgaprune.files import write_bytes
from fpgaprune.measure import ALL_INPUTS, BitstreamLink, Claim
from fpgaprune.processes import countdown
from fpgaprune.rtl import VerilogProject

_VERILOG, _GATES, _SCRIPT = "verilog_gates.blif", "netlist_gates.blif", "gates.ys"
_BLIF, _PROVEN = "miter.blif", "miter.aig"
# In the names of small memories, shift registers and multipliers that are made of tables.
_OTHER = re.compile("RAM|DPR|SRL|MULT")
# Conflicts that the proof of one register may take: the time ends first, so what is not proven has a counterexample.
_CONFLICTS = 1_000_000
Equal = Callable[[Miter, list[Pair]], list[bool]]
# Steps that leave gates, registers without enable and reset, memories and multipliers; no log of each of their cells.
_GATE_LEVEL = """proc
flatten -noscopeinfo
opt_clean
memory_collect
async2sync
dffunmap
tee -q techmap t:* t:$mul %d t:$mem* %d
tee -q simplemap
dffunmap
opt_clean
write_blif -blackbox {}
"""


@dataclass(frozen=True, slots=True)
class NetlistProof:
    """How far a netlist is proven to be its Verilog.

    Attributes:
        family: of open synthesis.
        proven: number of bits of registers and outputs that take the same for all values of registers and inputs.
        not_decided: number of those that depend on a memory or a multiplier, or that were not decided.
        differ: names of those that take another value somewhere.
    """

    family: str
    proven: int
    not_decided: int
    differ: tuple[str, ...]

    @property
    def holds(self) -> bool:
        """Whether nothing differs."""
        return not self.differ

    def claim(self) -> Claim:
        """Return what is known, as a claim of a certificate."""
        rest = f"; {self.not_decided:,} not decided, as behind memories and multipliers" if self.not_decided else ""
        found = f"{self.differ[0]} does not" if self.differ else f"{self.proven:,} bits compared, 0 differ{rest}"
        return Claim("registers and outputs of the netlist take what the Verilog says", ALL_INPUTS, found, self.holds)


def prove_netlist(
    project: VerilogProject,
    family: str,
    *,
    cache: str | os.PathLike[str] | None = None,
    timeout_s: float = 600.0,
) -> NetlistProof:
    """Compare the netlist that open synthesis makes of `project` with the Verilog, register by register.

    Args:
        project: as `to_verilog` writes it.
        family: one of `list_families()`.
        cache: as for `synthesize`; a netlist that lies there is the one that is compared.
        timeout_s: most seconds for all tools together.

    Raises:
        TargetError: the family is unknown.
        ToolError: yosys or its ABC is missing, died, or took too long.
        RtlError: as for `synthesize`.
    """
    kind, left = find_family(family), countdown(timeout_s)
    yosys, abc = find_open_tools(YOSYS, ABC)
    home = project.path / "synth" if cache is None else Path(cache)
    sources = read_sources(project, project.files)
    made = make_netlist(sources, project.top, kind, home, yosys, left())
    return compare_netlist(made, project.top, list(sources), kind, (yosys, abc), left())


def with_netlist(
    link: BitstreamLink,
    project: VerilogProject,
    board: str,
    *,
    cache: str | os.PathLike[str],
    timeout_s: float = MOST_NETLIST_S,
) -> BitstreamLink:
    """Add to the claims of a bitstream whether the netlist in it is the Verilog of `project`, or why nobody knows.

    A large design, which is not compared within `timeout_s`, is left out. A bitstream that was not read back gets no
    claim.
    """
    if not link.claims:
        return link
    try:
        family = find_board_router(board)[1].family
        found = prove_netlist(project, family, cache=cache, timeout_s=timeout_s)
    except (ToolError, RtlError) as error:
        why = f"netlist and Verilog not compared: {error}"
        return replace(link, left_out=why if link.left_out is None else f"{link.left_out}; {why}")
    return replace(link, claims=(*link.claims, found.claim()))


def compare_netlist(
    made: Netlist, top: str, sources: list[str], family: Family, tools: tuple[Found, Found], timeout_s: float
) -> NetlistProof:
    """Compare a netlist with the Verilog beside it, whose files are `sources`; arguments and errors as before."""
    (yosys, abc), left = tools, countdown(timeout_s)
    write_bytes(made.folder / _SCRIPT, _script(made, top, sources, family).encode())
    yosys.run(("-s", _SCRIPT) if len(yosys.command) == 1 else (_SCRIPT,), made.folder, left(), "gates.log")
    verilog, netlist = (GateLevel.load(made.folder / name, top) for name in (_VERILOG, _GATES))

    def equal(miter: Miter, pairs: list[Pair]) -> list[bool]:
        return _equal(miter, pairs, made.folder, abc, left())

    miter = Miter(verilog, netlist, _constants(verilog, netlist, equal))
    pairs = miter.pairs()
    proven = equal(miter, pairs)
    differ = [pair for pair, holds in zip(pairs, proven, strict=True) if not holds and not pair.is_cut]
    names = tuple(pair.name for pair in differ)
    return NetlistProof(family.family, sum(proven), len(pairs) - sum(proven) - len(differ), names)


def _constants(verilog: GateLevel, netlist: GateLevel, equal: Equal) -> dict[Bit, str]:
    """Return the registers that the netlist lacks because they are constant: together, they keep their values."""
    written = Miter(verilog, netlist).lacking()
    found = {bit: written[bit] or ZERO for bit in sorted(written, key=str)}
    while True:
        miter = Miter(verilog, netlist, found)
        pairs = miter.constant_pairs()
        tried = [bit for bit, value in found.items() if value != CUT]
        kept = equal(miter, pairs)
        failed = {bit: pair.is_cut for bit, pair, holds in zip(tried, pairs, kept, strict=True) if not holds}
        if not failed:
            return found
        # Without a constant of the netlist, 0 is only a guess: 1 is the next. Those guesses come first.
        for bit in [bit for bit in failed if written[bit] is None] or failed:
            if written[bit] is None and found[bit] == ZERO:
                found[bit] = ONE
            elif written[bit] is not None and failed[bit]:
                found[bit] = CUT
            else:
                del found[bit]


def _equal(miter: Miter, pairs: list[Pair], folder: Path, abc: Found, timeout_s: float) -> list[bool]:
    """Return for each pair whether its two signals are equal for all values of the inputs, as ABC proves it."""
    if not pairs:
        return []
    write_bytes(folder / _BLIF, miter.blif(pairs).encode())
    (folder / _PROVEN).unlink(missing_ok=True)
    steps = f"read_blif {_BLIF}; strash; ifraig -C {_CONFLICTS}; write_aiger {_PROVEN}"
    abc.run(("-c", steps), folder, timeout_s, "abc.log")
    # AIGER: a header of five counts, then a line for each output; 0 is the constant.
    try:
        lines = (folder / _PROVEN).read_bytes().split(b"\n")
        latches, outputs = (int(word) for word in lines[0].split()[3:5])
        found = [int(line) == 0 for line in lines[1 + latches : 1 + latches + outputs]]
    except (OSError, ValueError, IndexError):
        found = []
    if len(found) != len(pairs):
        raise ToolError(f"{abc.tool.program} ended without its result in {folder}; its log is there")
    return found


def _is_logic(cell: str, family: Family) -> bool:
    """Return whether a type of cell is a table, a carry, a register or a constant."""
    logic = {name for kind in ("lut", "ff", "carry") for name in family.takes.get(kind, ())} | family.free
    return cell in logic and _OTHER.search(cell) is None


def _script(made: Netlist, top: str, sources: list[str], family: Family) -> str:
    """Return yosys's steps to both modules as gates; memories and multipliers of the netlist stay as they are."""
    verilog = "".join(f'read_verilog -defer "{name}"\n' for name in sources if name.endswith(".v"))
    return "".join(
        [
            f"read_json {NETLIST}\n",
            f"read_verilog -overwrite -D NO_INCLUDES {family.models}\n",
            *(f"blackbox {cell}\n" for cell in sorted(made.types) if not _is_logic(cell, family)),
            f"hierarchy -top {top}\ndelete t:$scopeinfo\n{_GATE_LEVEL.format(_GATES)}design -reset\n",
            f"{verilog}hierarchy -top {top}\n{_GATE_LEVEL.format(_VERILOG)}",
        ]
    )
