"""Verilog-2001 text of sums that are computed bit by bit."""

from __future__ import annotations

from collections.abc import Mapping

from fpgaprune.rtl.lines import Line
from fpgaprune.rtl.parts import Body, files_of
from fpgaprune.rtl.serial import SerialSums

# Modules of hw/rtl that the text uses, and the modules that those use.
LIBRARY = ("fp_history", "fp_serial_add", "fp_serial_clear", "fp_serial_in", "fp_serial_out")


def serial_datapath(module: str, sums: SerialSums, header: str) -> dict[str, str]:
    """Return the files, by name, of a `module` with ports `clk`, `load`, `in_data` and `out_data`.

    Inputs and words lie on their buses in order, the first in the lowest bits. The sums of what is on `in_data` while
    `load` is 1 are on `out_data` `sums.cycles` cycles later, for one cycle.
    """
    clears: dict[int, int] = {}
    for stream in sums.needed():
        if stream >= sums.lanes:
            shift, at = sums.adder(stream).shift, sums.stage[stream] - 1
            clears[shift] = max(clears.get(shift, 0), at)
    lines = [_clear(shift, later) for shift, later in sorted(clears.items())]
    lines += [_input(sums, stream) if stream < sums.lanes else _adder(sums, stream) for stream in sums.needed()]
    ending = "".join(_word(sums, number, stream) for number, stream in enumerate(sums.words))
    body = Body(lines, lines, "load", "", sums.before, sums.after, {f"v{stream}" for stream in sums.words}, ending)
    return dict(sorted(files_of(module, body, header).items()))


def _instance(library: str, name: str, parameters: Mapping[str, int], ports: Mapping[str, str]) -> str:
    # Every parameter is 0 by default, so zeros are not written.
    given = ", ".join(f".{key}({value})" for key, value in parameters.items() if value)
    wired = ", ".join(f".{port}({wire})" for port, wire in {"clk": "clk", **ports}.items())
    return f"    {library} {f'#({given}) ' if given else ''}{name} ({wired});\n"


def _clear(shift: int, later: int) -> Line:
    text = f"    wire [{later}:0] c{shift};\n" + _instance(
        "fp_serial_clear", f"clear{shift}", {"SHIFT": shift, "LATER": later}, {"load": "load", "clear": f"c{shift}"}
    )
    return Line(text, defines={f"c{shift}": later + 1}, instance=True)


def _input(sums: SerialSums, stream: int) -> Line:
    later, low = sums.later[stream], stream * sums.width
    text = f"    wire [{later}:0] v{stream};\n" + _instance(
        "fp_serial_in",
        f"in{stream}",
        {"WIDTH": sums.width, "SIGNED": int(sums.signed), "LATER": later},
        {"load": "load", "in_data": f"in_data[{low + sums.width - 1}:{low}]", "out": f"v{stream}"},
    )
    return Line(text, defines={f"v{stream}": later + 1}, uses={"in_data"}, instance=True)


def _adder(sums: SerialSums, stream: int) -> Line:
    adder, later, at = sums.adder(stream), sums.later[stream], sums.stage[stream]

    def read(operand: int, lag: int) -> str:
        return f"v{operand}[{at + lag - sums.stage[operand] - 1}]"

    text = f"    wire [{later}:0] v{stream};\n" + _instance(
        "fp_serial_add",
        f"add{stream}",
        {"SUBTRACT": int(adder.subtract), "LATER": later},
        {
            "clear": f"c{adder.shift}[{at - 1}]",
            "a": read(adder.plain, 0),
            "b": read(adder.shifted, adder.shift),
            "sum": f"v{stream}",
        },
    )
    uses = {f"c{adder.shift}", f"v{adder.plain}", f"v{adder.shifted}"}
    return Line(text, defines={f"v{stream}": later + 1}, uses=uses, instance=True)


def _word(sums: SerialSums, number: int, stream: int) -> str:
    low = number * sums.bits
    return _instance(
        "fp_serial_out",
        f"out{number}",
        {"WIDTH": sums.bits},
        {"in": f"v{stream}[{sums.depth - sums.stage[stream]}]", "out_data": f"out_data[{low + sums.bits - 1}:{low}]"},
    )
