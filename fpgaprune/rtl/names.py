"""Names that Verilog accepts, one for each layer of a design."""

from __future__ import annotations

import re
from collections.abc import Iterable

# IEEE 1364-2001, annex B, and what SystemVerilog tools reserve besides (IEEE 1800).
_WORDS = """
always and assign automatic begin bit buf bufif0 bufif1 byte case casex casez cell class clocking cmos config const
constraint cover deassign default defparam design disable do edge else end endcase endconfig endfunction endgenerate
endmodule endprimitive endspecify endtable endtask enum event expect export extends extern final first for force
forever fork function generate genvar global highz0 highz1 if ifnone import incdir include initial inout input inside
instance int integer interface join large let liblist library local localparam logic longint macromodule matches
medium modport module nand negedge new nmos nor noshowcancelled not notif0 notif1 null or output package packed
parameter pmos posedge primitive priority program property protected pull0 pull1 pulldown pullup pure rand rcmos real
realtime ref reg release repeat restrict return rnmos rpmos rtran rtranif0 rtranif1 scalared sequence shortint
shortreal showcancelled signed small solve specify specparam static string strong strong0 strong1 struct super supply0
supply1 table tagged task this throughout time timeprecision timeunit tran tranif0 tranif1 tri tri0 tri1 triand trior
trireg type typedef union unique unsigned use uwire var vectored virtual void wait wand weak0 weak1 while wildcard
wire with within wor xnor xor clk rst top
"""
_RESERVED = frozenset(_WORDS.split())


def verilog_names(names: Iterable[str], taken: Iterable[str] = ()) -> dict[str, str]:
    """For each of `names` an identifier of its own, the name itself where that is one."""
    used = {name.lower() for name in taken}
    found = {}
    for name in names:
        plain = re.sub(r"\W", "_", name, flags=re.ASCII)
        if not plain or not plain[0].isalpha() or plain.lower() in _RESERVED or plain.startswith("fp_"):
            plain = f"layer_{plain}"
        candidate, number = plain, 1
        while candidate.lower() in used:
            number += 1
            candidate = f"{plain}_{number}"
        used.add(candidate.lower())
        found[name] = candidate
    return found
