"""`Bench`: a module of `hw/rtl` between streams, and what it should do."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Bench:
    """One or two input streams, a module, one or two output streams.

    `inputs` and `outputs` are (beats, lanes) of each stream, whose values have `width` bits and are signed. `expected`
    turns the samples of all inputs, each (beats, lanes), into those of all outputs. A `paced` one takes a beat not at
    every clock, and a sample in `clocks`, if that is known.
    """

    text: str
    inputs: list[tuple[int, int]]
    outputs: list[tuple[int, int]]
    expected: object
    width: int = 6
    out_width: int | None = None
    paced: bool = False
    clocks: int | None = None


def instance(module, parameters="", names=("s", "m"), clocked=True):
    """An instance whose streams are those of the bench: {0}, {1}, ... in the order of `names`."""
    ports = [".clk(clk), .rst(rst)"] if clocked else []
    ports += [
        f".{name}_data({{{n}}}_data), .{name}_valid({{{n}}}_valid), .{name}_ready({{{n}}}_ready)"
        for n, name in enumerate(names)
    ]
    return f"    {module} #({parameters}) {{name}} ({', '.join(ports)});\n"
