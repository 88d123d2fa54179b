"""Names that Verilog accepts for the layers of a design, and the comments at the top of its files."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Sequence

from fpgaprune.design import Design, LayerSpec
from fpgaprune.rtl.chain import Chain

# IEEE 1800-2017, annex B: every word of SystemVerilog, and so of Verilog.
_VERILOG_WORDS = """
accept_on alias always always_comb always_ff always_latch and assert assign assume automatic before begin bind bins
binsof bit break buf bufif0 bufif1 byte case casex casez cell chandle checker class clocking cmos config const
constraint context continue cover covergroup coverpoint cross deassign default defparam design disable dist do edge
else end endcase endchecker endclass endclocking endconfig endfunction endgenerate endgroup endinterface endmodule
endpackage endprimitive endprogram endproperty endsequence endspecify endtable endtask enum event eventually expect
export extends extern final first_match for force foreach forever fork forkjoin function generate genvar global
highz0 highz1 if iff ifnone ignore_bins illegal_bins implements implies import incdir include initial inout input
inside instance int integer interconnect interface intersect join join_any join_none large let liblist library local
localparam logic longint macromodule matches medium modport module nand negedge nettype new nexttime nmos nor
noshowcancelled not notif0 notif1 null or output package packed parameter pmos posedge primitive priority program
property protected pull0 pull1 pulldown pullup pulsestyle_ondetect pulsestyle_onevent pure rand randc randcase
randsequence rcmos real realtime ref reg reject_on release repeat restrict return rnmos rpmos rtran rtranif0
rtranif1 s_always s_eventually s_nexttime s_until s_until_with scalared sequence shortint shortreal showcancelled
signed small soft solve specify specparam static string strong strong0 strong1 struct super supply0 supply1
sync_accept_on sync_reject_on table tagged task this throughout time timeprecision timeunit tran tranif0 tranif1 tri
tri0 tri1 triand trior trireg type typedef union unique unique0 unsigned until until_with untyped use uwire var
vectored virtual void wait wait_order wand weak weak0 weak1 while wildcard wire with within wor xnor xor
"""
# IEEE 1076-2008, 15.10: reserved words of VHDL, so that a VHDL design can contain the module.
_VHDL_WORDS = """
abs access after all architecture array attribute block body buffer bus component configuration constant disconnect
downto elsif entity exit fairness file generic group guarded impure in inertial is label linkage literal loop map
mod next of on open others out port postponed procedure process range record register reject rem report rol ror
select severity shared signal sla sll sra srl subtype then to transport unaffected units variable when
"""
# Ports and modules that every project has.
_OURS = frozenset({"clk", "rst", "top"})
# A file name has at most 255 bytes, and the parts of a layer have longer names than the layer.
_LONGEST = 64
KEYWORDS = frozenset(_VERILOG_WORDS.split())
_RESERVED = KEYWORDS | frozenset(_VHDL_WORDS.split()) | _OURS
# Suffixes that turn the name of a layer's module into the names of its parts.
_PART = re.compile(r"_(part|rom|to|rest|fork|fifo|wait)\d+|_(sums|products|kernels|turns|again|layer)")


def verilog_names(names: Iterable[str], taken: Iterable[str] = ()) -> dict[str, str]:
    """Return a unique Verilog identifier for each of `names`: the name itself if it is free and legal.

    Identifiers that differ only in upper and lower case count as equal; none equals one of `taken`.
    """
    names = list(names)
    used = {name.lower() for name in taken}
    known = {name.lower() for name in names}
    found = {}
    for name in names:
        plain = re.sub(r"\W", "_", name, flags=re.ASCII)[:_LONGEST]
        if not plain or not plain[0].isalpha() or plain.lower() in _RESERVED or plain.startswith("fp_"):
            plain = f"layer_{plain}"
        part = _PART.search(plain.lower())
        if part and plain.lower()[: part.start()] in known:
            plain = f"layer_{plain}"
        candidate, number = plain, 1
        while candidate.lower() in used:
            number += 1
            candidate = f"{plain}_{number}"
        used.add(candidate.lower())
        found[name] = candidate
    return found


def of_design(design: Design) -> str:
    """Return the comment at the top of the module of a whole design."""
    return _folded(
        [
            f"Design {design.name}, {len(design.layers)} layers, as AXI4-Stream. Each beat holds one pixel of all "
            "channels, channel 0 in the lowest bits, as raw integers of the type named at the port.",
            "Beats are counted from reset; tlast going in is not needed, tlast coming out marks the last beat of a "
            "sample.",
        ]
    )


def of_layer(design: Design, layer: LayerSpec, shapes: str, chain: Chain) -> str:
    """Return the comment at the top of every file of a layer."""
    lines = [
        f"Layer {layer.name} ({layer.kind}) of design {design.name}.",
        f"Shapes: {shapes}.",
        f"Types: {', '.join(f'{role} {kind}' for role, kind in sorted(layer.types.items()))}.",
    ]
    if chain.kept is not None:
        lines.append(f"Multiplications by constants: {chain.kept} kept, {chain.dropped} dropped.")
    return _folded([*lines, *(f"Note: {note}." for note in chain.notes)])


def shapes_of(sources: Sequence[tuple[int, ...]], result: tuple[int, ...]) -> str:
    """Write the shapes going in and coming out, as `8x8x3 -> 6x6x16`."""
    return f"{' and '.join(_shape(source) for source in sources)} -> {_shape(result)}"


def _shape(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape))


def _folded(lines: Sequence[str]) -> str:
    folded = [part for line in lines for part in textwrap.wrap(line, 110, subsequent_indent="  ") or [""]]
    return "".join(f"// {line}".rstrip() + "\n" for line in folded)
