"""Verilog-2001 text of a circuit."""

from __future__ import annotations

from fpgaprune.rtl.circuit import Circuit
from fpgaprune.rtl.lines import line_of, rom_text, sized, value_name
from fpgaprune.rtl.parts import Body, files_of
from fpgaprune.rtl.pipelining import Schedule


def datapath(module: str, circuit: Circuit, plan: Schedule, header: str) -> dict[str, str]:
    """Return the files, by name, of a pipeline `module` with ports `clk`, `ce`, `in_data` and `out_data`.

    Registers take new values while `ce` is 1. Inputs and outputs lie on their buses in order, the first in the lowest
    bits. A module without registers has no ports `clk` and `ce`.
    """
    places = [place for place in circuit.alive() if circuit.nodes[place].op != "const"]
    lines = {place: line_of(module, circuit, plan, place) for place in places}
    files = {
        f"{module}_rom{number}.v": rom_text(f"{module}_rom{number}", circuit, number, header)
        for number in sorted({circuit.nodes[place].params[0] for place in places if circuit.nodes[place].op == "rom"})
    }
    body = Body(
        lines=list(lines.values()),
        runs=[lines[place] for place in sorted(places, key=lambda place: plan.stage[place])],
        control="ce" if plan.depth > 0 else "",
        gate="if (ce) ",
        bits_in=max(1, sum(width for width, _ in circuit.inputs)),
        bits_out=max(1, sum(width for _, width in circuit.outputs)),
        leaving={value_name(place, plan.lag(place, plan.depth)) for place, _ in circuit.outputs},
        ending=_outputs(circuit, plan),
    )
    return dict(sorted({**files, **files_of(module, body, header)}.items()))


def _outputs(circuit: Circuit, plan: Schedule) -> str:
    wires, names = "", []
    for number, (place, width) in enumerate(circuit.outputs):
        node = circuit.nodes[place]
        if node.op == "const":
            wires += f"    wire [{width - 1}:0] y{number} = {sized(node.low, width)};\n"
        else:
            source = value_name(place, plan.lag(place, plan.depth))
            if node.width > width:
                source = f"{source}[{width - 1}:0]"
            wires += f"    wire signed [{width - 1}:0] y{number} = {source};\n"
        names.append(f"y{number}")
    rows = [", ".join(names[::-1][start : start + 12]) for start in range(0, len(names), 12)]
    joined = ",\n        ".join(rows)
    return f"{wires}    assign out_data = {{\n        {joined}\n    }};\n"
